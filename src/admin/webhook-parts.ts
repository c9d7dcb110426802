import { setTimeout as delay } from 'node:timers/promises';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { Database } from '../db/database.ts';
import type { Decision, SqlRow, Statement } from '../db/statement.ts';
import { AttemptOutcome } from '../gen/marina/admin/v1/webhooks_pb.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdMaker } from '../lib/ids.ts';
import { findAdopted, lockEndpoints } from '../webhooks/endpoint-store.ts';
import { type Outcome, rowServesMs, type SendResult } from '../webhooks/rules.ts';
import { type Endpoint, endpoints } from '../webhooks/table.ts';
import { type AuditEntry, audit } from './audit.ts';
import { AdminError, type Operator } from './call.ts';

export interface WebhookAdminParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly ids: IdMaker;
  /** Checks a URL, and answers with it as it will be used. Throws `invalid_request` with a sentence for people. */
  readonly checkUrl: (url: string) => string;
  readonly makeSecret: () => string;
  readonly seal: (partnerId: string, secret: string) => Buffer;
  /** Makes one attempt to send a body, signed like any other. */
  readonly sendTest: (endpoint: Endpoint, id: string, body: Buffer) => Promise<SendResult>;
  /** Called when an endpoint was changed, or has something to be sent. */
  readonly onChange: (partnerId: string) => void;
}

export const outcomes: Record<Outcome, AttemptOutcome> = {
  delivered: AttemptOutcome.DELIVERED,
  'endpoint-failed': AttemptOutcome.ENDPOINT_FAILED,
  'event-failed': AttemptOutcome.EVENT_FAILED,
};

/** Between the moment an attempt is decided and the one in which its time and signature are written. */
const adoptionMarginMs = 100;

/** Changes an endpoint under its lock, and notifies those who send to it. */
export async function changeEndpoint<T>(
  { database, clock, onChange }: WebhookAdminParts,
  partnerId: string,
  decide: (endpoint: Endpoint, now: number, rows: SqlRow[]) => Decision<T>,
  reads: readonly Statement[] = [],
): Promise<T> {
  const result = await database.transaction<T>([lockEndpoints([partnerId]), ...reads], ([found = [], rows = []]) =>
    decide(onlyEndpoint(found), clock.now(), rows),
  );
  onChange(partnerId);
  return result;
}

/**
 * Waits until no process begins an attempt by an endpoint's row as it was before the last change. The process that sends to
 * the endpoint says so, usually within milliseconds. One that says nothing, because it is frozen, was cut off or is of an
 * earlier version, is waited for as long as a row serves: after that it begins nothing by it.
 */
export async function waitUntilAdopted({ database }: WebhookAdminParts, partnerId: string): Promise<void> {
  const end = performance.now() + rowServesMs + adoptionMarginMs;
  for (let waitMs = 5; performance.now() < end; waitMs = Math.min(waitMs * 2, 80)) {
    // If the database does not answer, the time is waited for.
    const asking = database.read(findAdopted(partnerId)).catch(() => []);
    const late = new AbortController();
    const found = await Promise.race([asking, delay(end - performance.now(), [], { signal: late.signal })]);
    late.abort();
    if (found.length > 0) return;
    await delay(Math.max(0, Math.min(waitMs, end - performance.now())));
  }
}

/** A partner's endpoint. Refused when it has none. */
export async function readEndpoint(database: Database, partnerId: string): Promise<Endpoint> {
  return onlyEndpoint(await database.read(endpoints.find({ partnerId })));
}

/** The line of the audit that a call on webhooks leaves. */
export function entry(
  call: string,
  partnerId: string,
  operator: Operator,
  at: number,
  told: Pick<AuditEntry, 'detail' | 'before' | 'after'>,
): Statement {
  return audit({ at, operator, action: `Webhooks.${call}`, partnerId, subject: partnerId, ...told });
}

export function toTimestamp(ms: number | null): Timestamp | undefined {
  return ms === null ? undefined : timestampFromMs(ms);
}

function onlyEndpoint([row]: readonly SqlRow[]): Endpoint {
  if (row === undefined) throw new AdminError(status.NOT_FOUND, 'the partner has no endpoint');
  return endpoints.all.read(row);
}
