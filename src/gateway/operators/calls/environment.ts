import { status } from '@grpc/grpc-js';
import { Clock } from '../../../gen/marina/admin/v1/clock_pb.ts';
import { Trading } from '../../../gen/marina/admin/v1/trading_pb.ts';
import type { Controls } from '../../../gen/marina/simulator/v1/controls_pb.ts';
import type { GrpcClient } from '../../../kit/grpc-client.ts';
import { statement } from '../../store/statement.ts';
import { type EnvironmentState, environmentState, environments } from '../../trading/submission/environment.ts';
import { audit } from './audit.ts';
import { bulkCancelCalls } from './bulk-cancels.ts';
import { type AdminCall, type AdminParts, adminService } from './call.ts';
import { AdminError, invalidField } from './errors.ts';
import { type ChangeEnvironment, stopCalls } from './stops.ts';
import type { IsListed } from './symbol-at-broker.ts';

const longestAdvanceMs = 400 * 86_400_000;

interface EnvironmentParts extends AdminParts {
  readonly environment: EnvironmentState;
  /** Notifies the other processes. */
  readonly changed: () => void;
  /** Its clock moves together with ours. */
  readonly simulator: GrpcClient<typeof Controls> | undefined;
  /** The simulator's deadline. */
  readonly timeoutMs: number;
  /** Asks the broker about a symbol. */
  readonly isListed: IsListed;
}

/** The operators' calls that pause and stop trading, that cancel open orders, and that advance a sandbox's clock. */
export function environmentServices(parts: EnvironmentParts) {
  const { database, clock, ids, environment, changed, simulator, timeoutMs, isListed } = parts;
  /** This process applies a change at once, others after the notification or their next poll. */
  const change: ChangeEnvironment = async (decide, ...reads) => {
    const lock = environments.find({ id: 1 }, environmentState, statement('FOR UPDATE'));
    const result = await database.transaction([lock, ...reads], ([rows, ...read]) => {
      const row = rows?.[0];
      if (row === undefined) throw new Error('the database has no environment');
      return decide(environmentState.read(row), read);
    });
    await environment.refresh();
    changed();
    return result;
  };

  async function setPaused(paused: boolean, { reason }: { readonly reason: string }, call: AdminCall) {
    const isChanged = await change(({ tradingPausedAt }) => {
      const isPaused = tradingPausedAt !== null;
      if (isPaused === paused) return { writes: [], result: false };
      const at = clock.now();
      const entry = { detail: { reason }, before: { paused: isPaused }, after: { paused } };
      const set = environments.set({ id: 1 }, { tradingPausedAt: paused ? at : null });
      return { writes: [set, audit(call, at, entry)], result: true };
    });
    return { changed: isChanged };
  }

  const trading = adminService(Trading, {
    pauseTrading: (request, call) => setPaused(true, request, call),
    resumeTrading: (request, call) => setPaused(false, request, call),
    ...stopCalls({ database, clock, ids }, change, isListed),
    ...bulkCancelCalls({ database, clock, ids }),
  });

  const advance = adminService(Clock, {
    async advanceClock({ by, reason }, call) {
      const { seconds, nanos } = by ?? { seconds: 0n, nanos: 0 };
      const byMs = Number(seconds) * 1_000 + Math.floor(nanos / 1e6);
      if (seconds < 0n || nanos < 0 || nanos > 999_999_999 || byMs > longestAdvanceMs) {
        throw invalidField('by', 'must be 0 to 400 days.');
      }
      const offsetMs = await change(({ clockOffsetMs: before }) => {
        const after = before + BigInt(byMs);
        const entry = {
          detail: { byMs, reason },
          before: { offsetMs: Number(before) },
          after: { offsetMs: Number(after) },
        };
        const writes = [environments.set({ id: 1 }, { clockOffsetMs: after }), audit(call, clock.now(), entry)];
        return { writes, result: after };
      });
      try {
        await simulator?.setClock({ offsetMs }, { timeoutMs });
      } catch (error) {
        throw new AdminError(
          status.UNAVAILABLE,
          'the gateway moved, and the simulator did not: advance by 0 to try again',
          { cause: error },
        );
      }
      return { now: clock.now(), offsetMs };
    },
  });

  return { trading, clock: advance };
}
