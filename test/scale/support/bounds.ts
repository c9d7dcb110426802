import { partnerCount } from './seed.ts';
import type { Value } from './values.ts';

/** What holds for some statements only. */
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
    shape: /^DELETE FROM feed_events WHERE partner_id = \? AND version <= \?$/,
    values: { version: 90 },
    more: 100,
    because: 'a round of the retention removes the oldest events only, and their number has a bound',
  },
  {
    shape: /FROM feed_events FORCE INDEX \(PRIMARY\) WHERE partner_id = \? AND version <= \? AND occurred_at BETWEEN/,
    values: { version: 90 },
    more: 100,
    because: 'it looks among the events that a round of the retention found, and their number has a bound',
  },
  {
    shape: /e\.occurred_at BETWEEN \? AND \? AND e\.id = \?/,
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
      /^SELECT partner_id, purged_version AS version FROM feed_purges$|FROM webhook_endpoints( e)? WHERE (TRUE|paused_at IS NOT NULL)/,
    more: 12 * partnerCount,
    because: 'it asks for something of each partner, and has a row or an endpoint for each',
  },
  {
    shape: /FROM webhook_endpoints e FORCE INDEX \(webhook_endpoints_due_at\)/,
    more: 8 * partnerCount,
    because: 'it passes over the endpoints that other processes serve, and each has one row',
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

/** What holds for a statement in particular. */
export function specialOf(shape: string): Special | undefined {
  return specials.find((special) =>
    typeof special.shape === 'string' ? shape.includes(special.shape) : special.shape.test(shape),
  );
}
