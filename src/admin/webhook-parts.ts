import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { Database } from '../db/database.ts';
import type { Decision, SqlRow, Statement } from '../db/statement.ts';
import { AttemptOutcome } from '../gen/marina/admin/v1/webhooks_pb.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdMaker } from '../lib/ids.ts';
import { findEndpoint, lockEndpoint, type StoredEndpoint, toEndpoint } from '../webhooks/endpoint-store.ts';
import type { Outcome } from '../webhooks/rules.ts';
import { audit } from './audit.ts';
import { AdminError, type Operator } from './call.ts';

/** What became of one attempt. */
export interface TestOutcome {
  readonly outcome: Outcome;
  readonly status: number | null;
  readonly errorClass: string | null;
  readonly durationMs: number;
}

export interface WebhookAdminParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly ids: IdMaker;
  /** Checks a URL, and answers with it as it will be used. Throws `invalid_request` with a sentence for people. */
  readonly checkUrl: (url: string) => string;
  readonly makeSecret: () => string;
  readonly seal: (partnerId: string, secret: string) => Buffer;
  /** Makes one attempt to send a body, signed like any other. */
  readonly sendTest: (endpoint: StoredEndpoint, id: string, body: Buffer) => Promise<TestOutcome>;
  /** Called when an endpoint was changed, or has something to be sent. */
  readonly onChange: (partnerId: string) => void;
}

export const outcomes: Record<Outcome, AttemptOutcome> = {
  delivered: AttemptOutcome.DELIVERED,
  'endpoint-failed': AttemptOutcome.ENDPOINT_FAILED,
  'event-failed': AttemptOutcome.EVENT_FAILED,
};

/** Changes an endpoint under its lock, and tells those who send to it. */
export async function changeEndpoint<T>(
  { database, clock, onChange }: WebhookAdminParts,
  partnerId: string,
  decide: (endpoint: StoredEndpoint, now: number, rows: SqlRow[][]) => Decision<T>,
  reads: readonly Statement[] = [],
): Promise<T> {
  const result = await database.transaction<T>([lockEndpoint(partnerId), ...reads], ([rows, ...more]) => {
    const row = rows?.[0];
    if (row === undefined) throw noEndpoint();
    return decide(toEndpoint(row), clock.now(), more);
  });
  onChange(partnerId);
  return result;
}

/** A partner's endpoint. Refused when it has none. */
export async function readEndpoint(database: Database, partnerId: string): Promise<StoredEndpoint> {
  const [row] = await database.read(findEndpoint(partnerId));
  if (row === undefined) throw noEndpoint();
  return toEndpoint(row);
}

/** The line of the audit a call on webhooks leaves. */
export function entry(
  operator: Operator,
  call: string,
  partnerId: string,
  at: number,
  detail: Record<string, unknown>,
  before?: Record<string, unknown>,
  after?: Record<string, unknown>,
): Statement {
  return audit({ at, operator, action: `Webhooks.${call}`, partnerId, subject: partnerId, detail, before, after });
}

export function toTimestamp(ms: number | null): Timestamp | undefined {
  return ms === null ? undefined : timestampFromMs(ms);
}

function noEndpoint(): AdminError {
  return new AdminError(status.NOT_FOUND, 'the partner has no endpoint');
}
