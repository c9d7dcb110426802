/** Makes docs/operations/calls.md of the protos of operators' calls: `marina.admin.v1` and `marina.fix.v1`. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { callRules } from '../gateway/operators/calls/roles.ts';
import { type Comments, commentOf, firstSentence, readComments } from '../site/comments.ts';

const packages = ['admin', 'fix'];

/** The services that operators call, in the order of their files. */
export async function operatorServices(): Promise<DescService[]> {
  const services: DescService[] = [];
  for (const name of packages) {
    const folder = join(import.meta.dirname, '../gen/marina', name, 'v1');
    for (const file of readdirSync(folder).sort()) {
      const parts: Record<string, unknown> = await import(join(folder, file));
      services.push(...Object.values(parts).filter(isService));
    }
  }
  return services;
}

/** The page, as Markdown. */
export async function operatorReference(comments: Comments = readComments()): Promise<string> {
  const parts = [
    "# Operators' calls and their roles",
    'This page is made by `make generate`, from the protos. [Roles of operators](roles.md) says which role is for which job. A role that a row names may make the call; `admin` may make every call, and what `read` may do, every role may do. `grpcurl … describe marina.admin.v1.Partners` shows the same of a running gateway.',
    ...(await operatorServices()).map((service) => ofService(comments, service)),
  ];
  return `${parts.join('\n\n')}\n`;
}

function ofService(comments: Comments, service: DescService): string {
  const rows = service.methods.map((method) => [
    `\`${method.name}\``,
    rolesOf(method).join(', '),
    firstSentence(commentOf(comments, method)),
  ]);
  const lines = [['call', 'roles', 'what it does'], ['---', '---', '---'], ...rows];
  return `## ${service.typeName}\n\n${lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}`;
}

function rolesOf(method: DescMethod): readonly string[] {
  const { roles } = callRules(method);
  return roles.includes('read') ? ['read'] : roles;
}

function isService(part: unknown): part is DescService {
  return typeof part === 'object' && part !== null && 'kind' in part && part.kind === 'service';
}
