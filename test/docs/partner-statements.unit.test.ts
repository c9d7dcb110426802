import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tables } from '../../src/gateway/app/base.ts';
import { PartnersNamed, transactionStart } from '../support/partners-named.ts';
import { partnerTables, tablesAcross } from '../support/scale/one-partner.ts';
import { knownShapes } from '../support/scale/registry.ts';
import { brief, explainUnlisted, groups, isListed } from '../support/scale/several-partners.ts';

const known = partnerTables(tables);
const across = (shape: string) => tablesAcross(shape, known);

/** Tables of a cluster as a whole, which have no row of a partner. Each cluster has its own. */
const clusterTables: Readonly<Record<string, string>> = {
  environment: 'whether trading is paused, and the clock of a sandbox: an operator pauses each cluster',
  leases: 'which process does a job, of this cluster',
  positions: "how far jobs came. The ledger check's are made again from the start, if a partner's are missing",
  audit_seals: 'of the audit, which each cluster has for itself',
  secret_keys: 'which secrets were used. Clusters among which partners move have the same ring of secrets',
  write_checks: 'the test whether the server takes writes',
  archive_state: 'what the archive of this cluster has',
  writer: 'through which node of this cluster gateways write',
  writer_beats: 'that they do',
  reconciliation_runs: "which days of this cluster were compared with the broker's statement",
  unclaimed_reports: 'reports of the broker about objects that no partner of this cluster has',
  reconciliation_items: "the records of the broker's statement while a day of this cluster is compared",
};

describe('partners are apart in the database', () => {
  it('every recorded statement is bound to one partner, but those that are listed with a reason', () => {
    const unlisted = knownShapes().filter((shape) => across(shape).length > 0 && !isListed(shape));
    assert.ok(unlisted.length === 0, `\n${explainUnlisted(unlisted)}`);
  });

  it('the list has only statements that are recorded and reach several partners', () => {
    const recorded = new Map(knownShapes().map((shape) => [brief(shape), shape]));
    const lines = groups().flatMap(({ statements }) => statements);
    assert.equal(new Set(lines).size, lines.length, 'each is there once');
    const needless = lines.filter((line) => {
      const shape = recorded.get(line.replace(transactionStart, ''));
      if (line === ofLocked) return false;
      // Only the values say whether the rows of an INSERT are of several partners.
      return shape === undefined || (across(shape).length === 0 && !/^INSERT .* VALUES \?/.test(line));
    });
    assert.deepEqual(needless, [], 'remove these lines from test/support/scale/statements-of-several-partners.txt');
  });

  it('each group of the list says why, and what it does over several clusters', () => {
    for (const { name, why, clusters, statements } of groups()) {
      assert.ok(why.length > 20 && clusters.length > 20 && statements.length > 0, name);
    }
  });

  it('every table belongs to partners, but those of the cluster', () => {
    const names = tables.map(({ tableName }) => String(tableName));
    assert.deepEqual(names.filter((name) => !known.has(name)).sort(), Object.keys(clusterTables).sort());
  });
});

describe('a statement reaches several partners', () => {
  const cases: readonly [string, readonly string[]][] = [
    ['SELECT id FROM orders WHERE partner_id = ? AND id IN (?)', []],
    ['SELECT id FROM orders WHERE id = ?', ['orders']],
    ['SELECT id FROM orders WHERE partner_id IN (?) AND id = ?', ['orders']],
    ['SELECT id FROM orders WHERE partner_id > ?', ['orders']],
    ['SELECT id FROM orders WHERE partner_id = ? OR state = ?', ['orders']],
    ['SELECT id FROM orders WHERE created_at BETWEEN ? AND ? AND partner_id = ?', []],
    ['SELECT id FROM orders WHERE NOT (partner_id = ?)', ['orders']],
    ['SELECT id FROM partners WHERE id = ? FOR UPDATE', []],
    ['SELECT id FROM orders', ['orders']],
    ['SELECT name FROM leases', []],
    // Several parts, each with its own partner, of which chance sent one or more.
    ['SELECT id FROM orders WHERE ((partner_id = ? AND id IN (?)) ...)', ['orders']],
    ['SELECT id FROM orders WHERE ((partner_id = ? AND id IN (?)))', ['orders']],
    ['(SELECT version FROM outbox WHERE partner_id = ? LIMIT 1) ...', ['outbox']],
    ['SELECT version FROM outbox WHERE partner_id = ? UNION SELECT version FROM feed_events WHERE partner_id = ?', []],
    ['SELECT version FROM outbox WHERE partner_id = ? UNION SELECT version FROM feed_events', ['feed_events']],
    [
      'SELECT COUNT(1) FROM `accounts` `accounts` WHERE ((`accounts`.`partner_id` = ?) AND (`accounts`.`account` = ?))',
      [],
    ],
    // Tables that are joined.
    ['SELECT o.id FROM orders o JOIN order_steps s ON s.order_id = o.id WHERE o.partner_id = ?', ['order_steps']],
    ['SELECT o.id FROM orders o JOIN order_steps s ON s.partner_id = o.partner_id WHERE o.partner_id = ?', []],
    ['SELECT o.id FROM orders o JOIN order_steps s ON s.partner_id = o.partner_id WHERE s.partner_id = ?', []],
    [
      'SELECT o.id FROM orders o LEFT JOIN order_steps s ON o.partner_id = ? AND s.partner_id = o.partner_id',
      ['order_steps', 'orders'],
    ],
    ['SELECT o.id FROM orders o LEFT JOIN order_steps s ON s.partner_id = ?', ['orders']],
    ['SELECT o.id FROM orders o JOIN order_steps s USING (partner_id, id) WHERE o.partner_id = ?', []],
    [
      'SELECT d.id FROM (SELECT partner_id, id FROM orders WHERE partner_id = ?) d JOIN order_steps s ON s.partner_id = d.partner_id',
      [],
    ],
    [
      'SELECT d.id FROM (SELECT partner_id, id FROM orders) d JOIN order_steps s ON s.partner_id = d.partner_id',
      ['order_steps', 'orders'],
    ],
    // SELECTs in conditions and columns.
    ['SELECT 1 FROM leases WHERE EXISTS (SELECT 1 FROM orders WHERE id = ?)', ['orders']],
    [
      'SELECT (SELECT MAX(e.version) FROM feed_events e WHERE e.partner_id = p.id) AS last FROM partners p WHERE p.id = ?',
      [],
    ],
    ['SELECT (SELECT MAX(e.version) FROM feed_events e) AS last FROM partners p WHERE p.id = ?', ['feed_events']],
    ['GUARD EXISTS (SELECT 1 FROM orders WHERE partner_id = ? AND id = ?)', []],
    ['GUARD NOT EXISTS (SELECT 1 FROM orders WHERE idempotency_key = ?)', ['orders']],
    // Writes.
    ['UPDATE orders SET * WHERE partner_id = ? AND id = ?', []],
    ['UPDATE orders SET * WHERE id = ?', ['orders']],
    ['DELETE FROM outbox WHERE version = ?', ['outbox']],
    ['INSERT INTO orders (partner_id, id) VALUES ?', []],
    ['INSERT INTO orders (id, state) VALUES ?', ['orders']],
    [
      'INSERT INTO wallets (partner_id, last_sequence) VALUES ? ON DUPLICATE KEY UPDATE last_sequence = VALUES(last_sequence)',
      [],
    ],
    // It can meet the row of another partner with the same account.
    [
      'INSERT INTO accounts (partner_id, account) VALUES ? ON DUPLICATE KEY UPDATE account = VALUES(account)',
      ['accounts'],
    ],
    ['INSERT INTO feed_events (partner_id, version) SELECT partner_id, version FROM outbox WHERE partner_id = ?', []],
    ['INSERT INTO feed_events (partner_id, version) SELECT partner_id, version FROM outbox', ['feed_events', 'outbox']],
  ];
  for (const [shape, tables] of cases) {
    it(`${tables.length === 0 ? 'not by' : 'by'}: ${shape}`, () => assert.deepEqual(across(shape), tables));
  }
});

const lock = 'SELECT id FROM partners WHERE id = ? FOR UPDATE NOWAIT';
const ofLocked = `${transactionStart}of partners that are all locked`;
const [one, other] = ['par_22222222222222222222', 'par_33333333333333333333'];

describe('what is sent is noted if several partners stand in it', () => {
  const insert = (...partners: string[]) => ({
    sql: 'INSERT INTO orders (partner_id, id) VALUES ?',
    text: `INSERT INTO orders (partner_id, id) VALUES ${partners.map((id) => `('${id}', 'ord_1')`).join(', ')}`,
  });
  const locked = (id: string) => ({ sql: lock, text: lock.replace('?', `'${id}'`) });
  const bare = (sql: string) => ({ sql, text: sql });
  const noted = (...trips: { sql: string; text: string }[][]) => {
    const partners = new PartnersNamed();
    const connection = {};
    for (const trip of trips) partners.sent(connection, trip, undefined);
    return [...partners.several];
  };

  it('two partners in one statement are noted', () => {
    assert.deepEqual(noted([insert(one, other)]), ['INSERT INTO orders (partner_id, id) VALUES ?']);
    assert.deepEqual(noted([insert(one)], [insert(other)]), []);
  });

  it('two partners in one transaction are noted, also of two round trips, by its first statement', () => {
    const [start, commit, read] = [bare('START TRANSACTION'), bare('COMMIT'), bare('SELECT fence FROM leases')];
    assert.deepEqual(noted([start, read, insert(one)], [insert(other), commit]), [`${transactionStart}${read.sql}`]);
    assert.deepEqual(noted([start, read, insert(one), commit], [start, read, insert(other), commit]), []);
  });

  it('a group commit is known by its locks: a partner that is named without one is no part of it', () => {
    const group = [bare('START TRANSACTION'), locked(one), locked(other), insert(one, other), bare('COMMIT')];
    assert.deepEqual(noted(group), [ofLocked]);
    const wrong = [bare('START TRANSACTION'), locked(one), insert(one), insert(other), bare('COMMIT')];
    assert.deepEqual(noted(wrong), [`${transactionStart}${lock}`]);
  });
});
