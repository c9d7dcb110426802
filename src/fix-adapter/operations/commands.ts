import { parseArgs } from 'node:util';
import type { Database } from '../../gateway/store/database.ts';
import { findMessages, type MessageFilter, maxNumbers, maxPage } from '../messages/find.ts';
import { typeOf } from '../messages/names.ts';
import type { MessageSession } from '../messages/table.ts';
import { listFindings } from './findings.ts';
import { readOverview } from './overview.ts';
import {
  printedFindings,
  printedMessages,
  printedRejections,
  printedSession,
  rawMessages,
  type SessionNames,
} from './printed.ts';
import { listRejections } from './rejections.ts';
import { readTime, timeForms } from './times.ts';

/** The commands that only read the database, so that they work while no adapter runs. */
export const readCommands = ['messages', 'session', 'findings', 'rejections'] as const;
export type ReadCommand = (typeof readCommands)[number];

const usage = `usage: fix messages [--order ID] [--cl-ord-id ID] [--number N or N-M] [--direction in|out] [--type D or NewOrderSingle]
                    [--session order|drop-copy] [--since TIME] [--until TIME] [--before ID] [--limit N] [--raw]
       fix session
       fix findings [--order ID] [--open] [--before ID] [--limit N]
       fix rejections [--order ID] [--limit N]

The newest are shown, 50 by default and at most ${maxPage}. All that is given must match.
TIME: ${timeForms}.`;

/** Carries out a command. Prints, and returns nothing. */
type Run = (database: Database, names: SessionNames, now: number) => Promise<void>;

/** A command that was called wrongly. */
class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Reads the arguments of a command. Undefined: they are wrong, and it has printed what is. */
export function readCommand(what: ReadCommand, args: readonly string[], now: number): Run | undefined {
  try {
    if (what === 'messages') return messagesCommand(args, now);
    if (what === 'rejections') return rejectionsCommand(args);
    return what === 'findings' ? findingsCommand(args) : sessionCommand(args);
  } catch (error) {
    const isUnknown = String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS');
    if (!(error instanceof UsageError) && !isUnknown) throw error;
    console.error(`${(error as Error).message}\n\n${usage}`);
    return undefined;
  }
}

export function isReadCommand(what: string): what is ReadCommand {
  return readCommands.some((one) => one === what);
}

const text = { type: 'string' } as const;
const yes = { type: 'boolean', default: false } as const;

function messagesCommand(args: readonly string[], now: number): Run {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...{ order: text, 'cl-ord-id': text, number: text, direction: text, type: text, session: text },
      ...{ since: text, until: text, before: text, limit: text, raw: yes },
    },
  });
  const filter: MessageFilter = {
    orderId: values.order,
    clOrdId: values['cl-ord-id'],
    numbers: given(values.number, numbersFrom, '--number must be a number, or two with a hyphen, at most 1,000 apart'),
    direction: given(values.direction, directionFrom, '--direction must be in or out'),
    session: given(values.session, sessionFrom, '--session must be order or drop-copy'),
    type: given(values.type, typeOf, '--type must be a MsgType such as D, or its name'),
    since: given(values.since, (time) => readTime(time, now), `--since must be a time: ${timeForms}`),
    until: given(values.until, (time) => readTime(time, now), `--until must be a time: ${timeForms}`),
    beforeId: given(values.before, idFrom, '--before must be the id of a message'),
  };
  const limit = limitFrom(values.limit);
  return async (database) => {
    const { messages, hasMore } = await findMessages(database, filter, limit);
    const oldestFirst = [...messages].reverse();
    if (messages.length > 0) console.log(values.raw ? rawMessages(oldestFirst) : printedMessages(oldestFirst));
    const summary = messages.length === 0 ? 'no message matches' : `${messages.length} messages, oldest first`;
    const more = hasMore ? `; older ones: --before ${messages.at(-1)?.id}` : '';
    console.error(`${summary}${more}`);
  };
}

function findingsCommand(args: readonly string[]): Run {
  const options = { order: text, open: yes, before: text, limit: text };
  const { values } = parseArgs({ args: [...args], options });
  const beforeId = given(values.before, idFrom, '--before must be the id of a finding');
  const limit = limitFrom(values.limit);
  return async (database) => {
    const filter = { orderId: values.order, beforeId, openOnly: values.open };
    const { findings, hasMore } = await listFindings(database, filter, limit);
    if (findings.length > 0) console.log(printedFindings(findings));
    const summary = findings.length === 0 ? 'no finding matches' : `${findings.length} findings, newest first`;
    const more = hasMore ? `; older ones: --before ${findings.at(-1)?.id}` : '';
    console.error(`${summary}${more}`);
  };
}

function rejectionsCommand(args: readonly string[]): Run {
  const { values } = parseArgs({ args: [...args], options: { order: text, limit: text } });
  const limit = limitFrom(values.limit);
  return async (database) => {
    const found = await listRejections(database, values.order, limit);
    if (found.length > 0) console.log(printedRejections(found));
    console.error(found.length === 0 ? 'no rejection matches' : `${found.length} rejections, newest first`);
  };
}

function sessionCommand(args: readonly string[]): Run {
  parseArgs({ args: [...args], options: {} });
  return async (database, names, now) => {
    console.log(printedSession(await readOverview(database), names, now));
  };
}

function given<T>(value: string | undefined, read: (text: string) => T | undefined, problem: string): T | undefined {
  if (value === undefined) return undefined;
  const found = read(value);
  if (found === undefined) throw new UsageError(problem);
  return found;
}

function limitFrom(value: string | undefined): number {
  const read = (text: string) => {
    const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
    return limit >= 1 && limit <= maxPage ? limit : undefined;
  };
  return given(value, read, `--limit must be a number from 1 to ${maxPage}`) ?? 50;
}

function idFrom(value: string): bigint | undefined {
  return /^\d{1,18}$/.test(value) ? BigInt(value) : undefined;
}

function directionFrom(value: string): 'in' | 'out' | undefined {
  return value === 'in' || value === 'out' ? value : undefined;
}

function sessionFrom(value: string): MessageSession | undefined {
  return value === 'order' ? value : value === 'drop-copy' ? 'drop_copy' : undefined;
}

function numbersFrom(value: string): { from: bigint; to: bigint } | undefined {
  const [, first, last = first] = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(value) ?? [];
  if (first === undefined || last === undefined) return undefined;
  const [from, to] = [BigInt(first), BigInt(last)];
  return to >= from && to - from < maxNumbers ? { from, to } : undefined;
}
