import { create } from '@bufbuild/protobuf';
import type { LockedPartner } from '../db/locked-partner.ts';
import { insertRows, type Statement } from '../db/statement.ts';
import { type Event, EventSchema } from '../gen/marina/gateway/v1/events_pb.ts';
import { compileEncoder } from '../json/encoder.ts';
import type { IdMaker } from '../lib/ids.ts';
import { type Origin, originColumns } from '../lib/origin.ts';
import { toSecond } from '../lib/timestamps.ts';

/** A change a partner must hear of. */
export interface NewEvent {
  /** The object's kind, a full stop and its new state. */
  readonly type: string;
  /** The object's `updated_at`, in milliseconds. */
  readonly occurredAt: number;
  /** On whose behalf the object was created; kept beside the event, not in its body, which is the contract's. */
  readonly origin: Origin;
  /** The object as its GET returns it now. */
  readonly data: Exclude<Event['data'], { case: undefined }>;
}

const encode = compileEncoder(EventSchema);

/**
 * Takes the partner's next versions and appends whole events to the outbox. The versions are dense because only the
 * holder of the partner's lock takes them.
 *
 * The body's bytes are made here and never again, so that a later release cannot change what was promised.
 */
export function appendEvents(
  partner: LockedPartner,
  events: readonly NewEvent[],
  ids: IdMaker,
  realNow: number,
): Statement[] {
  if (events.length === 0) return [];
  const first = partner.takeVersions(events.length);
  const rows = events.map(({ type, occurredAt, origin, data }, index) => {
    const id = ids.event();
    const version = first + BigInt(index);
    const timestamp = toSecond(occurredAt);
    // As text: a body's bytes in hexadecimal would be twice as long.
    const body = encode(create(EventSchema, { id, type, timestamp, version, data }));
    const { requestId, traceParent } = origin;
    const times = [new Date(occurredAt), new Date(realNow)];
    return [partner.id, version, id, type, body, ...times, requestId, traceParent, data.case, data.value.id];
  });
  return [insertRows('outbox', columns, rows)];
}

const columns = [
  ...['partner_id', 'version', 'id', 'type', 'body', 'occurred_at', 'publish_at'],
  ...originColumns,
  ...['object_kind', 'object_id'],
];
