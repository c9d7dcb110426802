import { fieldsText, typeName } from '../messages/names.ts';
import type { StoredMessage } from '../messages/table.ts';
import type { StoredFinding } from './findings.ts';
import type { Overview } from './overview.ts';
import type { Rejection } from './rejections.ts';
import { duration, lagosTime, utcTime } from './times.ts';

/**
 * A line for each message, oldest first, below a line that names the columns. The session is named where some are of the drop
 * copy, because each session has numbers of its own.
 */
export function printedMessages(messages: readonly StoredMessage[]): string {
  const hasCopies = messages.some(({ session }) => session === 'drop_copy');
  const cells = messages.map(({ at, session, direction, number, type, outcome, text }) => [
    lagosTime(at),
    utcTime(at),
    ...(hasCopies ? [sessionName(session)] : []),
    direction === 'out' ? '→' : '←',
    number === 0n ? '-' : String(number),
    typeName(type) || '-',
    outcome,
    fieldsText(text),
  ]);
  return columns([
    ['Lagos', 'UTC', ...(hasCopies ? ['session'] : []), '', 'number', 'message', 'outcome', 'fields'],
    ...cells,
  ]);
}

/** The messages as they are in the log, one a line. Those of the drop copy say so. */
export function rawMessages(messages: readonly StoredMessage[]): string {
  return messages
    .map(
      ({ id, at, session, direction, outcome, text }) =>
        `${id} ${new Date(at).toISOString()} ${session === 'order' ? '' : `${sessionName(session)} `}${direction} ${outcome} ${text}`,
    )
    .join('\n');
}

/** A line for each finding, and a line for its facts. */
export function printedFindings(findings: readonly StoredFinding[]): string {
  return findings
    .map(({ id, at, what, orderId, detail, facts, settlement, messages }) => {
      const times = messages === 1n ? '' : `  (${messages} messages)`;
      const state = settlement === undefined ? 'open' : `settled by ${settlement.operator}: ${settlement.note}`;
      const lines = [
        `${id}  ${lagosTime(at)}  ${utcTime(at)}  ${what}  ${orderId || '-'}  ${state}`,
        `    ${detail}${times}`,
      ];
      return [...lines, ...(facts === null ? [] : [`    ${facts}`])].map(printable).join('\n');
    })
    .join('\n');
}

/** A line for each rejection: what partners are shown of it, and behind that what the exchange said. */
export function printedRejections(rejections: readonly Rejection[]): string {
  return rejections
    .map(({ number, at, orderId, what, shownReason, exchangeReason, exchangeText }) => {
      const head = `${number ?? '-'}  ${at === null ? '-' : `${lagosTime(at)}  ${utcTime(at)}`}  ${orderId}  ${what}`;
      const said = [exchangeReason ?? 'no reason', exchangeText ?? 'no text'].join('  ');
      const lines = [`${head}${shownReason === null ? '' : ` as ${shownReason}`}`, `    ${said}`];
      // A line of the exchange's text must not look like one of ours.
      return lines.map((line) => printable(line).replaceAll('\n', '?')).join('\n');
    })
    .join('\n');
}

/** Who is in a session, and where. */
export interface SessionNames {
  readonly senderCompId: string;
  readonly targetCompId: string;
  readonly addresses: readonly string[];
  readonly version: string;
}

/** The session and what is around it, a line each. */
export function printedSession(overview: Overview, names: SessionNames, now: number): string {
  const { state, reason, since, process, numbers, open, inDoubt, oldestInDoubtAt, session, lastChange } = overview;
  const ago = (ms: number | undefined) => (ms === undefined ? '' : `, ${duration(now - ms)} ago`);
  const forMs = since === undefined ? '' : ` since ${lagosTime(since)} Lagos (${duration(now - since)})`;
  const lines: readonly (readonly [string, string])[] = [
    ['session', `${names.senderCompId} → ${names.targetCompId} at ${names.addresses.join(' or ')}, ${names.version}`],
    ['state', `${state.replaceAll('_', ' ')}${forMs}`],
    ...(reason === '' ? [] : [['why not up', reason] as const]),
    ['process', process || 'none'],
    ['our next number', String(numbers.nextOut)],
    ['their next number', String(numbers.nextIn)],
    ['numbers begin', `${lagosTime(numbers.startedAt)} Lagos`],
    ['orders open', String(open)],
    [
      'orders in doubt',
      `${inDoubt}${oldestInDoubtAt === undefined ? '' : `, the oldest came${ago(oldestInDoubtAt).slice(1)}`}`,
    ],
    ['open findings', `${overview.findings}${ago(overview.newestFindingAt)}`],
    ...(numbers.restored ? [['restored', 'nothing is proven absent until `fix release`'] as const] : []),
    ...(session.wish === 'out' ? [['operators', 'want it to be logged out (LogOn ends that)'] as const] : []),
    ...(lastChange === undefined
      ? []
      : [
          [
            'last change',
            `${lastChange.action} by ${lastChange.operator}, ${lagosTime(lastChange.at)} Lagos: ${lastChange.reason}`,
          ] as const,
        ]),
  ];
  return lines.map(([name, value]) => `${name.padEnd(18)} ${printable(value)}`).join('\n');
}

function sessionName(session: StoredMessage['session']): string {
  return session.replace('_', '-');
}

/** Rows of cells in columns. The last column is not filled up. */
function columns(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  return rows
    .map((row) => row.map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0))).join('  '))
    .map((line) => line.trimEnd())
    .join('\n');
}

/** A text of the other side must not steer the terminal. */
function printable(text: string): string {
  return text.replace(/[^\n -~→←…]/g, '?');
}
