import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { AttemptOutcome, type Webhooks } from '../../../gen/marina/admin/v1/webhooks_pb.ts';
import { atMost } from '../../../kit/at-most.ts';
import type { Seal } from '../../../kit/key-ring.ts';
import {
  findAdopted,
  lockEndpoints,
  moved,
  newEndpoint,
  resumed,
  saveEndpoint,
} from '../../delivery/webhooks/plan/endpoint-store.ts';
import {
  type AttemptResult,
  rotationMs,
  rowServesMs,
  type SendResult,
  signsWithOld,
} from '../../delivery/webhooks/rules.ts';
import { type Endpoint, endpoints } from '../../delivery/webhooks/table.ts';
import type { Database } from '../../store/database.ts';
import { rowsFact } from '../../store/facts.ts';
import type { Decision, SqlRow, Statement } from '../../store/statement.ts';
import { type AuditEntry, audit } from './audit.ts';
import { type AdminCall, type AdminCalls, type AdminParts, requirePartner } from './call.ts';
import { AdminError } from './errors.ts';

export interface WebhookAdminParts extends AdminParts {
  /** Checks a URL, and returns its normal form. Throws `invalid_request` with a sentence for people. */
  readonly checkUrl: (url: string) => string;
  readonly makeSecret: () => string;
  readonly seal: Seal;
  /**
   * Sends a test event once, and first calls `note` with its id. Undefined if too many tests are under way.
   */
  readonly sendTest: (
    endpoint: Endpoint,
    note: (id: string, now: number) => Promise<unknown>,
  ) => Promise<(SendResult & { readonly id: string }) | undefined>;
  /** Called when an endpoint was changed or has events to send. */
  readonly onChange: () => void;
}

export const outcomes: Record<AttemptResult, AttemptOutcome> = {
  delivered: AttemptOutcome.DELIVERED,
  'endpoint-failed': AttemptOutcome.ENDPOINT_FAILED,
  'event-failed': AttemptOutcome.EVENT_FAILED,
};

/** The time between the decision on an attempt and its signature. */
const adoptionMarginMs = 100;

/** The operators' calls on endpoints: URL, secret and pauses. */
export function webhookEndpointCalls(
  parts: WebhookAdminParts,
): Omit<AdminCalls<typeof Webhooks>, 'listDeliveries' | 'redeliver'> {
  const { database, clock, seal } = parts;

  /** Makes a change, and returns the endpoint once it is in force; undefined if there was nothing to change. */
  async function change(
    { partnerId }: { readonly partnerId: string },
    call: AdminCall,
    changed: (endpoint: Endpoint, now: number) => Endpoint | undefined,
    entry: (before: Endpoint, after: Endpoint) => AuditEntry,
  ): Promise<Endpoint | undefined> {
    const endpoint = await changeEndpoint<Endpoint | undefined>(parts, partnerId, (before, now) => {
      const after = changed(before, now);
      if (after === undefined) return { writes: [], result: undefined };
      // The process that sends to it must confirm this revision.
      const { writes, saved } = saveEndpoint(before, { ...after, changedRevision: before.revision + 1n });
      return { writes: [...writes, audit(call, now, { ...entry(before, saved), partnerId })], result: saved };
    });
    await waitUntilAdopted(database, partnerId);
    return endpoint;
  }

  return {
    async registerEndpoint({ partnerId, url: text, reason }, call) {
      const url = parts.checkUrl(text);
      await requirePartner(database, partnerId);
      const secret = parts.makeSecret();
      const registeredAt = clock.now();
      const endpoint = await database.inPartnerTransaction(partnerId, {
        touches: ['webhook endpoint'],
        fact: rowsFact(lockEndpoints([partnerId])),
        decide: ([rows = []], { version: afterVersion }) => {
          if (rows.length > 0) {
            throw new AdminError(status.ALREADY_EXISTS, 'the partner has an endpoint: move it, or rotate its secret');
          }
          const sealed = seal.seal(partnerId, secret);
          const made = newEndpoint({ partnerId, url, secret: sealed, afterVersion, registeredAt });
          const entry = { partnerId, detail: { reason }, after: { url, afterVersion } };
          return { writes: [endpoints.insert(made), audit(call, registeredAt, entry)], result: made };
        },
      });
      return { endpoint: toMessage(endpoint, registeredAt), secret };
    },

    async moveEndpoint(request, call) {
      const url = parts.checkUrl(request.url);
      const endpoint = await change(
        request,
        call,
        (before) => moved(before, url),
        (before, after) => ({
          detail: { reason: request.reason },
          before: { url: before.url },
          after: { url: after.url },
        }),
      );
      return { endpoint: endpoint && toMessage(endpoint, clock.now()) };
    },

    async rotateSecret(request, call) {
      const secret = parts.makeSecret();
      const endpoint = await change(
        request,
        call,
        (before, now) => {
          const { oldSecretUntil } = before;
          if (oldSecretUntil !== null && signsWithOld(oldSecretUntil, now)) {
            const end = new Date(oldSecretUntil).toISOString();
            throw new AdminError(status.FAILED_PRECONDITION, `the last rotation runs until ${end}`);
          }
          const sealed = seal.seal(request.partnerId, secret);
          return { ...before, secret: sealed, oldSecret: before.secret, oldSecretUntil: now + rotationMs };
        },
        (_, { oldSecretUntil }) => ({
          detail: { oldUntil: new Date(oldSecretUntil ?? 0).toISOString(), reason: request.reason },
        }),
      );
      return { secret, oldSecretUntil: endpoint?.oldSecretUntil };
    },

    async pauseEndpoint(request, call) {
      const hold = (before: Endpoint, now: number) => (before.heldAt === null ? { ...before, heldAt: now } : undefined);
      return { changed: (await change(request, call, hold, pausesOf(request.reason))) !== undefined };
    },

    async resumeEndpoint(request, call) {
      const resume = (before: Endpoint) =>
        before.heldAt === null && before.pausedAt === null ? undefined : resumed(before);
      return { changed: (await change(request, call, resume, pausesOf(request.reason))) !== undefined };
    },

    async getEndpoint({ partnerId }) {
      return { endpoint: toMessage(await readEndpoint(database, partnerId), clock.now()) };
    },

    async sendTest({ partnerId, reason }, call) {
      const endpoint = await readEndpoint(database, partnerId);
      const sent = await parts.sendTest(endpoint, (id, now) =>
        database.write(audit(call, now, { partnerId, detail: { id, reason } })),
      );
      if (sent === undefined)
        throw new AdminError(status.RESOURCE_EXHAUSTED, 'too many tests are under way: call again');
      const { id, outcome, status: code, errorClass, durationMs } = sent;
      return { webhookId: id, outcome: outcomes[outcome], status: code, errorClass, durationMs };
    },
  };
}

/** Changes an endpoint under its lock, and notifies the dispatchers. */
export async function changeEndpoint<T>(
  { database, clock, onChange }: WebhookAdminParts,
  partnerId: string,
  decide: (endpoint: Endpoint, now: number, rows: SqlRow[]) => Decision<T>,
  reads: readonly Statement[] = [],
): Promise<T> {
  const result = await database.transaction<T>([lockEndpoints([partnerId]), ...reads], ([found = [], rows = []]) =>
    decide(onlyEndpoint(found), clock.now(), rows),
  );
  onChange();
  return result;
}

/**
 * Waits until no process begins an attempt by the endpoint's old row. The sending process confirms this, usually within
 * milliseconds. If it does not (frozen, cut off, an earlier version), this waits for as long as a process may use a row.
 */
async function waitUntilAdopted(database: Database, partnerId: string): Promise<void> {
  const end = performance.now() + rowServesMs + adoptionMarginMs;
  for (let waitMs = 5; performance.now() < end; waitMs = Math.min(waitMs * 2, 80)) {
    // If the database does not answer, this waits for the full time.
    const asking = database.read(findAdopted(partnerId)).catch(() => []);
    if ((await atMost(end - performance.now(), asking)) && (await asking).length > 0) return;
    await delay(Math.max(0, Math.min(waitMs, end - performance.now())));
  }
}

/** A partner's endpoint. Throws if it has none. */
export async function readEndpoint(database: Database, partnerId: string): Promise<Endpoint> {
  return onlyEndpoint(await database.read(endpoints.find({ partnerId })));
}

function onlyEndpoint([row]: readonly SqlRow[]): Endpoint {
  if (row === undefined) throw new AdminError(status.NOT_FOUND, 'the partner has no endpoint');
  return endpoints.all.read(row);
}

/** The audit entry's state of pauses, before and after. */
function pausesOf(reason: string) {
  const pauses = ({ heldAt, pausedAt }: Endpoint) => ({ paused: heldAt !== null, failing: pausedAt !== null });
  return (before: Endpoint, after: Endpoint) => ({ detail: { reason }, before: pauses(before), after: pauses(after) });
}

function toMessage(endpoint: Endpoint, now: number) {
  const { partnerId, url, registeredAt, afterVersion, streak, pausedAt, probeAt, heldAt, oldSecretUntil } = endpoint;
  return {
    ...{ partnerId, url, registeredAt, afterVersion },
    failuresInARow: streak,
    failingSince: pausedAt,
    nextProbeAt: probeAt,
    pausedSince: heldAt,
    oldSecretUntil: signsWithOld(oldSecretUntil, now) ? oldSecretUntil : undefined,
  };
}
