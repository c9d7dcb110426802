import { type Statement, statement } from '../../gateway/store/statement.ts';
import { type Finding, fixFindings, fixUnsupported, type UnsupportedType } from './table.ts';

/** A message of a type that is not supported. The first of its type in a session day is a finding; others are counted. */
export interface UnsupportedMessage {
  /** When the session day began, in milliseconds. */
  readonly day: number;
  readonly type: string;
  readonly finding: Finding;
}

/** More types than FIX has: the types behind them are counted as one, so that nobody can fill the table with made-up types. */
const maxTypes = 200;
/** The type that stands for those. */
const anyOther = '*';
/** The longest type that the table keeps. */
const longestType = 8;

/**
 * Returns the writes of messages of types that are not supported. The first message of a type in a session day is a
 * finding, and each message is counted. `before` are the rows of these days.
 */
export function unsupportedWrites(
  messages: readonly UnsupportedMessage[],
  before: readonly UnsupportedType[],
): { readonly findings: readonly Finding[]; readonly writes: readonly Statement[] } {
  const known = new Map(before.map((row) => [keyOf(row.day, row.type), row] as const));
  const counted = new Map<string, { readonly first: UnsupportedMessage; readonly type: string; messages: bigint }>();
  for (const message of messages) {
    const own = message.type.replaceAll(/[^!-~]/g, '?').slice(0, longestType);
    const isKnown = known.has(keyOf(message.day, own)) || counted.has(keyOf(message.day, own));
    const type = isKnown || known.size + counted.size < maxTypes ? own : anyOther;
    const one = counted.get(keyOf(message.day, type)) ?? { first: message, type, messages: 0n };
    one.messages += 1n;
    counted.set(keyOf(message.day, type), one);
  }
  const findings: Finding[] = [];
  const writes = [...counted].flatMap(([key, { first, type, messages: count }]): Statement[] => {
    const row = known.get(key);
    const { day, finding } = first;
    if (row !== undefined)
      return fixUnsupported.update(row, { ...row, messages: row.messages + count, lastAt: finding.at });
    findings.push(finding);
    return [
      fixFindings.insert({ ...finding, id: 0n }),
      // The id of the finding that the statement before has inserted.
      statement(
        'INSERT INTO fix_unsupported (day, type, finding_id, messages, last_at) VALUES (?, ?, LAST_INSERT_ID(), ?, ?)',
        ...[new Date(day), Buffer.from(type), count, new Date(finding.at)],
      ),
    ];
  });
  return { findings, writes };
}

function keyOf(day: number, type: string): string {
  return `${day} ${type}`;
}
