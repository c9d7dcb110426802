import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { LookUpOrderResponse } from '../../gen/marina/broker/v1/orders_pb.ts';
import { pause } from '../../kit/worker.ts';
import { expect, NotRun } from '../check.ts';
import type { CallOutcome } from '../exchange.ts';
import { type CheckSession, poll, type SentOrder, shownReport } from '../session.ts';
import { isSameReport } from './rules.ts';

/** How long an order may be taken that is sent while a hook is at work. */
const shortMs = 1_500;
const betweenSendsMs = 30;
/** An order that was not found is looked for again after it. */
const againMs = 400;
const maxSends = 40;
/** An order in doubt, and its look-up while the exchange was away and its time was over. */
export interface OrderInDoubt {
  readonly sent: SentOrder;
  readonly lookUp: CallOutcome<LookUpOrderResponse>;
}

const never = new AbortController().signal;

/** Sends orders one after another while a hook is at work, and returns them. Throws `NotRun` if the hook fails. */
export async function sentDuring(session: CheckSession, hook: (() => Promise<void>) | undefined): Promise<SentOrder[]> {
  const sent: SentOrder[] = [];
  let isOver = false;
  const sending = (async () => {
    while (!isOver && sent.length < maxSends) {
      sent.push(await sendShort(session));
      await pause(betweenSendsMs, never);
    }
  })();
  try {
    await hook?.();
  } catch (error) {
    throw new NotRun((error as Error).message);
  } finally {
    isOver = true;
    await sending;
  }
  return sent;
}

/** Sends an order that may be taken for a short time only. */
export async function sendShort(session: CheckSession): Promise<SentOrder> {
  return session.send(await session.newOrder('rest', { notAfter: timestampFromMs(Date.now() + shortMs) }));
}

/** Throws unless every order that was answered with a report is in the record with it. */
export async function answersKept(session: CheckSession, sent: readonly SentOrder[]): Promise<void> {
  for (const { id, outcome } of sent) {
    const report = outcome.answer?.report;
    if (report === undefined) continue;
    const { found, reports, exchanges } = await session.recorded(id);
    expect(found, `${id} was answered with a report, and is not found`, outcome.exchange, ...exchanges);
    const kept = reports.find(({ number }) => number === report.number);
    const isKept = kept !== undefined && isSameReport(kept, report);
    expect(isKept, `report ${report.number} is not there as it was answered`, outcome.exchange, ...exchanges);
  }
}

/** Throws if an order was taken that had ended with FAILED_PRECONDITION. */
export async function refusalsHold(session: CheckSession, sent: readonly SentOrder[]): Promise<void> {
  for (const { id, outcome } of sent) {
    if (outcome.code !== status.FAILED_PRECONDITION) continue;
    const { found, exchanges } = await session.recorded(id);
    expect(!found, `${id} was refused for good, and the record has it`, outcome.exchange, ...exchanges);
    const reports = session.streamed(id);
    const shown = session.follower.shown(reports.map(shownReport));
    expect(reports.length === 0, `${id} was refused for good, and the stream has it`, outcome.exchange, shown);
  }
}

/** Returns the orders that were sent and have no clear answer. */
export function inDoubt(sent: readonly SentOrder[]): readonly SentOrder[] {
  return sent.filter(({ outcome }) => {
    return outcome.answer?.report === undefined && outcome.code !== status.FAILED_PRECONDITION;
  });
}

/** Waits until `not_after` of all is over by both clocks. */
export async function overdue(sent: readonly SentOrder[], skewMs: number): Promise<void> {
  const lastMs = Math.max(...sent.map(({ request }) => timestampMs(request.notAfter as never)), 0);
  await pause(Math.max(0, lastMs + skewMs - Date.now()), never);
}

/** Throws if an order in doubt was not found while the exchange was away, and the adapter has it afterwards. */
export async function unknownHonest(session: CheckSession, looked: readonly OrderInDoubt[]): Promise<void> {
  for (const { sent, lookUp } of looked) {
    if (lookUp.answer === undefined || lookUp.answer.found) continue;
    const later = await poll(session.settings.waits.hookMs, async () => {
      const outcome = await session.lookUp(sent.id);
      return outcome.answer === undefined ? undefined : outcome;
    });
    if (later === undefined) throw new NotRun(`the look-up of ${sent.id} has no answer`);
    const has = later.answer?.found === true || session.streamed(sent.id).length > 0;
    const shown = [sent.outcome.exchange, lookUp.exchange, later.exchange];
    expect(!has, `${sent.id} was in doubt and "not found", and the adapter has it`, ...shown);
  }
}

/** Throws unless the look-up says for good what became of each order that was left without a clear answer. */
export async function doubtsSettle(session: CheckSession, sent: readonly SentOrder[]): Promise<void> {
  const { hookMs, skewMs } = session.settings.waits;
  const doubts = inDoubt(sent);
  await overdue(doubts, skewMs);
  const settled = await Promise.all(
    doubts.map(async ({ id, outcome }) => {
      const answer = await poll(hookMs, async () => (await session.lookUp(id)).answer);
      const { exchange } = await session.lookUp(id);
      expect(answer !== undefined, `the look-up of ${id} has no answer in ${hookMs} ms`, outcome.exchange, exchange);
      return { id, outcome, found: answer.found, exchange };
    }),
  );
  if (settled.length > 0) await pause(againMs, never);
  for (const { id, outcome, found, exchange } of settled) {
    const again = await session.recorded(id);
    const shown = [outcome.exchange, exchange, ...again.exchanges];
    expect(again.found === found, `the look-up of ${id} changed its mind after not_after`, ...shown);
    const streamed = await (found ? session.streamedReport(id, () => true) : session.streamed(id)[0]);
    expect((streamed !== undefined) === found, `the stream and the look-up of ${id} disagree`, ...shown);
  }
}
