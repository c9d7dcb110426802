/**
 * Makes docs/BROKER-REFERENCE.md of the comments in the protos of `marina.broker.v1`, and of the checks of adapters.
 */
import type { DescEnum, DescField, DescFile, DescMessage, DescService } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';
import type { CheckClass } from '../broker-check/check.ts';
import { checks } from '../broker-check/checks.ts';
import { file_marina_broker_v1_accounts } from '../gen/marina/broker/v1/accounts_pb.ts';
import { file_marina_broker_v1_allocations } from '../gen/marina/broker/v1/allocations_pb.ts';
import { file_marina_broker_v1_applications } from '../gen/marina/broker/v1/applications_pb.ts';
import { file_marina_broker_v1_orders } from '../gen/marina/broker/v1/orders_pb.ts';
import { file_marina_broker_v1_reference } from '../gen/marina/broker/v1/reference_pb.ts';
import { file_marina_broker_v1_statements } from '../gen/marina/broker/v1/statements_pb.ts';
import { file_marina_broker_v1_submissions } from '../gen/marina/broker/v1/submissions_pb.ts';
import { file_marina_broker_v1_withdrawals } from '../gen/marina/broker/v1/withdrawals_pb.ts';
import { type Comments, commentOf, readComments } from '../site/comments.ts';

const files: readonly DescFile[] = [
  file_marina_broker_v1_orders,
  file_marina_broker_v1_submissions,
  file_marina_broker_v1_allocations,
  file_marina_broker_v1_withdrawals,
  file_marina_broker_v1_applications,
  file_marina_broker_v1_accounts,
  file_marina_broker_v1_reference,
  file_marina_broker_v1_statements,
];

const classes: Readonly<Record<CheckClass, string>> = {
  must: 'A breach can send an order twice, lose it, or misjudge it.',
  should: 'A breach makes partners wait, shows them a worse answer, or calls an operator.',
  optional: 'An offer that an adapter may leave out.',
};

/** The page, as Markdown. */
export function brokerReference(comments: Comments = readComments()): string {
  const parts = [
    '# marina.broker.v1: every call, field and check',
    'This page is made by `make generate`, from `proto/marina/broker/v1` and `src/broker-check`. [BROKER-ADAPTERS.md](BROKER-ADAPTERS.md) says what an adapter promises, and why.',
    ...files.flatMap((file) => ofFile(comments, file)),
    '## Checks',
    'The checks of `broker-check`, in the order in which they run. An id never changes.',
    ...Object.entries(classes).map(([name, meaning]) => `- **${name}**: ${meaning}`),
    table(
      ['id', 'class', 'promise'],
      checks.map((check) => [`\`${check.id}\``, check.class, check.promise]),
    ),
  ];
  return `${parts.join('\n\n').replaceAll(/(^- .*)\n\n(?=- )/gm, '$1\n')}\n`;
}

function ofFile(comments: Comments, file: DescFile): string[] {
  return [
    ...file.services.flatMap((service) => ofService(comments, service)),
    ...file.messages.flatMap((message) => ofMessage(comments, message)),
    ...file.enums.flatMap((each) => ofEnum(comments, each)),
  ];
}

function ofService(comments: Comments, service: DescService): string[] {
  return [
    `## ${service.name}`,
    commentOf(comments, service),
    ...service.methods.flatMap((method) => [`### ${service.name}/${method.name}`, commentOf(comments, method)]),
  ];
}

function ofMessage(comments: Comments, message: DescMessage): string[] {
  const rows = message.fields.map((field) => [
    `\`${field.name}\``,
    String(field.number),
    typeOf(field),
    oneLine(commentOf(comments, field)),
  ]);
  return [
    `### ${message.name}`,
    commentOf(comments, message),
    rows.length === 0 ? 'It has no fields.' : table(['field', 'number', 'type', 'meaning'], rows),
  ];
}

function ofEnum(comments: Comments, each: DescEnum): string[] {
  const rows = each.values.map((value) => [
    `\`${value.name}\``,
    String(value.number),
    oneLine(commentOf(comments, value)),
  ]);
  return [`### ${each.name}`, commentOf(comments, each), table(['value', 'number', 'meaning'], rows)];
}

function typeOf(field: DescField): string {
  if (field.fieldKind === 'list') return `repeated ${nameOf(field)}`;
  return field.proto.proto3Optional ? `optional ${nameOf(field)}` : nameOf(field);
}

function nameOf(field: DescField): string {
  if (field.message) {
    return field.message.file.proto.package === 'marina.broker.v1' ? field.message.name : field.message.typeName;
  }
  return field.enum?.name ?? ScalarType[field.scalar as ScalarType].toLowerCase();
}

function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, ' ').replaceAll('|', '\\|');
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  return [heads, heads.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
