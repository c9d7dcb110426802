import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { Database } from '../db/database.ts';
import {
  type AdvanceClockRequest,
  type AdvanceClockResponse,
  AdvanceClockResponseSchema,
} from '../gen/marina/admin/v1/clock_pb.ts';
import {
  type PauseTradingRequest,
  type PauseTradingResponse,
  PauseTradingResponseSchema,
  type ResumeTradingRequest,
  type ResumeTradingResponse,
  ResumeTradingResponseSchema,
} from '../gen/marina/admin/v1/trading_pb.ts';
import type { SystemClock } from '../lib/clock.ts';
import type { Notifications } from '../lib/notifications.ts';
import { type EnvironmentState, environments, lockEnvironment, toOffsetMs } from '../submission/environment.ts';
import { audit } from './audit.ts';
import { AdminError, invalidField, type Operator } from './call.ts';

export interface AdminParts {
  readonly database: Database;
  readonly clock: SystemClock;
  readonly environment: EnvironmentState;
  readonly notifications: Notifications;
  /** Moves the simulator's clock to an offset; undefined where there is no simulator. */
  readonly moveSimulator: ((offsetMs: number) => Promise<void>) | undefined;
}

/** The notifications by which the other processes learn what an operator changed. */
export const notificationNames = {
  environmentChanged: 'environment-changed',
  keyRevoked: 'key-revoked',
  partnerChanged: 'partner-changed',
  accountUnlinked: 'account-unlinked',
} as const;

const longestAdvanceMs = 400 * 86_400_000;

/** The operators' calls. Each writes down who did what, in the transaction that does it. */
export function adminHandlers(parts: AdminParts) {
  const { database, clock, environment, notifications } = parts;

  async function advanceClock(request: AdvanceClockRequest, operator: Operator): Promise<AdvanceClockResponse> {
    const { seconds, nanos } = request.by ?? { seconds: 0n, nanos: 0 };
    const byMs = Number(seconds) * 1_000 + Math.floor(nanos / 1e6);
    if (seconds < 0n || nanos < 0 || nanos > 999_999_999 || byMs > longestAdvanceMs) {
      throw invalidField('by', 'must be 0 to 400 days.');
    }
    const offsetMs = await database.transaction([lockEnvironment()], ([rows]) => {
      const before = toOffsetMs(rows);
      const offset = before + byMs;
      const said = audit({
        at: clock.now(),
        operator,
        action: 'Clock.AdvanceClock',
        detail: { byMs },
        before: { offsetMs: before },
        after: { offsetMs: offset },
      });
      return {
        writes: [environments.set({ id: 1 }, { clockOffsetMs: BigInt(offset) }), said],
        result: offset,
      };
    });
    await told();
    try {
      await parts.moveSimulator?.(offsetMs);
    } catch (error) {
      throw new AdminError(
        status.UNAVAILABLE,
        'the gateway moved, and the simulator did not: advance by 0 to try again',
        { cause: error },
      );
    }
    return create(AdvanceClockResponseSchema, {
      now: timestampFromMs(clock.now()),
      offsetMs: BigInt(offsetMs),
    });
  }

  async function setPaused(pause: boolean, reason: string, operator: Operator): Promise<boolean> {
    const changed = await database.transaction([lockEnvironment()], ([rows]) => {
      const isPaused = rows?.[0]?.trading_paused_at !== null;
      if (isPaused === pause) return { writes: [], result: false };
      const action = pause ? 'Trading.PauseTrading' : 'Trading.ResumeTrading';
      return {
        writes: [
          environments.set({ id: 1 }, { tradingPausedAt: pause ? clock.now() : null }),
          audit({
            at: clock.now(),
            operator,
            action,
            detail: { reason },
            before: { paused: isPaused },
            after: { paused: pause },
          }),
        ],
        result: true,
      };
    });
    await told();
    return changed;
  }

  async function pauseTrading({ reason }: PauseTradingRequest, operator: Operator): Promise<PauseTradingResponse> {
    return create(PauseTradingResponseSchema, { changed: await setPaused(true, reason, operator) });
  }

  async function resumeTrading({ reason }: ResumeTradingRequest, operator: Operator): Promise<ResumeTradingResponse> {
    return create(ResumeTradingResponseSchema, { changed: await setPaused(false, reason, operator) });
  }

  /** This process knows at once, the others when the message comes or when they next look. */
  async function told(): Promise<void> {
    await environment.refresh();
    notifications.publish(notificationNames.environmentChanged);
  }

  return { clock: { advanceClock }, trading: { pauseTrading, resumeTrading } };
}
