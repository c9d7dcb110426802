import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { insertRows, type SqlRow, type Statement, statement, toBigInt } from '../db/statement.ts';
import { EventSchema } from '../gen/marina/gateway/v1/events_pb.ts';
import { compileEncoder } from '../json/encoder.ts';
import type { IdMaker } from '../lib/ids.ts';

/** A change a partner must hear of. */
export interface NewEvent {
  /** The object's kind, a full stop and its new state. */
  readonly type: string;
  /** The object's `updated_at`, in milliseconds. */
  readonly occurredAt: number;
  /** The object as its GET returns it now. */
  readonly data: MessageInitShape<typeof EventSchema>['data'];
}

const encode = compileEncoder(EventSchema);

/**
 * Takes the partner's next versions and appends whole events to the outbox. The partner's lock must be held, and
 * `partner` be its row as read under that lock; the versions are dense because nothing else changes them.
 *
 * The body's bytes are made here and never again, so that a later release cannot change what was promised.
 */
export function appendEvents(partner: SqlRow, events: readonly NewEvent[], ids: IdMaker, realNow: number): Statement[] {
  if (events.length === 0) return [];
  const partnerId = String(partner.id);
  const before = toBigInt(partner.version);
  const rows = events.map(({ type, occurredAt, data }, index) => {
    const id = ids.event();
    const version = before + BigInt(index + 1);
    const timestamp = timestampFromMs(Math.floor(occurredAt / 1_000) * 1_000);
    const body = Buffer.from(encode(create(EventSchema, { id, type, timestamp, version, data })));
    return [partnerId, version, id, type, body, new Date(occurredAt), new Date(realNow)];
  });
  return [
    statement('UPDATE partners SET version = ? WHERE id = ?', before + BigInt(events.length), partnerId),
    insertRows('outbox', ['partner_id', 'version', 'id', 'type', 'body', 'occurred_at', 'publish_at'], rows),
  ];
}
