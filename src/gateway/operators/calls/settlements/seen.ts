import type { Submission } from '../../../trading/submission/table.ts';
import type { Seen } from '../proposals/rules.ts';

/**
 * The fields by which an operator knows an object, and those that change with everything that is heard of it. How often the
 * reconciler asked is not among them, because an answer that says nothing is no news.
 */
const names = [
  ...([
    'state',
    'filledQuantity',
    'filledValueKobo',
    'exchangeOrderId',
    'reference',
    'account',
    'brokerReference',
  ] as const),
  ...(['rejectReason', 'lastReport', 'missedReport', 'cancelUntil'] as const),
];

/** An object as a proposal and its audit entry show it. */
export function seenOf(row: Submission): Seen {
  const fields = row as unknown as Readonly<Record<string, unknown>>;
  const shown = names.filter((name) => name in fields).map((name) => [snakeCase(name), textOf(fields[name])] as const);
  return Object.fromEntries(shown);
}

function textOf(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
