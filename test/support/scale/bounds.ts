import { apiKeys, auditEntries, bigPartner, outboxRows, partnerCount } from './seed.ts';
import type { Value } from './values.ts';

/** Bounds that hold for some statements only. */
export interface Special {
  /** How its shape begins, or a part of it. */
  readonly shape: string | RegExp;
  /** How many rows more it may read. */
  readonly more?: number;
  /** Values of columns, where others would ask for what the gateway never does. */
  readonly values?: Readonly<Record<string, Value>>;
  /** The value where it is not compared with a column. */
  readonly other?: Value;
  /** Whether the values of a run are always those of one row. */
  readonly isOneRow?: boolean;
  readonly because: string;
}

const long = '1971-01-01';

/** Every statement that may read more than the rule of `measure`, or whose values belong together. */
export const specials: readonly Special[] = [
  {
    shape: /FROM proposals FORCE INDEX \(proposals_\w+\) WHERE .*state = \? AND expires_at [<>]/,
    values: { state: 'open' },
    because:
      'only open proposals are asked for by when they expire, and those whose time is over are soon stored as expired',
  },
  {
    shape: /^DELETE old FROM feed_events AS old FORCE INDEX \(PRIMARY\) WHERE \(partner_id = \? AND version <= \?\)/,
    values: { version: 90 },
    more: 8 * 100,
    because: 'a round of the retention removes the oldest events only, and their number has a bound',
  },
  {
    shape: /FROM feed_events FORCE INDEX \(PRIMARY\) WHERE partner_id = \? AND version <= \? AND occurred_at BETWEEN/,
    values: { version: 90 },
    more: 8 * 100,
    because: 'it looks among the events that a round of the retention found, and their number has a bound',
  },
  {
    shape: /^SELECT object_id FROM feed_events WHERE occurred_at BETWEEN \? AND \? AND id = \?/,
    isOneRow: true,
    because: "an event's id has its instant, so the range is of a few milliseconds",
  },
  {
    shape: /d\.occurred_at > \? AND d\.queue/,
    values: { occurred_at: long },
    because: 'the retention expires what is older, so that all that is queued is young enough',
  },
  {
    shape:
      /^SELECT partner_id, purged_version AS version FROM feed_purges$|FROM webhook_endpoints( e)? WHERE (TRUE|paused_at IS NOT NULL|e\.failing_since)/,
    more: 12 * partnerCount,
    because: 'it asks for something of each partner, and has a row or an endpoint for each',
  },
  {
    shape: /FROM webhook_endpoints e FORCE INDEX \(webhook_endpoints_due_at\)/,
    more: 8 * partnerCount,
    because: 'it passes over the endpoints that other processes serve, and each has one row',
  },
  {
    shape: /FROM partners p STRAIGHT_JOIN .*documents d/,
    more: 4 * partnerCount,
    because: "it looks for each partner's documents that are under way",
  },
  {
    shape: 'AS is_ready, (SELECT MIN(d.due_at)',
    more: 24 * 64,
    because: 'it looks into three parts of the queue of each endpoint, of 64 here',
  },
  {
    shape:
      /FROM bulk_cancels FORCE INDEX \(bulk_cancels_ended_at\) WHERE ended_at IS NULL$|^UPDATE bulk_cancels SET \* WHERE ended_at/,
    more: 6 * 20,
    because: 'it reads the jobs that run, of which there are 20 at most',
  },
  {
    shape: /^SELECT mac_key, COUNT\(\*\) AS found FROM api_keys/,
    more: 2 * apiKeys,
    because: 'it counts all API keys, and is asked only when the file of the secret key has changed',
  },
  {
    shape: 'SELECT COUNT(1) AS `cnt` FROM `accounts`',
    more: 50_000,
    because: "it counts the partner's accounts, of which the big partner has 50,000, in an index",
  },
  {
    shape: /^SELECT COUNT\(.*FROM .?api_keys/,
    more: 100,
    because: "it counts a partner's active keys, and their number has a bound",
  },
  {
    shape: 'SELECT partner_id, MIN(version) - 1 AS version FROM feed_events WHERE occurred_at >= ?',
    values: { occurred_at: '2037-12-31' },
    because: 'it reads the events since the instant that an operator names',
  },
  {
    shape: /^DELETE outbox FROM outbox/,
    more: outboxRows,
    because: 'by statistics of an almost empty outbox it reads all rows of the partner that wait there',
  },
  {
    shape: /^SELECT partner_id, version FROM \(SELECT p\.id AS partner_id/,
    more: 8 * 64,
    because: 'it also reads the table that it makes of the answers',
  },
  {
    shape: 'SELECT name FROM migrations',
    more: 100,
    because: 'there are a few dozen migrations',
  },
  {
    shape:
      /^SELECT partner_id, key_id, id, .* WHERE partner_id = \? AND key_id = \? AND id >= \? AND id < \? ORDER BY id DESC/,
    more: 1_000_000,
    because:
      'an operator asks what a key made on a day, and all that the partner made on it is read: an index would cost each order more',
  },
  {
    shape: 'FROM `audit_entries`',
    more: auditEntries,
    because: 'the log grows with what operators do, and some filters have no index',
  },
  {
    shape: /FROM audit_entries (?:FORCE INDEX \(audit_entries_(?:at|operator)\)|WHERE id > \?)/,
    more: auditEntries,
    because: 'an export reads its whole period, and new entries wait for their seal',
  },
  {
    shape: / AND updated_at >= \? AND id >= \? /,
    isOneRow: true,
    because: 'the id is the first of the instant',
  },
  {
    shape: /_counted_day\) WHERE .* AND counted_day IN \(\?\) AND updated_at >= \?/,
    values: { updated_at: '2037-12-31' },
    because: 'the days end with the instant, and of each day only what changed after it is read',
  },
  {
    shape: /FROM (?:orders|allocations|withdrawals) .* (?:state|symbol) = \? .*client_reference = \?/,
    values: { client_reference: Buffer.from('r1') },
    because:
      'a reference names one object or a few. Of one that all have, together with another filter, the fewer rows are read',
  },
  {
    shape: /FROM webhook_deliveries FORCE INDEX \(webhook_deliveries_occurred_at\) WHERE partner_id IN/,
    values: { partner_id: bigPartner },
    because: 'it is the list of one partner',
  },
  {
    shape: 'AND (occurred_at > ? OR version > ?)',
    isOneRow: true,
    because: 'the window begins at the instant of the version',
  },
  {
    shape: 'COALESCE(due_at, taken_at) <= ?',
    other: '2037-12-31',
    because: 'it compares with now',
  },
  {
    shape: 'TIMESTAMPADD(MICROSECOND, ?, NOW(3))',
    other: 0,
    because: 'it is a duration',
  },
  {
    shape: 'DELETE FROM write_checks WHERE',
    more: 50,
    because: 'each process has one row',
  },
];

/** Returns the special bounds of a statement, if it has any. */
export function specialOf(shape: string): Special | undefined {
  return specials.find((special) =>
    typeof special.shape === 'string' ? shape.includes(special.shape) : special.shape.test(shape),
  );
}
