import type { Connection } from 'mysql2/promise';

/** The partner with 40 % of the orders and 50,000 accounts. */
export const bigPartner = `par_${'2'.repeat(20)}`;

/** Each with a webhook endpoint, a wallet and keys. */
export const partnerCount = 200;
const eventsPerOrder = 3;
/** The operators' audit log. It does not grow with the orders. */
export const auditEntries = 20_000;
export const apiKeys = 10_000;
/** Events that wait for their consumers: as many at any size. */
export const outboxRows = 6_000;
/** Days since the first row: a little more than anything is kept. */
const moreThanKept = 32;

/**
 * Fills the tables of a gateway with so many orders and what comes with them, each table by one statement: an INSERT into
 * an empty table builds its indexes sorted. Everything follows from the row's number, so each run has the same rows.
 */
export async function seed(
  connection: Connection,
  orders: number,
  log: (line: string) => void,
  days = moreThanKept,
): Promise<void> {
  await connection.query('SET SESSION unique_checks = 0, foreign_key_checks = 0');
  await connection.query('SET @now = NOW(3)');
  await number(connection, Math.max(orders, auditEntries), orders);
  for (const [table, fill] of Object.entries(tables(orders, days))) {
    const began = performance.now();
    const [{ affectedRows }] = (await connection.query(fill)) as unknown as [{ affectedRows: number }];
    log(`${table}: ${affectedRows} rows in ${((performance.now() - began) / 1_000).toFixed(1)} s`);
  }
  await connection.query('DROP TABLE scale_orders, scale_numbers');
  await connection.query('SET SESSION unique_checks = 1, foreign_key_checks = 1');
}

/**
 * Numbers, and each order's partner and place among the partner's orders: two of five orders are of the big partner. Ids
 * sort by time, and partners take turns, as in real tables.
 */
async function number(connection: Connection, count: number, orders: number): Promise<void> {
  await connection.query('CREATE TABLE scale_numbers (n INT NOT NULL PRIMARY KEY)');
  await connection.query('INSERT INTO scale_numbers VALUES (0)');
  for (let have = 1; have < count; have *= 2) {
    await connection.query(
      `INSERT INTO scale_numbers SELECT n + ${have} FROM scale_numbers WHERE n + ${have} < ${count}`,
    );
  }
  await connection.query(
    'CREATE TABLE scale_orders (n INT NOT NULL, p SMALLINT NOT NULL, place INT NOT NULL, PRIMARY KEY (p, place))',
  );
  await connection.query(
    `INSERT INTO scale_orders SELECT n, p, ROW_NUMBER() OVER (PARTITION BY p ORDER BY n) FROM
      (SELECT n, IF(n % 5 < 2, 0, 1 + CRC32(n) % ${partnerCount - 1}) AS p FROM scale_numbers
        WHERE n < ${orders}) AS numbered`,
  );
}

/** As long as real ids, of their letters, and in the numbers' order: a digit to base 6, and 2 more. */
const id = (prefix: string, n: string) =>
  `CONCAT('${prefix}_', CAST(CONV(${n}, 10, 6) AS DECIMAL(20)) + ${'2'.repeat(20)})`;
const partner = (p: string) => id('par', p);
/** A number below a bound that looks like chance. */
const chance = (n: string, salt: string, below: number) => `(CRC32(CONCAT('${salt}', ${n})) % ${below})`;
const hash = 'UNHEX(REPEAT("5A", 32))';

function tables(orders: number, days: number): Record<string, string> {
  const created = (n: string, of = orders) =>
    `@now - INTERVAL ${days} DAY + INTERVAL ${n} * ${(days * 86_400) / of} SECOND`;
  // The first fifth of the orders has a symbol of which none was ever filled: two common values that never meet.
  const isOldSymbol = `n < ${orders / 5} AND ${chance('n', 'old', 4)} = 0`;
  const state = `CASE WHEN ${isOldSymbol} THEN 'cancelled' WHEN n % ${orders / 20} = 7 THEN 'uncertain'
    WHEN n % ${orders / 10} = 9 THEN 'amended' WHEN n >= ${orders - 20} THEN 'sending'
    ELSE ELT(1 + ${chance('n', 'state', 20)}, ${Array(15).fill("'filled'").join()}, 'cancelled', 'cancelled', 'expired', 'rejected', 'pending') END`;
  const account = (n: string, p: string) =>
    `CONCAT('A', LPAD(${p}, 3, '0'), LPAD(IF(${p} = 0, ${chance(n, 'account', 50_000)}, ${chance(n, 'account', 100)}), 5, '0'))`;
  const events = `(SELECT p, n, place, e, (place - 1) * ${eventsPerOrder} + e AS version FROM scale_orders
    JOIN (SELECT 1 AS e UNION ALL SELECT 2 UNION ALL SELECT 3) AS times) AS events`;
  // The number of objects under way does not grow with the orders, nor does the number of keys.
  const eventId = "CONCAT('msg_', LPAD(n, 9, '0'), e)";
  const eventType = "ELT(e, 'order.sending', 'order.pending', 'order.filled')";
  const isSettled = `n < ${orders - outboxRows / eventsPerOrder}`;
  const some = (count: number) => `(SELECT n FROM scale_numbers WHERE n < ${Math.ceil(count)}) AS some`;
  const allocations = orders / 10;
  const withdrawals = orders / 10;
  const applications = orders / 20;
  const p = (n: string) => `IF(${n} % 5 < 2, 0, 1 + CRC32(${n}) % ${partnerCount - 1})`;

  return {
    environment: `INSERT IGNORE INTO environment (id, name) VALUES (1, 'sandbox')`,
    partners: `INSERT INTO partners (id, name, state, version, created_at, features)
      SELECT ${partner('n')}, 'Partner', 'active', (SELECT COUNT(*) * ${eventsPerOrder} FROM scale_orders o WHERE o.p = some.n), @now, ''
      FROM ${some(partnerCount)}`,
    orders: `INSERT INTO orders (partner_id, id, state, account, symbol, side, type, time_in_force, quantity, price_kobo,
        filled_quantity, filled_value_kobo, client_reference, created_at, updated_at, filled_at, counted_day,
        counted_price_kobo, idempotency_key, request_digest, first_answer, steps, not_after, check_at, cancel_until,
        last_report, missed_report)
      SELECT ${partner('p')}, ${id('ord', 'n')}, state, ${account('n', 'p')},
        IF(${isOldSymbol}, 'OLD', CONCAT('S', ${chance('n', 'symbol', 50)})), IF(n % 2, 'buy', 'sell'), 'limit', 'day', 100,
        1000, 0, 0, IF(n % 10 = 3, 'everybody', IF(n % 2, CONCAT('r', n), NULL)), ${created('n')},
        GREATEST(${created('n')}, IF(n % 100 = 1, LEAST(@now, ${created('n')} + INTERVAL 6 HOUR), ${created('n')} + INTERVAL 5 SECOND)),
        IF(state = 'filled', ${created('n')}, NULL), DATE(${created('n')}), 1000,
        IF(n > ${orders * 0.9}, CONCAT('key', n), NULL), ${hash}, 'object', 2, ${created('n')},
        IF(state IN ('sending', 'uncertain', 'amended'), @now - INTERVAL n % 60 SECOND, NULL),
        IF(n % ${orders / 100} = 11, @now, NULL), 2, IF(state = 'amended', 3, 0)
      FROM (SELECT p, n, ${state} AS state FROM scale_orders ORDER BY p, place) AS made`,
    order_steps: `INSERT INTO order_steps (partner_id, order_id, sequence, kind, at, state, detail)
      SELECT ${partner('p')}, ${id('ord', 'n')}, step, 'report', ${created('n')}, 'pending', 'sent' FROM scale_orders
      JOIN (SELECT 1 AS step UNION ALL SELECT 2) AS steps ORDER BY p, place, step`,
    feed_events: `INSERT INTO feed_events (partner_id, version, id, body, occurred_at, type, object_kind, object_id)
      SELECT ${partner('p')}, version, ${eventId}, '{"id":"some event"}', ${created('n')}, ${eventType}, 'order', ${id('ord', 'n')}
      FROM ${events} WHERE ${isSettled} ORDER BY p, version`,
    outbox: `INSERT INTO outbox (partner_id, version, id, type, body, occurred_at, publish_at, object_kind, object_id)
      SELECT ${partner('p')}, version, ${eventId}, ${eventType}, '{"id":"some event"}', ${created('n')}, ${created('n')}, 'order',
        ${id('ord', 'n')} FROM ${events} WHERE NOT ${isSettled} ORDER BY p, version`,
    feed_purges: `INSERT INTO feed_purges SELECT ${partner('n')}, 0 FROM ${some(partnerCount)}`,
    feed_skips: `INSERT INTO feed_skips SELECT ${partner(`n % ${partnerCount}`)}, 1000000000 + n, 1000000000 + n FROM ${some(400)}`,
    // Of seven events four are sent to the partner's endpoint: 1.7 an order.
    webhook_deliveries: `INSERT INTO webhook_deliveries (partner_id, version, event_id, type, occurred_at, committed_at, taken_at,
        state, queue, due_at, attempts, tries, ended_at)
      SELECT ${partner('p')}, version, ${eventId}, ${eventType}, at, at, at,
        CASE WHEN queue > 0 THEN 'waiting' WHEN n % 20000 = 3 THEN 'expired' ELSE 'delivered' END, queue,
        IF(queue = 2, @now + INTERVAL (n % 7200) - 3600 SECOND, NULL), 1, 1, IF(queue IS NULL, at, NULL)
      FROM (SELECT p, n, e, version, ${created('n')} AS at, CASE WHEN ${isSettled} THEN NULL
        WHEN p % 4 = 0 THEN 1 WHEN p % 4 = 1 THEN 2 END AS queue FROM ${events} WHERE version % 7 < 4) AS sent ORDER BY p, version`,
    webhook_attempts: `INSERT INTO webhook_attempts (partner_id, version, number, at, is_probe, outcome, status, duration_ms)
      SELECT ${partner('p')}, version, 1, ${created('n')}, 0, 'delivered', 200, 20 FROM ${events} WHERE version % 7 < 4
      ORDER BY p, version`,
    webhook_endpoints: `INSERT INTO webhook_endpoints (partner_id, url, secret, after_version, registered_at, lease_name, lease_fence,
        paused_at, probe_at, due_at)
      SELECT ${partner('n')}, 'https://example.com/', 's', 0, @now, CONCAT('webhooks-', n % 4), 1,
        IF(n % 20 = 1, @now, NULL), IF(n % 20 = 1, @now, NULL), IF(n % 4 < 2, @now, NULL) FROM ${some(partnerCount)}`,
    accounts: `INSERT INTO accounts (partner_id, account, application_id, created_at)
      SELECT ${partner('p')}, CONCAT('A', LPAD(p, 3, '0'), LPAD(a, 5, '0')), NULL, @now - INTERVAL CRC32(a) % 9999999 SECOND FROM
        (SELECT 0 AS p, n AS a FROM ${some(50_000)} UNION ALL
          SELECT 1 + n % ${partnerCount - 1}, FLOOR(n / ${partnerCount - 1}) FROM ${some(100 * (partnerCount - 1))}) AS made ORDER BY p, a`,
    applications: `INSERT INTO applications (partner_id, id, state, reference, account, created_at, updated_at, idempotency_key,
        request_digest, first_answer, steps, not_after, check_at, evidence)
      SELECT ${partner(p('n'))}, ${id('app', 'n')}, IF(n % ${applications / 10} = 7, 'uncertain', ELT(1 + n % 3, 'opened', 'submitted', 'documents_required')),
        CONCAT('ref', n), NULL, ${created('n', applications)}, ${created('n', applications)},
        IF(n > ${applications * 0.9}, CONCAT('key', n), NULL), ${hash}, 'object', 2, @now,
        IF(n % ${applications / 10} = 7, @now - INTERVAL n % 60 SECOND, NULL), '' FROM ${some(applications)} ORDER BY 1, 2`,
    documents: `INSERT INTO documents (partner_id, application_id, type, digest, state, attempt, lease_until, created_at, updated_at)
      SELECT ${partner(p('n'))}, ${id('app', 'n')}, type, ${hash}, IF(n % ${applications / 10} = 7, 'sending', 'delivered'), 1,
        IF(n % ${applications / 10} = 7, @now, NULL), @now, @now FROM ${some(applications)}
        JOIN (SELECT 'passport' AS type UNION ALL SELECT 'signature') AS types ORDER BY 1, 2, 3`,
    allocations: `INSERT INTO allocations (partner_id, id, state, account, amount_kobo, client_reference, created_at, updated_at,
        counted_day, idempotency_key, request_digest, first_answer, evidence, not_after, check_at, steps)
      SELECT ${partner(p('n'))}, ${id('alc', 'n')},
        CASE WHEN n % ${allocations / 10} = 7 THEN 'uncertain' WHEN n % 50 = 1 THEN 'rejected' ELSE 'booked' END, ${account('n', p('n'))},
        1000 + n % 1000, IF(n % 2, CONCAT('r', n), 'everybody'), ${created('n', allocations)}, ${created('n', allocations)},
        DATE(${created('n', allocations)}), IF(n > ${allocations * 0.9}, CONCAT('key', n), NULL), ${hash}, 'object', '', @now,
        IF(n % ${allocations / 10} = 7, @now - INTERVAL n % 60 SECOND, NULL), 2 FROM ${some(allocations)} ORDER BY 1, 2`,
    withdrawals: `INSERT INTO withdrawals (partner_id, id, state, account, amount_kobo, destination, client_reference, broker_reference,
        created_at, updated_at, counted_day, idempotency_key, request_digest, first_answer, evidence, last_report, not_after, check_at, steps)
      SELECT ${partner(p('n'))}, ${id('wdr', 'n')},
        CASE WHEN n % ${withdrawals / 10} = 7 THEN 'uncertain' WHEN n % 50 = 1 THEN 'rejected' WHEN n % 50 = 3 THEN 'processing'
          WHEN n % 1000 = 5 THEN 'returned' ELSE 'completed' END,
        ${account('n', p('n'))}, 1000 + n % 1000, IF(n % 2, 'wallet', 'bank_account'), IF(n % 2, CONCAT('r', n), 'everybody'),
        CONCAT('WDL', n), ${created('n', withdrawals)}, ${created('n', withdrawals)}, DATE(${created('n', withdrawals)}),
        IF(n > ${withdrawals * 0.9}, CONCAT('key', n), NULL), ${hash}, 'object', '', n + 1, @now,
        IF(n % ${withdrawals / 10} = 7, @now - INTERVAL n % 60 SECOND, NULL), 2 FROM ${some(withdrawals)} ORDER BY 1, 2`,
    object_steps: `INSERT INTO object_steps (partner_id, object_id, sequence, kind, at, state, detail)
      SELECT ${partner(p('n'))}, object, step, 'sent', @now, 'booked', 'sent' FROM
        (SELECT n, ${id('alc', 'n')} AS object FROM ${some(allocations)} UNION ALL SELECT n, ${id('wdr', 'n')} FROM ${some(withdrawals)}) AS objects
      JOIN (SELECT 1 AS step UNION ALL SELECT 2) AS steps ORDER BY 1, 2, 3`,
    // A credit or a withdrawal, and two entries for each allocation; after some credits a debit and a reversal.
    wallet_transfers: `INSERT INTO wallet_transfers (partner_id, sequence, id, type, amount_kobo, available_after_kobo,
        reserved_after_kobo, posted_after_kobo, allocation_id, account, bank_reference, created_at, previous_hash, hash, reverses)
      SELECT ${partner('p')}, (place - 1) * 3 + e, ${id('wtr', 'n * 3 + e')},
        ELT(e, IF(n % 2, 'withdraw', 'credit'), IF(n % 1000 = 8, 'debit', 'reserve'), IF(n % 1000 = 8, 'credit_r', 'post')), 1000, 0, 0, 0,
        IF(e > 1, IF(n % 1000 = 8, NULL, ${id('alc', 'n')}), IF(n % 2, ${id('wdr', 'n')}, NULL)),
        IF((e = 3 AND n % 1000 <> 8) OR (e = 1 AND n % 2), ${account('n', 'p')}, NULL),
        IF(e = 1, IF(n % 2, NULL, CONCAT('bank', n)), IF(n % 1000 = 8, CONCAT('bank', n, 'e', e), NULL)),
        ${created('n', allocations)}, ${hash}, ${hash}, IF(e = 3 AND n % 1000 = 8, (place - 1) * 3 + 1, NULL)
      FROM ${events} WHERE n < ${allocations} ORDER BY p, place, e`,
    wallets: `INSERT INTO wallets (partner_id, last_sequence, last_hash, available_kobo, reserved_kobo, posted_kobo)
      SELECT ${partner('p')}, COUNT(*) * 3, ${hash}, 0, 0, 0 FROM scale_orders WHERE n < ${allocations}
      GROUP BY p`,
    usage_days: `INSERT INTO usage_days SELECT ${partner(`n % ${partnerCount}`)}, DATE(@now) - INTERVAL FLOOR(n / ${partnerCount}) DAY, kind, 1000
      FROM ${some(Math.min(orders, partnerCount * 400))} JOIN (SELECT 'orders' AS kind UNION ALL SELECT 'allocations') AS kinds ORDER BY 1, 2, 3`,
    look_ups: `INSERT INTO look_ups SELECT ${partner('p')}, ${id('ord', 'n')}, 3, @now, @now, 'missing', NULL FROM scale_orders
      WHERE n % 1000 = 7 ORDER BY p, place`,
    open_cancels: `INSERT INTO open_cancels SELECT ${partner('p')}, ${id('ord', 'n')}, @now FROM scale_orders WHERE n % ${orders / 100} = 11
      ORDER BY p, place`,
    // The last 20 run.
    bulk_cancels: `INSERT INTO bulk_cancels (id, symbol, reason, started_by, request_id, created_at, give_up_at, matched, cancelled,
        not_cancelable, unconfirmed, updated_at, ended_at)
      SELECT ${id('bcl', 'n')}, 'OLD', 'a reason', 'ada', 'request', @now, @now, 50, 20, 10, 10, @now, IF(n < 980, @now, NULL)
      FROM ${some(1_000)} ORDER BY 1`,
    bulk_cancel_orders: `INSERT INTO bulk_cancel_orders
      SELECT ${partner('o.p')}, ${id('bcl', 'some.n')}, ${id('ord', 'o.n')},
        ELT(1 + o.n % 4, 'cancelled', 'not_cancelable', 'unconfirmed', NULL), '', @now,
        IF(some.n < 980, NULL, @now - INTERVAL o.n % 60 SECOND)
      FROM (SELECT p, n FROM scale_orders ORDER BY n LIMIT 50) AS o JOIN ${some(1_000)} ORDER BY 1, 2, 3`,
    api_keys: `INSERT INTO api_keys (partner_id, id, secret_hash, scopes, addresses, created_at, revoked_at, has_mac)
      SELECT ${partner(`n % ${partnerCount}`)}, ${id('key', 'n')}, ${hash}, 'read', '', @now, IF(n % 3 = 0, @now, NULL), n % 4 > 0
      FROM ${some(apiKeys)} ORDER BY 1, 2`,
    key_uses: `INSERT INTO key_uses SELECT ${partner(`n % ${partnerCount}`)}, ${id('key', 'n')}, @now FROM ${some(apiKeys)} ORDER BY 1, 2`,
    key_changes: `INSERT INTO key_changes SELECT ${partner(`n % ${partnerCount}`)}, ${id('key', 'n')}, action, @now, ${id('key', 'n')}, 'request'
      FROM ${some(apiKeys)} JOIN (SELECT 'created' AS action UNION ALL SELECT 'revoked') AS actions ORDER BY 1, 2, 3`,
    audit_entries: `INSERT INTO audit_entries (id, at, operator, action, subject, detail, partner_id)
      SELECT n + 1, ${created('n', auditEntries)}, CONCAT('operator', n % 20), IF(n = 5, 'SetClock', ELT(1 + n % 3, 'Credit', 'Redeliver', 'SetLimits')),
        ${id('ord', 'n')}, '{}', ${partner(p('n'))} FROM ${some(auditEntries)}`,
    leases: `INSERT INTO leases SELECT CONCAT('webhooks-', n), CONCAT('holder', n), 1, @now - INTERVAL n % 2 DAY FROM ${some(50)}`,
    positions: `INSERT INTO positions SELECT CONCAT('position-', n), n FROM ${some(20)}`,
    reconciliation_runs: `INSERT INTO reconciliation_runs SELECT DATE(@now) - INTERVAL n DAY, 1, IF(n = 0, 'running', 'complete'), NULL, @now,
      @now, IF(n = 0, @now, NULL), 1, '', 'end', '', @now, @now, 1000, 1000, 0, 1000 FROM ${some(1_000)} ORDER BY 1, 2`,
    reconciliation_items: `INSERT INTO reconciliation_items
      SELECT DATE(@now), ${id('ord', 'n')}, 'order', '', ${account('n', p('n'))}, 'OLD', 'buy', 'open', 100, NULL, 0, '', NULL
      FROM ${some(allocations)} ORDER BY 1, 2`,
    reconciliation_breaks: `INSERT INTO reconciliation_breaks
      SELECT ${partner(p('n'))}, CONCAT('brk_', n), DATE(@now) - INTERVAL n % 100 DAY, IF(n % 2, 'cash', 'order_state'), ${id('ord', 'n')},
        ${account('n', p('n'))}, '', '1', '2', 0, n % 10 = 0, 1, @now, @now, NULL, NULL, NULL, NULL FROM ${some(auditEntries)} ORDER BY 1, 3, 2`,
    unclaimed_reports: `INSERT INTO unclaimed_reports SELECT IF(n % 2, 'order', 'application'), n, CONCAT('foreign', n), 'X', 'trade',
      10, 1000, @now, @now - INTERVAL n % 400 DAY FROM ${some(auditEntries)} ORDER BY 1, 2`,
    // Few are open.
    contradictions: `INSERT INTO contradictions
      SELECT n + 1, ${partner(p('n'))}, ${id('ord', 'n')}, 3, @now - INTERVAL n MINUTE, 'expired', '30 shares traded', n, @now, 30, 1000, 0,
        IF(n % 100 = 0, NULL, @now), IF(n % 100 = 0, NULL, 'ada'), NULL, NULL FROM ${some(auditEntries)} ORDER BY 1`,
    // Only those of the last days are open.
    proposals: `INSERT INTO proposals
      SELECT ${partner(p('n'))}, ${id('prp', 'n')}, 'Settlements.ProposeSettlement', ${id('ord', 'n')},
        IF(n >= ${auditEntries - 20}, 'open', ELT(1 + n % 3, 'applied', 'declined', 'expired')), '{}', '{}', 'a mail', 'T-1', 'ada',
        @now - INTERVAL ${auditEntries} - n HOUR, @now - INTERVAL ${auditEntries} - n HOUR + INTERVAL 7 DAY, NULL, NULL, NULL, IF(n % 3 = 0, CONCAT('about ', n), NULL)
      FROM ${some(auditEntries)} ORDER BY 1, 2`,
    audit_seals: `INSERT INTO audit_seals SELECT n + 1, n * 200 + 1, n * 200 + 200, 200, ${hash}, '', @now FROM ${some(auditEntries / 200)} ORDER BY 1`,
    write_checks: `INSERT INTO write_checks (holder, filler, checked_at) SELECT CONCAT('holder', n), '', @now FROM ${some(50)}`,
  };
}

/** Conditions for rare rows of the big partner, whose values statements are run with too. */
export const rare: Readonly<Record<string, readonly string[]>> = {
  orders: [
    "state = 'uncertain'",
    "state = 'amended'",
    "symbol = 'OLD'",
    "client_reference = 'everybody' AND state = 'filled'",
    'idempotency_key IS NOT NULL',
    'cancel_until IS NOT NULL',
  ],
  webhook_deliveries: ["state = 'expired'", 'queue = 1', 'queue = 2'],
  allocations: ["state = 'uncertain'", "state = 'rejected'", "client_reference = 'everybody'"],
  withdrawals: [
    "state = 'uncertain'",
    "state = 'rejected'",
    "state = 'processing'",
    "state = 'returned'",
    "client_reference = 'everybody'",
  ],
  applications: ["state = 'uncertain'", "state = 'opened'"],
  wallet_transfers: [
    "type = 'credit'",
    "type = 'post'",
    "type = 'withdraw'",
    "type = 'debit'",
    "type = 'credit_r' AND reverses IS NOT NULL",
  ],
  documents: ["state = 'sending'"],
  audit_entries: ["action = 'SetClock'"],
  api_keys: ['revoked_at IS NOT NULL', 'has_mac = 0'],
};
