import {
  type Column,
  defineTable,
  instant,
  manyBytes,
  optional,
  type RowOf,
  small,
  text,
  whole,
} from '../../store/table.ts';

/** An event in JSON, as partners see it. It is written as text, because bytes are twice as long in a statement. */
const eventBody = manyBytes() as Column<Buffer | string>;

/** The event's object. */
const objectColumns = { objectKind: optional(text(20)), objectId: optional(text(24)) };

/** The request that an object or an event comes from (`gateway/edge/origin`). */
export const originColumns = { requestId: optional(text(36)), traceParent: optional(text(55)) };

/** Events on their way to webhooks. A row is removed when it is consumed. */
export const outbox = defineTable({
  name: 'outbox',
  columns: {
    partnerId: text(24),
    version: whole(),
    id: text(28),
    type: text(40),
    body: eventBody,
    occurredAt: instant(),
    /** When the change was committed, in real time by its replica's clock. */
    publishAt: instant(),
    /** 1: the feed has the event. Only replicas of 0.2.0 read it. */
    signed: small(),
    ...originColumns,
    ...objectColumns,
  },
  primary: ['partnerId', 'version'],
  indexes: { outbox_publish_at: ['publishAt'] },
});

/** The events that partners read. */
export const feedEvents = defineTable({
  name: 'feed_events',
  columns: {
    partnerId: text(24),
    version: whole(),
    id: text(28),
    body: eventBody,
    occurredAt: instant(),
    ...originColumns,
    type: optional(text(40)),
    ...objectColumns,
  },
  primary: ['partnerId', 'version'],
  indexes: { feed_events_occurred_at: ['occurredAt'], feed_events_object: ['partnerId', 'objectId'] },
});

/** The last version of each partner that was removed from the feed. */
export const feedPurges = defineTable({
  name: 'feed_purges',
  columns: { partnerId: text(24), purgedVersion: whole() },
  primary: ['partnerId'],
});

/** Version gaps: the version after `fromVersion` is the one after `toVersion`. */
export const feedSkips = defineTable({
  name: 'feed_skips',
  columns: { partnerId: text(24), fromVersion: whole(), toVersion: whole() },
  primary: ['partnerId', 'fromVersion'],
});

export type VersionGap = RowOf<typeof feedSkips>;
