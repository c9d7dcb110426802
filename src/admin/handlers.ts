import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { Authenticator } from '../auth/authenticate.ts';
import { revokeKey } from '../auth/store.ts';
import type { Database } from '../db/database.ts';
import { statement } from '../db/statement.ts';
import type { Carrier } from '../events/carrier.ts';
import {
  type AdvanceClockRequest,
  type AdvanceClockResponse,
  AdvanceClockResponseSchema,
} from '../gen/marina/admin/v1/clock_pb.ts';
import {
  type RevokeKeyRequest,
  type RevokeKeyResponse,
  RevokeKeyResponseSchema,
} from '../gen/marina/admin/v1/keys_pb.ts';
import {
  type PauseTradingRequest,
  type PauseTradingResponse,
  PauseTradingResponseSchema,
  type ResumeTradingRequest,
  type ResumeTradingResponse,
  ResumeTradingResponseSchema,
} from '../gen/marina/admin/v1/trading_pb.ts';
import type { SystemClock } from '../lib/clock.ts';
import { audit } from './audit.ts';
import { type EnvironmentState, lockEnvironment, toOffsetMs } from './environment.ts';
import { AdminError, type Operator } from './server.ts';

export interface AdminParts {
  readonly database: Database;
  readonly clock: SystemClock;
  readonly environment: EnvironmentState;
  readonly authenticator: Authenticator;
  readonly carrier: Carrier;
  /** Moves the simulator's clock to an offset; undefined where there is no simulator. */
  readonly moveSimulator: ((offsetMs: number) => Promise<void>) | undefined;
}

/** The words processes say to each other when an operator changed something. */
export const words = { environmentChanged: 'environment-changed', keyRevoked: 'key-revoked' } as const;

const longestAdvanceMs = 400 * 86_400_000;
const longestReasonBytes = 200;

/** The operators' calls. Each writes down who did what, in the transaction that does it. */
export function adminHandlers(parts: AdminParts) {
  const { database, clock, environment, authenticator, carrier } = parts;

  async function advanceClock(request: AdvanceClockRequest, operator: Operator): Promise<AdvanceClockResponse> {
    const { seconds, nanos } = request.by ?? { seconds: 0n, nanos: 0 };
    const byMs = Number(seconds) * 1_000 + Math.floor(nanos / 1e6);
    if (seconds < 0n || nanos < 0 || nanos > 999_999_999 || byMs > longestAdvanceMs) {
      throw new AdminError(status.INVALID_ARGUMENT, '`by` must be 0 to 400 days');
    }
    const offsetMs = await database.transaction([lockEnvironment()], ([rows]) => {
      const offset = toOffsetMs(rows) + byMs;
      return {
        writes: [
          statement('UPDATE environment SET clock_offset_ms = ? WHERE id = 1', offset),
          audit({ at: clock.now(), operator, action: 'Clock.AdvanceClock', detail: { byMs, offsetMs: offset } }),
        ],
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
        error,
      );
    }
    return create(AdvanceClockResponseSchema, {
      now: timestampFromMs(clock.now()),
      offsetMs: BigInt(offsetMs),
    });
  }

  async function setPaused(pause: boolean, reason: string, operator: Operator): Promise<boolean> {
    checkReason(reason);
    const changed = await database.transaction([lockEnvironment()], ([rows]) => {
      const isPaused = rows?.[0]?.trading_paused_at !== null;
      if (isPaused === pause) return { writes: [], result: false };
      const action = pause ? 'Trading.PauseTrading' : 'Trading.ResumeTrading';
      return {
        writes: [
          statement('UPDATE environment SET trading_paused_at = ? WHERE id = 1', pause ? new Date(clock.now()) : null),
          audit({ at: clock.now(), operator, action, detail: { reason } }),
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

  async function revoke({ keyId, reason }: RevokeKeyRequest, operator: Operator): Promise<RevokeKeyResponse> {
    checkReason(reason);
    const find = statement('SELECT revoked_at FROM api_keys WHERE id = ? FOR UPDATE', keyId);
    const changed = await database.transaction([find], ([rows]) => {
      const key = rows?.[0];
      if (key === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such key');
      if (key.revoked_at !== null) return { writes: [], result: false };
      const entry = { at: clock.now(), operator, action: 'Keys.RevokeKey', subject: keyId, detail: { reason } };
      return { writes: [revokeKey(keyId, clock.now()), audit(entry)], result: true };
    });
    authenticator.forget(keyId);
    carrier.say(words.keyRevoked, keyId);
    return create(RevokeKeyResponseSchema, { changed });
  }

  /** This process knows at once, the others when the message comes or when they next look. */
  async function told(): Promise<void> {
    await environment.refresh();
    carrier.say(words.environmentChanged);
  }

  return { clock: { advanceClock }, trading: { pauseTrading, resumeTrading }, keys: { revokeKey: revoke } };
}

function checkReason(reason: string): void {
  if (Buffer.byteLength(reason) > longestReasonBytes) {
    throw new AdminError(status.INVALID_ARGUMENT, '`reason` must be at most 200 bytes');
  }
}
