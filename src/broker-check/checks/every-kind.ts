import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { groupBy } from '../../kit/group.ts';
import { pause } from '../../kit/worker.ts';
import { expect, NotOffered, NotRun, needed } from '../check.ts';
import type { CallOutcome, RecordedCall } from '../exchange.ts';
import type { CheckSession } from '../session.ts';
import { lastSubmission, listedAfter } from './submissions.ts';

const abandonedSends = 5;
/** How long an object that its sender gives up at once may still be taken. */
const abandonedMs = 400;
const never = new AbortController().signal;

/** Something that was sent, of whatever kind. */
interface Sent {
  readonly id: string;
  readonly outcome: CallOutcome<unknown>;
}

/** A `not_after` that is over. */
export const past = (): Timestamp => timestampFromMs(Date.now() - 60_000);

/** Throws `NotOffered` unless the adapter declares that it honours `not_after`. */
export async function declared(session: CheckSession): Promise<void> {
  const honours = await session.once('honours not_after', async () => {
    const { answer } = await session.call('Orders', 'getCapabilities', {});
    return answer?.honoursNotAfter ?? false;
  });
  if (!honours) throw new NotOffered('the adapter declares that it does not honour not_after');
}

/** Throws unless what is sent too late is refused as late. */
export async function refusesLate(session: CheckSession, sendLate: () => Promise<Sent>): Promise<void> {
  await declared(session);
  const { code, exchange } = (await sendLate()).outcome;
  expect(code === status.FAILED_PRECONDITION, `it ended with ${exchange.status}`, exchange);
}

/** Returns what was refused as late. Throws `NotRun` if it ended otherwise. */
export function late<S extends Sent>(sent: S): S {
  const { code, exchange } = sent.outcome;
  if (code !== status.FAILED_PRECONDITION) throw new NotRun(`the send ended with ${exchange.status}`);
  return sent;
}

/** Throws if several sends of one id were answered. */
export function takenOnce(sent: readonly Sent[]): void {
  const taken = sent.filter(({ outcome }) => outcome.answer !== undefined);
  const shown = taken.map(({ outcome }) => outcome.exchange);
  expect(taken.length <= 1, `${taken.length} were answered`, ...shown);
}

/** Throws unless a second send of an id was refused. */
export function refusedAgain(first: Sent, { code, exchange }: CallOutcome<unknown>): void {
  const isRefused = code === status.ALREADY_EXISTS;
  expect(isRefused, `the second send ended with ${exchange.status}`, first.outcome.exchange, exchange);
}

/** The look-up's answer about an object that its sender gave up. */
interface Abandoned {
  readonly id: string;
  /** Whether the broker has it. */
  readonly found: boolean;
  readonly exchanges: readonly RecordedCall[];
}

/** Sends and gives up at once. Throws unless the look-ups say for good, once `not_after` is over, what was taken. */
export async function abandoned<Answer>(
  session: CheckSession,
  send: (notAfter: Timestamp, timeoutMs: number) => Promise<Sent>,
  lookUp: (id: string) => Promise<CallOutcome<Answer>>,
  isFound: (answer: Answer) => boolean,
): Promise<readonly Abandoned[]> {
  await declared(session);
  const notAfterMs = Date.now() + abandonedMs;
  const sends = Array.from({ length: abandonedSends }, (_, at) => send(timestampFromMs(notAfterMs), 1 + at));
  const sent = await Promise.all(sends);
  await pause(Math.max(0, notAfterMs + session.settings.waits.skewMs - Date.now()), never);
  const first = await Promise.all(sent.map(({ id }) => lookUp(id)));
  await pause(abandonedMs, never);
  const settled: Abandoned[] = [];
  for (const [at, { id, outcome }] of sent.entries()) {
    const before = first[at];
    if (before?.answer === undefined) continue;
    const { answer, exchange } = await lookUp(id);
    if (answer === undefined) continue;
    const exchanges = [outcome.exchange, before.exchange, exchange];
    const found = isFound(answer);
    expect(isFound(before.answer) === found, 'the look-up changed its mind after not_after', ...exchanges);
    settled.push({ id, found, exchanges });
  }
  return settled;
}

/** Throws unless what is sent is among the submissions, once, with its note. */
export async function listedOnce(
  session: CheckSession,
  send: () => Promise<Sent & { readonly request: { readonly note?: Uint8Array } }>,
): Promise<void> {
  const before = await lastSubmission(session);
  const { id, request, outcome } = await send();
  const { submissions, exchanges } = await listedAfter(session, before);
  const found = submissions.filter(({ clientId }) => clientId === id);
  expect(found.length === 1, `${id} is listed ${found.length} times`, outcome.exchange, ...exchanges);
  const isKept = Buffer.from(found[0]?.note ?? []).equals(Buffer.from(request.note ?? []));
  expect(isKept, 'its note is another', outcome.exchange, ...exchanges);
}

/** Throws unless a look-up says that the record is complete up to a time that has passed. */
export function completeUntilPast(
  session: CheckSession,
  outcome: CallOutcome<{ readonly completeUntil?: Timestamp | undefined }>,
): void {
  const { answer, exchange, endedAt } = needed(outcome, 'the look-up');
  if (answer.completeUntil === undefined) throw new NotOffered('complete_until is absent');
  const aheadMs = timestampMs(answer.completeUntil) - endedAt;
  const isPast = aheadMs <= session.settings.waits.skewMs;
  expect(isPast, `it is ${aheadMs} ms ahead: what comes until then would be given up`, exchange);
}

/** The reports about objects of this run that a stream brought, by the object's id. */
export function reportsById<Report>(
  sent: readonly Sent[],
  reports: readonly Report[],
  idOf: (report: Report) => string,
): ReadonlyMap<string, readonly Report[]> {
  const ours = new Set(sent.map(({ id }) => id));
  return groupBy(
    reports.filter((report) => ours.has(idOf(report))),
    idOf,
  );
}
