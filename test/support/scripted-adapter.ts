import assert from 'node:assert/strict';
import { create, type DescMethod } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { Breach, type Check, NotOffered, NotRun } from '../../src/broker-check/check.ts';
import { exchange, type RecordedCall } from '../../src/broker-check/exchange.ts';
import type { Open } from '../../src/broker-check/follower.ts';
import { CheckSession, services } from '../../src/broker-check/session.ts';
import { type Settings, usualWaits, type Waits } from '../../src/broker-check/settings.ts';

/** The end of a call with a status. */
export class Ended extends Error {
  readonly details = 'as the test says';

  constructor(readonly code: status) {
    super(status[code]);
  }
}

export const ended = (code: status): Ended => new Ended(code);

/** The request of a scripted call. */
// biome-ignore lint/suspicious/noExplicitAny: the requests of all methods are of different types.
export type Asked = any;

/** An answer's fields, or the end of the call. `nth` counts the calls of the method from 0. */
type Answer = object | ((request: Asked, nth: number, timeoutMs: number | undefined) => object);

/** The answers of an adapter by method. It has no other methods. */
export type Script = Readonly<Record<string, Answer>>;

type Stream = Open<never>;

/** An adapter that answers as a test says, and how broker-check is told to check it. */
export interface Scripted {
  readonly answers: Script;
  readonly settings?: Partial<Omit<Settings, 'waits'>>;
  readonly waits?: Partial<Waits>;
  readonly orderReports?: Stream;
  readonly applicationReports?: Stream;
  readonly withdrawalReports?: Stream;
}

/** A session of broker-check with an adapter that answers as a test says. */
export function scriptedSession({ answers, settings, waits, ...streams }: Scripted): CheckSession {
  const session = new CheckSession({
    ...{ address: '127.0.0.1:1', account: 'ACC1', rest: 'RESTS', fill: 'FILLS', reject: 'REJECTS', quantity: 10n },
    ...{ allocateKobo: 500n, rejectAllocationKobo: 501n, withdrawKobo: 300n, rejectWithdrawalKobo: 301n },
    ...{ application: { firstName: 'Ada', lastName: 'Obi', email: 'a{n}@example.com', state: 'LAGOS' }, hooks: {} },
    ...settings,
    waits: { ...usualWaits, settleMs: 1, hookMs: 1, skewMs: 200, silenceMs: 1_000, ...waits },
  });
  const counts = new Map<string, number>();
  const call = async (service: keyof typeof services, method: string, request: object, timeoutMs?: number) => {
    const descriptor = (services[service].method as Record<string, DescMethod>)[method] ?? assert.fail(method);
    const nth = counts.get(method) ?? 0;
    counts.set(method, nth + 1);
    const answered = async () => {
      const given = answers[method] ?? ended(status.UNIMPLEMENTED);
      const answer =
        typeof given === 'function' ? given(create(descriptor.input, request as never), nth, timeoutMs) : given;
      if (answer instanceof Ended) throw answer;
      return create(descriptor.output, answer as never);
    };
    const outcome = await exchange(descriptor, answered, request as never, {} as never);
    session.calls.push({ outcome, bounded: 1, isDisturbed: session.isDisturbed });
    return outcome;
  };
  const { orderReports, applicationReports, withdrawalReports } = streams;
  return Object.assign(session, {
    call,
    ...(orderReports && { openReports: orderReports }),
    ...(applicationReports && { openApplicationReports: applicationReports }),
    ...(withdrawalReports && { openWithdrawalReports: withdrawalReports }),
  }) as unknown as CheckSession;
}

/** How a check ended: its verdict, why, and the calls that it shows. */
export interface Verdict {
  readonly is: 'kept' | 'breach' | 'not run' | 'not offered';
  readonly why: string;
  readonly shown: readonly RecordedCall[];
}

/** Runs a check with a session, and returns its verdict. */
export async function verdictOf(checks: readonly Check[], id: string, session: CheckSession): Promise<Verdict> {
  const check = checks.find((each) => each.id === id) ?? assert.fail(`there is no check ${id}`);
  try {
    await check.run(session);
    return { is: 'kept', why: '', shown: [] };
  } catch (error) {
    const why = (error as Error).message;
    if (error instanceof Breach) return { is: 'breach', why, shown: error.exchanges };
    if (error instanceof NotOffered) return { is: 'not offered', why, shown: [] };
    if (error instanceof NotRun) return { is: 'not run', why, shown: [] };
    throw error;
  }
}

/**
 * A case of a table: a check, how it ends, and what the adapter has in place of its right answers. `more` is how broker-check
 * is told to check it, or the adapter's streams.
 */
export type CheckCase<Right> = readonly [
  id: string,
  expected: Verdict['is'],
  answers?: Script | ((right: Right) => Script),
  more?: Omit<Scripted, 'answers'>,
];

/** Holds checks against a right adapter and wrong ones. Each check must have a case. */
export async function holdCases<Right extends { readonly answers: Script }>(
  checks: readonly Check[],
  makeRight: () => Right,
  cases: readonly CheckCase<Right>[],
  follow: (session: CheckSession, right: Right) => void = () => {},
): Promise<void> {
  for (const [at, [id, expected, given, more]] of cases.entries()) {
    const right = makeRight();
    const answers = { ...right.answers, ...(typeof given === 'function' ? given(right) : given) };
    // A right adapter reports at once, but on a busy machine not within a moment.
    const waits = { ...(expected === 'kept' && { settleMs: 10_000 }), ...more?.waits };
    const session = scriptedSession({ ...more, waits, answers });
    follow(session, right);
    const { is, why, shown } = await verdictOf(checks, id, session);
    await session.close();
    assert.equal(is, expected, `${id}, case ${at}: ${why}`);
    if (is === 'breach') assert.ok(shown.length > 0, `${id}, case ${at}, shows no call`);
  }
  const without = checks.map(({ id }) => id).filter((id) => !cases.some(([of]) => of === id));
  assert.deepEqual(without, [], 'these checks have no case');
}
