import { status } from '@grpc/grpc-js';
import { DeliveryState, DeliveryStateSchema, type Webhooks } from '../../../gen/marina/admin/v1/webhooks_pb.ts';
import { toMilliseconds } from '../../../kit/clock.ts';
import { enumWords } from '../../../kit/enums.ts';
import { markDue } from '../../delivery/webhooks/plan/endpoint-store.ts';
import {
  findPosition,
  findVersionsAbout,
  listDeliveries,
  lockEvent,
  lockWindow,
  readAttempts,
  redeliver,
  redelivered,
} from '../../delivery/webhooks/record/delivery-store.ts';
import { isTooOld } from '../../delivery/webhooks/rules.ts';
import * as tables from '../../delivery/webhooks/table.ts';
import { type SqlRow, type Statement, toBigInt } from '../../store/statement.ts';
import { audit } from './audit.ts';
import { type AdminCalls, listed } from './call.ts';
import { AdminError, invalidField } from './errors.ts';
import { changeEndpoint, outcomes, readEndpoint, type WebhookAdminParts } from './webhook-endpoints.ts';

const states = enumWords<typeof DeliveryState>(DeliveryStateSchema);

const maxAttemptsListed = 100;
const maxRedelivered = 1_000;
/** The most recent events about an object whose deliveries are listed. */
const maxEvents = 1_000;

/** The operators' calls on deliveries and their attempts. */
export function webhookDeliveryCalls(
  parts: WebhookAdminParts,
): Pick<AdminCalls<typeof Webhooks>, 'listDeliveries' | 'redeliver'> {
  const { database, clock } = parts;

  return {
    async listDeliveries({ partnerId, beforeVersion, state, eventId, objectId, limit }) {
      await readEndpoint(database, partnerId);
      const before = beforeVersion === 0n ? undefined : beforeVersion;
      const filter = {
        before,
        versions:
          objectId === ''
            ? undefined
            : (await read(findVersionsAbout(partnerId, objectId, before, maxEvents))).map(versionOf),
        state: state === DeliveryState.UNSPECIFIED ? undefined : states.word(state),
        eventId: eventId === '' ? undefined : eventId,
      };
      const { rows, hasMore, most } = await listed(limit, (most) => read(listDeliveries(partnerId, filter, most)));
      const maxInAll = maxAttemptsListed * most;
      const found = await readAttempts(database, partnerId, rows.map(versionOf), maxAttemptsListed, maxInAll);
      const deliveries = rows.map((row) => {
        const delivery = tables.deliveries.all.read(row);
        const attempts = (found.get(delivery.version) ?? []).map((one) => ({ ...one, outcome: outcomes[one.outcome] }));
        const object = { objectKind: row.object_kind as string | null, objectId: row.object_id as string | null };
        return { ...delivery, ...object, attemptsCounted: delivery.attempts, attempts };
      });
      return { deliveries, hasMore };
    },

    async redeliver({ partnerId, eventId, from, to, afterVersion, reason }, call) {
      const hasWindow = from !== undefined || to !== undefined;
      if ((eventId !== '') === hasWindow) {
        throw invalidField('event_id', 'or a window, `from` and `to`, must be named.');
      }
      if (hasWindow && from === undefined) throw invalidField('from', 'is required with `to`.');
      if (hasWindow && to === undefined) throw invalidField('to', 'is required with `from`.');
      const window = from && to && { from: toMilliseconds(from), to: toMilliseconds(to) };
      if (window !== undefined && window.to <= window.from) throw invalidField('to', 'must be after `from`.');
      if (window === undefined) await requireRecent(partnerId, eventId);
      const lock =
        window === undefined
          ? lockEvent(partnerId, eventId, clock.now())
          : await lockPage(partnerId, { ...window, afterVersion });
      const decide = (_: unknown, now: number, rows: SqlRow[]) => {
        const found = rows.slice(0, maxRedelivered).map(redelivered.read);
        // The lock was waited for, and the events became older meanwhile.
        const versions = found.filter((one) => !isTooOld(one.occurredAt, now)).map(({ version }) => version);
        if (window === undefined && versions.length === 0) throw tooOld();
        const result = {
          events: versions.length,
          lastVersion: found.at(-1)?.version ?? 0n,
          complete: rows.length <= maxRedelivered,
        };
        if (versions.length === 0) return { writes: [], result };
        const asked = window === undefined ? { eventId } : { from: new Date(window.from), to: new Date(window.to) };
        const detail = { ...asked, events: versions.length, reason };
        const marked = [redeliver(partnerId, versions), markDue([partnerId], now)];
        return { writes: [...marked, audit(call, now, { partnerId, detail })], result };
      };
      return changeEndpoint(parts, partnerId, decide, [lock]);
    },
  };

  async function lockPage(partnerId: string, window: { from: number; to: number; afterVersion: bigint }) {
    const [row] = window.afterVersion > 0n ? await read(findPosition(partnerId, window.afterVersion)) : [];
    const after = row && tables.deliveries.all.read(row);
    return lockWindow(partnerId, { ...window, after }, clock.now(), maxRedelivered + 1);
  }

  async function requireRecent(partnerId: string, eventId: string): Promise<void> {
    await readEndpoint(database, partnerId);
    const [row] = await read(listDeliveries(partnerId, { eventId }, 1));
    if (row === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such event for this endpoint');
    if (isTooOld(tables.deliveries.all.read(row).occurredAt, clock.now())) throw tooOld();
  }

  async function read(query: Statement): Promise<SqlRow[]> {
    const [rows = []] = await database.readAll([query]);
    return rows;
  }
}

function tooOld(): AdminError {
  return new AdminError(status.FAILED_PRECONDITION, 'the event is older than 28 hours and 51 minutes: the feed has it');
}

function versionOf({ version }: SqlRow): bigint {
  return toBigInt(version);
}
