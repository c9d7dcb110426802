import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { SqlRow, Statement } from '../db/statement.ts';
import { toBigInt } from '../db/statement.ts';
import {
  DeliveryState,
  DeliveryStateSchema,
  type ListDeliveriesRequest,
  type ListDeliveriesResponse,
  ListDeliveriesResponseSchema,
  type RedeliverRequest,
  type RedeliverResponse,
  RedeliverResponseSchema,
  type WebhookAttempt,
  WebhookAttemptSchema,
  type WebhookDelivery,
  WebhookDeliverySchema,
} from '../gen/marina/admin/v1/webhooks_pb.ts';
import { enumWords } from '../lib/enums.ts';
import { groupBy } from '../lib/group.ts';
import { findAttempts, type StoredAttempt, toAttempt } from '../webhooks/attempt-store.ts';
import {
  findDeliveries,
  type ListedDelivery,
  lockForRedelivery,
  redeliver as sendAgain,
  toListedDelivery,
} from '../webhooks/delivery-store.ts';
import { markDue } from '../webhooks/endpoint-store.ts';
import { isTooOld } from '../webhooks/rules.ts';
import { AdminError, invalidField, type Operator, pageSize } from './call.ts';
import { changeEndpoint, entry, outcomes, readEndpoint, toTimestamp, type WebhookAdminParts } from './webhook-parts.ts';

const stateWords = enumWords<typeof DeliveryState>(DeliveryStateSchema);

const mostAttemptsListed = 100;
const mostRedelivered = 1_000;

/** The operators' calls on what is on its way to endpoints, and what was tried. */
export function webhookDeliveryHandlers(parts: WebhookAdminParts) {
  const { database, clock } = parts;

  async function listDeliveries(request: ListDeliveriesRequest): Promise<ListDeliveriesResponse> {
    const { partnerId, beforeVersion, state, eventId } = request;
    const limit = pageSize(request.limit);
    await readEndpoint(database, partnerId);
    const rows = await readRows(
      findDeliveries(
        partnerId,
        beforeVersion === 0n ? undefined : beforeVersion,
        state === DeliveryState.UNSPECIFIED ? undefined : stateWords.word(state),
        eventId === '' ? undefined : eventId,
        limit + 1,
      ),
    );
    const deliveries = rows.slice(0, limit).map(toListedDelivery);
    const versions = deliveries.map(({ version }) => version);
    const attempts =
      versions.length === 0 ? [] : await readRows(findAttempts(partnerId, versions, mostAttemptsListed * limit));
    const attemptsOf = groupBy(attempts.map(toAttempt), ({ version }) => version);
    return create(ListDeliveriesResponseSchema, {
      deliveries: deliveries.map((delivery) => toDeliveryMessage(delivery, attemptsOf.get(delivery.version) ?? [])),
      hasMore: rows.length > limit,
    });
  }

  async function redeliver(request: RedeliverRequest, operator: Operator): Promise<RedeliverResponse> {
    const { partnerId, eventId, from, to, afterVersion, reason } = request;
    const hasWindow = from !== undefined || to !== undefined;
    if ((eventId !== '') === hasWindow) throw invalidField('event_id', 'or a window, `from` and `to`, must be named.');
    if (hasWindow && from === undefined) throw invalidField('from', 'is required beside `to`.');
    if (hasWindow && to === undefined) throw invalidField('to', 'is required beside `from`.');
    const range = hasWindow ? { from: msOf(from), to: msOf(to) } : { eventId };
    if (range.from !== undefined && range.to !== undefined && range.to <= range.from) {
      throw invalidField('to', 'must be after `from`.');
    }
    const now = clock.now();
    if (!hasWindow) await requireRecent(partnerId, eventId, now);
    const reads = [lockForRedelivery(partnerId, range, afterVersion, now, mostRedelivered + 1)];
    const versions = await changeEndpoint<bigint[]>(
      parts,
      partnerId,
      (_endpoint, at, [rows = []]) => {
        const found = rows.map((row) => toBigInt(row.version));
        const taken = found.slice(0, mostRedelivered);
        if (taken.length === 0) return { writes: [], result: [] };
        const detail = {
          ...(hasWindow ? { from: new Date(range.from ?? 0), to: new Date(range.to ?? 0) } : { eventId }),
          events: taken.length,
          reason,
        };
        return {
          writes: [
            sendAgain(partnerId, taken),
            markDue([partnerId], at),
            entry(operator, 'Redeliver', partnerId, at, detail),
          ],
          result: found,
        };
      },
      reads,
    );
    const taken = versions.slice(0, mostRedelivered);
    return create(RedeliverResponseSchema, {
      events: taken.length,
      lastVersion: taken.at(-1) ?? 0n,
      complete: versions.length <= mostRedelivered,
    });
  }

  async function requireRecent(partnerId: string, eventId: string, now: number): Promise<void> {
    await readEndpoint(database, partnerId);
    const [row] = await readRows(findDeliveries(partnerId, undefined, undefined, eventId, 1));
    if (row === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such event for this endpoint');
    if (isTooOld(toListedDelivery(row).occurredAt, now)) {
      throw new AdminError(
        status.FAILED_PRECONDITION,
        'the event is older than 28 hours and 51 minutes: the feed has it',
      );
    }
  }

  async function readRows(query: Statement): Promise<SqlRow[]> {
    const [rows = []] = await database.readAll([query]);
    return rows;
  }

  return { listDeliveries, redeliver };
}

function toDeliveryMessage(delivery: ListedDelivery, attempts: readonly StoredAttempt[]): WebhookDelivery {
  return create(WebhookDeliverySchema, {
    eventId: delivery.eventId,
    version: delivery.version,
    type: delivery.type,
    state: stateWords.value(delivery.state),
    occurredAt: timestampFromMs(delivery.occurredAt),
    attemptsCounted: delivery.attempts,
    dueAt: toTimestamp(delivery.dueAt),
    attempts: attempts.slice(0, mostAttemptsListed).map(toAttemptMessage),
  });
}

function toAttemptMessage(attempt: StoredAttempt): WebhookAttempt {
  return create(WebhookAttemptSchema, {
    number: attempt.number,
    at: timestampFromMs(attempt.at),
    isProbe: attempt.isProbe,
    outcome: outcomes[attempt.outcome],
    status: attempt.status ?? undefined,
    errorClass: attempt.errorClass ?? '',
    durationMs: BigInt(attempt.durationMs),
  });
}

function msOf(timestamp: Timestamp | undefined): number | undefined {
  return timestamp === undefined ? undefined : Number(timestamp.seconds) * 1_000 + Math.floor(timestamp.nanos / 1e6);
}
