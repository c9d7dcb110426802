import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { toBigInt } from '../db/statement.ts';
import { DeliveryState, DeliveryStateSchema, type Webhooks } from '../gen/marina/admin/v1/webhooks_pb.ts';
import { enumWords } from '../lib/enums.ts';
import { groupBy } from '../lib/group.ts';
import { toMilliseconds } from '../lib/timestamps.ts';
import {
  findAttempts,
  findVersionsAbout,
  listDeliveries,
  lockForRedelivery,
  redeliver,
} from '../webhooks/delivery-store.ts';
import { markDue } from '../webhooks/endpoint-store.ts';
import { isTooOld } from '../webhooks/rules.ts';
import * as tables from '../webhooks/table.ts';
import { type AdminCalls, AdminError, invalidField, pageSize } from './call.ts';
import { changeEndpoint, entry, outcomes, readEndpoint, toTimestamp, type WebhookAdminParts } from './webhook-parts.ts';

const states = enumWords<typeof DeliveryState>(DeliveryStateSchema);

const mostAttemptsListed = 100;
const mostRedelivered = 1_000;
/** Of so many events about an object the deliveries are listed. */
const mostEvents = 1_000;

/** The operators' calls on what is on its way to endpoints, and what was tried. */
export function webhookDeliveryHandlers(
  parts: WebhookAdminParts,
): Pick<AdminCalls<typeof Webhooks>, 'listDeliveries' | 'redeliver'> {
  const { database, clock } = parts;

  return {
    async listDeliveries({ partnerId, beforeVersion, state, eventId, objectId, limit }) {
      await readEndpoint(database, partnerId);
      const most = pageSize(limit);
      const before = beforeVersion === 0n ? undefined : beforeVersion;
      const filter = {
        before,
        versions: objectId === '' ? undefined : await versionsAbout(partnerId, objectId, before),
        state: state === DeliveryState.UNSPECIFIED ? undefined : states.word(state),
        eventId: eventId === '' ? undefined : eventId,
      };
      const [rows = []] = await database.readAll([listDeliveries(partnerId, filter, most + 1)]);
      const shown = rows.slice(0, most);
      const deliveries = shown.map(tables.deliveries.all.read);
      const versions = deliveries.map(({ version }) => version);
      const [attempts = []] = await database.readAll([findAttempts(partnerId, versions, mostAttemptsListed * most)]);
      const attemptsOf = groupBy(attempts.map(tables.attempts.all.read), ({ version }) => version);
      return {
        deliveries: deliveries.map((delivery, index) => ({
          ...toMessage(delivery, attemptsOf.get(delivery.version) ?? []),
          objectKind: String(shown[index]?.object_kind ?? ''),
          objectId: String(shown[index]?.object_id ?? ''),
        })),
        hasMore: rows.length > most,
      };
    },

    async redeliver({ partnerId, eventId, from, to, afterVersion, reason }, operator) {
      const hasWindow = from !== undefined || to !== undefined;
      if ((eventId !== '') === hasWindow) {
        throw invalidField('event_id', 'or a window, `from` and `to`, must be named.');
      }
      if (hasWindow && from === undefined) throw invalidField('from', 'is required with `to`.');
      if (hasWindow && to === undefined) throw invalidField('to', 'is required with `from`.');
      const window = from && to && { from: toMilliseconds(from), to: toMilliseconds(to) };
      if (window !== undefined && window.to <= window.from) throw invalidField('to', 'must be after `from`.');
      if (window === undefined) await requireRecent(partnerId, eventId);
      const filter = { ...(window ?? { eventId }), after: afterVersion };
      const found = await changeEndpoint<bigint[]>(
        parts,
        partnerId,
        (_, now, rows) => {
          const versions = rows.map(({ version }) => toBigInt(version));
          const taken = versions.slice(0, mostRedelivered);
          if (taken.length === 0) return { writes: [], result: [] };
          const asked = window === undefined ? { eventId } : { from: new Date(window.from), to: new Date(window.to) };
          const detail = { ...asked, events: taken.length, reason };
          const writes = [
            redeliver(partnerId, taken),
            markDue([partnerId], now),
            entry('Redeliver', partnerId, operator, now, { detail }),
          ];
          return { writes, result: versions };
        },
        [lockForRedelivery(partnerId, filter, clock.now(), mostRedelivered + 1)],
      );
      const taken = found.slice(0, mostRedelivered);
      return { events: taken.length, lastVersion: taken.at(-1) ?? 0n, complete: found.length <= mostRedelivered };
    },
  };

  async function versionsAbout(partnerId: string, objectId: string, before: bigint | undefined): Promise<bigint[]> {
    const [rows = []] = await database.readAll([findVersionsAbout(partnerId, objectId, before, mostEvents)]);
    return rows.map(({ version }) => toBigInt(version));
  }

  async function requireRecent(partnerId: string, eventId: string): Promise<void> {
    await readEndpoint(database, partnerId);
    const [[row] = []] = await database.readAll([listDeliveries(partnerId, { eventId }, 1)]);
    if (row === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such event for this endpoint');
    if (isTooOld(tables.deliveries.all.read(row).occurredAt, clock.now())) {
      const message = 'the event is older than 28 hours and 51 minutes: the feed has it';
      throw new AdminError(status.FAILED_PRECONDITION, message);
    }
  }
}

function toMessage(delivery: tables.Delivery, attempts: readonly tables.Attempt[]) {
  const { eventId, version, type, state, occurredAt, attempts: attemptsCounted, dueAt } = delivery;
  return {
    eventId,
    version,
    type,
    state: states.value(state),
    occurredAt: timestampFromMs(occurredAt),
    attemptsCounted,
    dueAt: toTimestamp(dueAt),
    attempts: attempts.slice(0, mostAttemptsListed).map(({ number, at, isProbe, ...attempt }) => ({
      number,
      at: timestampFromMs(at),
      isProbe,
      outcome: outcomes[attempt.outcome],
      status: attempt.status ?? undefined,
      errorClass: attempt.errorClass ?? '',
      durationMs: BigInt(attempt.durationMs),
    })),
  };
}
