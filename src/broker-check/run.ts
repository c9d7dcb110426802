import { status } from '@grpc/grpc-js';
import { StatementSection } from '../gen/marina/broker/v1/statements_pb.ts';
import { daysBefore, lagosDay } from '../kit/clock.ts';
import { Breach, type Check, type CheckClass, type Need, NotOffered, NotRun } from './check.ts';
import type { RecordedCall } from './exchange.ts';
import type { Open } from './follower.ts';
import { beyond, CheckSession, isMissing, type ServiceName } from './session.ts';
import type { Settings } from './settings.ts';

export type Verdict = 'passed' | 'failed' | 'not run' | 'not offered';

/** The result of one check. */
export interface Result {
  readonly id: string;
  readonly class: CheckClass;
  readonly promise: string;
  readonly verdict: Verdict;
  /** Why it failed, or was not run. */
  readonly reason?: string;
  /** The calls that showed a breach. */
  readonly exchanges: readonly RecordedCall[];
  readonly tookMs: number;
}

/** The reason why a need is not met, for people. */
const lacks: Readonly<Record<Exclude<Need, ServiceName>, string>> = {
  account: '--account is not given',
  rest: '--rest is not given',
  fill: '--fill is not given',
  reject: '--reject is not given',
  restart: '--restart-command is not given',
  cut: '--cut-command and --mend-command are not given',
  allocate: '--allocate is not given',
  'reject-allocation': '--reject-allocation is not given',
  withdraw: '--withdraw is not given',
  'reject-withdrawal': '--reject-withdrawal is not given',
  apply: '--application is not given',
};

/** How much longer than its own bounds a check may take. */
const longestCheckMs = 240_000;

/** Runs checks one after another, and says of each how it ended. `onResult` sees each at once. */
export async function runChecks(
  checks: readonly Check[],
  settings: Settings,
  onResult: (result: Result) => void = () => {},
): Promise<Result[]> {
  const session = new CheckSession(settings);
  const results: Result[] = [];
  try {
    const isReachable = await answers(session);
    const missing = isReachable ? await missingServices(session) : new Set<ServiceName>();
    if (isReachable) await follow(session, missing);
    for (const check of checks) {
      if (settings.only !== undefined && !settings.only.includes(check.id)) continue;
      const startedAt = performance.now();
      // The first check says what is wrong with an adapter that cannot be reached.
      const isRun = isReachable || check === checks[0];
      const found = isRun ? await outcomeOf(check, session, missing) : unreachable;
      const { id, promise } = check;
      const result: Result = {
        ...{ id, class: check.class, promise, exchanges: [] },
        ...found,
        tookMs: Math.round(performance.now() - startedAt),
      };
      results.push(result);
      onResult(result);
    }
  } finally {
    await session.close();
  }
  return results;
}

type Found = Pick<Result, 'verdict'> & Partial<Pick<Result, 'reason' | 'exchanges'>>;

const unreachable: Found = { verdict: 'not run', reason: 'the adapter cannot be reached' };

async function answers(session: CheckSession): Promise<boolean> {
  const { code } = await session.call('Orders', 'getCapabilities', {});
  return code !== status.UNAVAILABLE && code !== status.DEADLINE_EXCEEDED;
}

/** Follows the streams of reports from where they are now. */
async function follow(session: CheckSession, missing: ReadonlySet<ServiceName>): Promise<void> {
  const { silenceMs } = session.settings.waits;
  session.follow(await lastNumber(session.openReports, silenceMs));
  const { application, withdrawKobo } = session.settings;
  if (!missing.has('Applications') && application !== undefined) {
    session.followApplications(await lastNumber(session.openApplicationReports, silenceMs));
  }
  if (!missing.has('Withdrawals') && withdrawKobo !== undefined) {
    session.followWithdrawals(await lastNumber(session.openWithdrawalReports, silenceMs));
  }
}

/** The number of the adapter's last report, where it states it. */
async function lastNumber<Report>(open: Open<Report>, boundMs: number): Promise<bigint> {
  try {
    for await (const { lastNumber } of open(beyond, AbortSignal.timeout(boundMs))) {
      return lastNumber < beyond ? lastNumber : 0n;
    }
  } catch {
    // A check says what is wrong with it.
  }
  return 0n;
}

/** The services that the adapter does not have. */
async function missingServices(session: CheckSession): Promise<ReadonlySet<ServiceName>> {
  const id = session.newId();
  const probes = {
    Accounts: session.call('Accounts', 'getMarket', {}),
    Allocations: session.call('Allocations', 'lookUpAllocation', { clientAllocationId: id }),
    Applications: session.call('Applications', 'lookUpApplication', { clientApplicationId: id }),
    Reference: session.call('Reference', 'listStates', {}),
    Statements: session.call('Statements', 'getStatement', {
      day: daysBefore(lagosDay(Date.now()), 1),
      section: StatementSection.ORDERS,
      limit: 1,
    }),
    Submissions: session.call('Submissions', 'listSubmissions', { limit: 1 }),
    Withdrawals: session.call('Withdrawals', 'lookUpWithdrawal', { clientWithdrawalId: id }),
  };
  const missing = new Set<ServiceName>();
  for (const [name, probe] of Object.entries(probes)) if (isMissing(await probe)) missing.add(name as ServiceName);
  return missing;
}

async function outcomeOf(check: Check, session: CheckSession, missing: ReadonlySet<ServiceName>): Promise<Found> {
  for (const need of check.needs) {
    if (missing.has(need as ServiceName)) {
      return { verdict: 'not offered', reason: `the adapter answers UNIMPLEMENTED to the service ${need}` };
    }
    const lack = lackOf(need, session.settings);
    if (lack !== undefined) return { verdict: 'not run', reason: lack };
  }
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Breach(`it did not end within ${longestCheckMs / 1_000} s`)), longestCheckMs);
  });
  try {
    await Promise.race([check.run(session), late]);
    return { verdict: 'passed' };
  } catch (error) {
    if (error instanceof NotRun) return { verdict: 'not run', reason: error.message };
    if (error instanceof NotOffered) return { verdict: 'not offered', reason: error.message };
    if (error instanceof Breach) return { verdict: 'failed', reason: error.message, exchanges: error.exchanges };
    return { verdict: 'failed', reason: `the check itself failed: ${(error as Error).stack}` };
  } finally {
    clearTimeout(timer);
  }
}

function lackOf(need: Need, { hooks, ...settings }: Settings): string | undefined {
  const given: Readonly<Record<string, unknown>> = {
    account: settings.account,
    rest: settings.rest,
    fill: settings.fill,
    reject: settings.reject,
    restart: hooks.restart,
    cut: hooks.cut,
    allocate: settings.allocateKobo,
    'reject-allocation': settings.rejectAllocationKobo,
    withdraw: settings.withdrawKobo,
    'reject-withdrawal': settings.rejectWithdrawalKobo,
    apply: settings.application,
  };
  return need in lacks && given[need] === undefined ? lacks[need as keyof typeof lacks] : undefined;
}
