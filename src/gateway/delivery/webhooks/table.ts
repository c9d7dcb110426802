import {
  bytes,
  type Column,
  count,
  defineTable,
  flag,
  instant,
  optional,
  type RowOf,
  text,
  whole,
} from '../../store/table.ts';
import type { AttemptResult, DeliveryState } from './rules.ts';

const sealed: Column<Buffer> = { ...bytes(255), type: 'varbinary' };
const smallCount = (type: 'tinyint' | 'smallint'): Column<number> => ({ ...count(), type });

/** The prefix of dispatchers' lease names. */
export const dispatcherLeasePrefix = 'webhooks-';

/** Partners' endpoints. Instants are business time. */
export const endpoints = defineTable({
  name: 'webhook_endpoints',
  columns: {
    partnerId: text(24),
    url: text(1024),
    secret: sealed,
    oldSecret: optional(sealed),
    /** Until then events are also signed with the old secret. */
    oldSecretUntil: optional(instant()),
    /** Events with a higher version are delivered. */
    afterVersion: whole(),
    registeredAt: instant(),
    /** Grows with each new URL. */
    generation: count(),
    /** Failures of the endpoint in a row. */
    streak: count(),
    /** The start of a pause after failures; null if it is not paused. */
    pausedAt: optional(instant()),
    /** The next probe of a paused endpoint. */
    probeAt: optional(instant()),
    /** The version of the last probe. The next probe uses a later one. */
    probedVersion: whole(),
    /** When an operator paused it; null if none did. */
    heldAt: optional(instant()),
    /** Whether waiting events must still be moved to the front, because a pause ended. */
    draining: flag(),
    /** The sending process's lease and its fence. */
    leaseName: optional(text(40)),
    leaseFence: optional(whole()),
    /** Grows with each process that sends to it. */
    fence: whole(),
    /** When it may have work: perhaps too early, never too late. Null: no work. */
    dueAt: optional(instant()),
    /** Grows with every change of the row. Of two reads, the one with the higher revision is newer. */
    revision: whole(),
    /** The revision of the last change by an operator. */
    changedRevision: whole(),
    /** The last revision that the sending process has confirmed. */
    seenRevision: whole(),
    /** The first failure since the last delivery, of the endpoint or of an event; null if there is none. */
    failingSince: optional(instant()),
  },
  primary: ['partnerId'],
  indexes: {
    webhook_endpoints_lease: ['leaseName', 'leaseFence'],
    webhook_endpoints_paused_at: ['pausedAt'],
    webhook_endpoints_due_at: ['dueAt'],
  },
});

export type Endpoint = RowOf<typeof endpoints>;

/** Events on their way to their endpoints. Instants are business time unless a comment says otherwise. */
export const deliveries = defineTable({
  name: 'webhook_deliveries',
  columns: {
    partnerId: text(24),
    version: whole(),
    eventId: text(28),
    type: text(40),
    occurredAt: instant(),
    /** When the change was committed, in real time. */
    committedAt: instant(),
    /** When it was queued. */
    takenAt: instant(),
    state: text<DeliveryState>(10),
    /** 1: sent at once, in the order of versions. 2: retried at `dueAt`. Null: final. */
    queue: optional(smallCount('tinyint')),
    /** The next attempt; null: at once, or never if it is final. */
    dueAt: optional(instant()),
    /** Attempts that the schedule counts: all but probes that failed because of the endpoint. */
    attempts: count(),
    /** All attempts. */
    tries: count(),
    /** Grows when an operator asks for the event again. */
    round: count(),
    endedAt: optional(instant()),
  },
  primary: ['partnerId', 'version'],
  indexes: {
    webhook_deliveries_due: ['partnerId', 'queue', 'dueAt', 'version'],
    webhook_deliveries_age: ['queue', 'occurredAt'],
    webhook_deliveries_event: ['partnerId', 'eventId'],
    webhook_deliveries_state: ['partnerId', 'state', 'version'],
    webhook_deliveries_occurred_at: ['partnerId', 'occurredAt', 'version'],
  },
});

export type Delivery = RowOf<typeof deliveries>;

/** The columns of a delivery that an attempt changes. */
export const progress = deliveries.only('partnerId', 'version', 'state', 'attempts', 'dueAt', 'tries', 'round');

/** Attempts to deliver events. Of the endpoint's answer only the status is stored. */
export const attempts = defineTable({
  name: 'webhook_attempts',
  columns: {
    partnerId: text(24),
    version: whole(),
    /** 1 for the first attempt of the event. */
    number: count(),
    /** When it began, in business time. */
    at: instant(),
    /** Whether it was a probe of a paused endpoint. */
    isProbe: flag(),
    outcome: text<AttemptResult>(16),
    /** The HTTP status; null without an answer. */
    status: optional(smallCount('smallint')),
    /** Null if the event was delivered. */
    errorClass: optional(text(24)),
    /** From its start until its outcome was known, in milliseconds of real time. */
    durationMs: count(),
  },
  primary: ['partnerId', 'version', 'number'],
  indexes: { webhook_attempts_at: ['at'] },
});

export type Attempt = RowOf<typeof attempts>;
