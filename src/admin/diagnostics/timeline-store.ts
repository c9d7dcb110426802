import { type Statement, statement } from '../../db/statement.ts';

/** The kinds of objects that have steps, by the prefix of their ids. */
export const steppedTables = { ord: 'orders', app: 'applications', alc: 'allocations' } as const;
export type SteppedPrefix = keyof typeof steppedTables;

export function findStepped(prefix: SteppedPrefix, id: string): Statement {
  return statement(`SELECT partner_id, id, state, updated_at FROM ${steppedTables[prefix]} WHERE id = ?`, id);
}

/**
 * A partner's events of changes at some instants, in the feed and on their way to it. A change and its events have one
 * instant, so those of an object are among these, and there are few others.
 */
export function findEventsAt(partnerId: string, instants: readonly number[], most: number): Statement[] {
  const times = instants.map((instant) => new Date(instant));
  const places = times.map(() => '?').join(', ');
  return [
    statement(
      `SELECT version, id, body, occurred_at FROM feed_events WHERE occurred_at IN (${places}) AND partner_id = ?
        ORDER BY version LIMIT ${most}`,
      ...times,
      partnerId,
    ),
    statement(
      `SELECT version, id, body, occurred_at, signed FROM outbox WHERE partner_id = ? AND occurred_at IN (${places})
        ORDER BY version LIMIT ${most}`,
      partnerId,
      ...times,
    ),
  ];
}

/** An event by its id, which begins with when it was made; undefined for what cannot be such an id. */
export function findEvent(id: string): Statement[] {
  const madeAt = Number.parseInt(id.slice('msg_'.length, 'msg_'.length + 12), 16);
  const [from, to] = [new Date(madeAt - nearMs), new Date(madeAt + nearMs)];
  return [
    statement('SELECT partner_id, body FROM feed_events WHERE occurred_at BETWEEN ? AND ? AND id = ?', from, to, id),
    statement('SELECT partner_id, body FROM outbox WHERE id = ?', id),
  ];
}

/** By how much the instant of a change and that of its event's id may differ: clocks of replicas may. */
const nearMs = 5_000;

export function findDeliveriesOf(partnerId: string, versions: readonly bigint[]): Statement {
  return statement(
    `SELECT version, state, due_at FROM webhook_deliveries WHERE partner_id = ? AND version IN (${versions.join(', ')})`,
    partnerId,
  );
}

export function findLedgerOf(partnerId: string, allocationId: string): Statement {
  return statement(
    `SELECT id, type, amount_kobo, created_at FROM wallet_transfers WHERE partner_id = ? AND allocation_id = ?
      ORDER BY sequence`,
    partnerId,
    allocationId,
  );
}

/** What operators did to something, newest first. */
export function findAuditOf(subject: string, most: number): Statement {
  return statement(
    `SELECT at, operator, action, detail, became FROM audit_entries WHERE subject = ? ORDER BY id DESC LIMIT ${most}`,
    subject,
  );
}

export function findKeyOf(id: string): Statement {
  return statement('SELECT partner_id, id, revoked_at FROM api_keys WHERE id = ?', id);
}

export function findKeyChanges(partnerId: string, keyId: string): Statement {
  return statement(
    'SELECT action, at, by_key_id FROM key_changes WHERE partner_id = ? AND key_id = ?',
    partnerId,
    keyId,
  );
}

export function findPartnerOf(id: string): Statement {
  return statement('SELECT id, state FROM partners WHERE id = ?', id);
}
