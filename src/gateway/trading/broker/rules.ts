import { type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import { isPrintable, isPrintableAscii, writtenOut } from '../../../kit/printable.ts';
import { ApiError } from '../../edge/errors.ts';

/**
 * The texts that a broker states: ids, codes, dates and decimals are printable ASCII, names are printable in any script. One rule
 * over the protos holds for every field, also for one that is added. Narrower rules of single fields come after it.
 */
const maxLength = 200;
const maxIdLength = 64;

/** The largest number of a report. Numbers are dense from 1, and one near 2^63 could not be followed by another. */
const maxReportNumber = 2n ** 53n - 1n;

/** A text of a message, or a message or list inside it. */
interface Member {
  readonly name: string;
  readonly key: string;
  readonly isList: boolean;
  /** Undefined for a message. */
  readonly isRight: ((text: string) => boolean) | undefined;
  readonly inside: readonly Member[];
}

const compiled = new Map<DescMessage, readonly Member[]>();

type Values = Record<string, unknown>;

/** The name of the first field whose text is not one that a broker may state; undefined: all are. */
export function wrongText(schema: DescMessage, message: Message): string | undefined {
  return wrongIn(membersOf(schema), message as unknown as Values);
}

/**
 * A report whose texts are printable. The stream must not end at one that is not, because all later reports wait behind it. So
 * the id of its object is written out, and is then the id of none of ours; any other text is left out, as if it had not been stated.
 */
export function withRightTexts<Report extends Message>(schema: DescMessage, report: Report): Report {
  const right = { ...report } as unknown as Values;
  for (const { name, key, isRight } of membersOf(schema)) {
    const text = right[key];
    if (isRight === undefined || typeof text !== 'string' || isRight(text)) continue;
    right[key] = isObjectId(name)
      ? writtenOut(text)
          .replace(/[^ -~]/g, '?')
          .slice(0, maxIdLength)
      : '';
  }
  return right as unknown as Report;
}

/** The forms of names, symbols and records' ids in the broker's answers. */
export const forms = {
  name: /^\P{C}{1,200}$/u,
  symbol: /^[A-Z0-9.-]{1,20}$/,
  recordId: /^[A-Za-z0-9-]{1,64}$/,
};

/** Prices are bounded so that quantity times price fits the database exactly. */
export function isPrice(kobo: bigint): boolean {
  return kobo > 0n && kobo <= 10_000_000_000n;
}

/** Whether a report's number can be one. */
export function isReportNumber(number: bigint): boolean {
  return number > 0n && number <= maxReportNumber;
}

/** Whether a text is an id of the broker or the exchange: at most 64 printable ASCII characters, or none. */
export function isUpstreamId(text: string): boolean {
  return /^[ -~]{0,64}$/.test(text);
}

/** The reports in a query's answer, above a number and in order; undefined if not found. Throws if it makes no sense. */
export function reportsOf<Report extends { readonly number: bigint }>(
  { found, reports }: { readonly found: boolean; readonly reports: readonly Report[] },
  afterNumber: bigint,
  isReport: (report: Report) => boolean,
): readonly Report[] | undefined {
  const isInOrder = reports.every((report, at) => report.number > (reports[at - 1]?.number ?? afterNumber));
  if (!isInOrder || !reports.every(isReport) || (!found && reports.length > 0)) throw new ApiError('exchange_error');
  return found ? reports : undefined;
}

function wrongIn(members: readonly Member[], values: Values): string | undefined {
  for (const { name, key, isList, isRight, inside } of members) {
    const value = values[key];
    if (value === undefined) continue;
    for (const one of isList ? (value as readonly unknown[]) : [value]) {
      const wrong = isRight === undefined ? wrongIn(inside, one as Values) : isRight(one as string) ? undefined : name;
      if (wrong !== undefined) return wrong;
    }
  }
  return undefined;
}

function membersOf(schema: DescMessage): readonly Member[] {
  let members = compiled.get(schema);
  if (members === undefined) {
    members = schema.fields.flatMap(memberOf);
    compiled.set(schema, members);
  }
  return members;
}

function memberOf(field: DescField): Member[] {
  const { name, localName: key, fieldKind, scalar, message } = field;
  if (fieldKind === 'map' || field.oneof !== undefined) throw new Error(`${field}: a text in it would not be checked`);
  const isList = fieldKind === 'list';
  if (scalar === ScalarType.STRING) return [{ name, key, isList, isRight: ruleOf(name), inside: [] }];
  const inside = message === undefined ? [] : membersOf(message);
  return inside.length === 0 ? [] : [{ name, key, isList, isRight: undefined, inside }];
}

function ruleOf(name: string): (text: string) => boolean {
  if (name === 'name') return (text) => isPrintable(text, maxLength);
  return (text) => isPrintableAscii(text, maxLength);
}

function isObjectId(name: string): boolean {
  return /^client_\w+_id$/.test(name);
}
