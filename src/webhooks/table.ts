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
} from '../db/table.ts';
import type { DeliveryState, Outcome } from './rules.ts';

/** Bytes of a sealed secret. */
const sealed: Column<Buffer> = { ...bytes(255), type: 'varbinary' };
const smallCount = (type: 'tinyint' | 'smallint'): Column<number> => ({ ...count(), type });

/** The names of dispatchers' leases begin with this. */
export const dispatcherLeasePrefix = 'webhooks-';

/** Partners' endpoints. Instants are business time. */
export const endpoints = defineTable({
  name: 'webhook_endpoints',
  columns: {
    partnerId: text(24),
    url: text(1024),
    secret: sealed,
    oldSecret: optional(sealed),
    /** Until when events are signed with the old secret too. */
    oldSecretUntil: optional(instant()),
    /** Events with a higher version are delivered. */
    afterVersion: whole(),
    registeredAt: instant(),
    /** Grows with a move. */
    generation: count(),
    /** Failures of the endpoint in a row. */
    streak: count(),
    /** Since when it is paused because of them; null when it is not. */
    pausedAt: optional(instant()),
    /** When it is tried next while it is paused. */
    probeAt: optional(instant()),
    /** The version the last probe was made with: the next one takes the next. */
    probedVersion: whole(),
    /** Since when an operator holds it; null when none does. */
    heldAt: optional(instant()),
    /** Whether all that waits must still be moved to the front, because a pause ended. */
    draining: flag(),
    /** The lease of the process that sends to it, and the fence that lease had. */
    leaseName: optional(text(40)),
    leaseFence: optional(whole()),
    /** Grows with each process that sends to it. */
    fence: whole(),
    /** From when on it may have something to be sent: never later than that is so. Null: nothing waits. */
    dueAt: optional(instant()),
    /** Grows with every change of the row: of two reads of it, the one with the higher revision is the newer. */
    revision: whole(),
    /** The revision of the last change an operator made. */
    changedRevision: whole(),
    /** The last revision of which the sending process has said that it works by it. */
    seenRevision: whole(),
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
    /** 1: sent at once, in the order of versions. 2: sent again at `dueAt`. Null: over. */
    queue: optional(smallCount('tinyint')),
    /** When it is sent next; null: at once, or never when it is over. */
    dueAt: optional(instant()),
    /** Attempts that the schedule counts. A probe that fails because of the endpoint is none. */
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
  },
});

export type Delivery = RowOf<typeof deliveries>;

/** What of a delivery an attempt changes. */
export const progress = deliveries.only('partnerId', 'version', 'state', 'attempts', 'dueAt', 'tries', 'round');

/** Attempts to deliver events. Never what the endpoint answered beyond its status. */
export const attempts = defineTable({
  name: 'webhook_attempts',
  columns: {
    partnerId: text(24),
    version: whole(),
    /** 1 for the first attempt of the event. */
    number: count(),
    /** When it began, in business time. */
    at: instant(),
    /** Whether it was made while the endpoint was paused, to see whether it is back. */
    isProbe: flag(),
    outcome: text<Outcome>(16),
    /** The status of the answer; null when there was none. */
    status: optional(smallCount('smallint')),
    /** Null when the event was delivered. */
    errorClass: optional(text(24)),
    /** From its start until its outcome was known, in milliseconds of real time. */
    durationMs: count(),
  },
  primary: ['partnerId', 'version', 'number'],
  indexes: { webhook_attempts_at: ['at'] },
});

export type Attempt = RowOf<typeof attempts>;
