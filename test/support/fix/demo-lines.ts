import type { WireMessage } from '../quickfix.ts';

const partnerWidth = 46;
const messageWidth = 76;

const messageNames: Readonly<Record<string, string>> = {
  A: 'Logon',
  '0': 'Heartbeat',
  '1': 'TestRequest',
  '2': 'ResendRequest',
  '3': 'Reject',
  '4': 'SequenceReset',
  '5': 'Logout',
  D: 'NewOrderSingle',
  F: 'OrderCancelRequest',
  H: 'OrderStatusRequest',
  AF: 'OrderMassStatusRequest',
  '8': 'ExecutionReport',
  '9': 'OrderCancelReject',
  j: 'BusinessMessageReject',
};
/** ExecType. */
const executionNames: Readonly<Record<string, string>> = {
  '0': 'New',
  '3': 'DoneForDay',
  '4': 'Canceled',
  '6': 'PendingCancel',
  '8': 'Rejected',
  A: 'PendingNew',
  C: 'Expired',
  F: 'Trade',
  I: 'OrderStatus',
};
/** The fields that every message has and a reader needs least. */
const leftOut = new Set(['8', '9', '10', '35', '49', '52', '56', '60', '122']);

/** A message of the exchange's log, as lines: its direction and name, and its fields. Secrets are not shown. */
export function fixLines({ direction, outcome, message }: WireMessage): string[] {
  const fields = message
    .split('\u0001')
    .filter((field) => field !== '')
    .map((field): [string, string] => [field.slice(0, field.indexOf('=')), field.slice(field.indexOf('=') + 1)]);
  const value = (tag: string) => fields.find(([each]) => each === tag)?.[1] ?? '';
  const type = value('35');
  const execution = type === '8' ? ` ${executionNames[value('150')] ?? value('150')}` : '';
  const isLost = outcome === 'discarded' ? ' (never written)' : '';
  const arrow = direction === 'in' ? '→' : '←';
  const shown = fields
    .filter(([tag]) => !leftOut.has(tag))
    .map(([tag, text]) => `${tag}=${tag === '554' ? '…' : text}`);
  return [
    `${arrow} ${messageNames[type] ?? type}${execution}${isLost}`,
    ...wrapped(shown).map((line) => `    ${line}`),
  ];
}

/** Two columns. */
export function besides(left: readonly string[], right: readonly string[]): string[] {
  return Array.from({ length: Math.max(left.length, right.length) }, (_, row) =>
    `${(left[row] ?? '').padEnd(partnerWidth)} │ ${right[row] ?? ''}`.trimEnd(),
  );
}

function wrapped(fields: readonly string[]): string[] {
  const lines: string[] = [];
  for (const field of fields) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + field.length <= messageWidth)
      lines[lines.length - 1] = `${last} ${field}`;
    else lines.push(field);
  }
  return lines;
}
