/** The statements of deliveries, over rows that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type DeliveryFilter,
  findAttempts,
  findPosition,
  findProgress,
  findVersionsAbout,
  keptWebhooks,
  listDeliveries,
  lockEvent,
  lockWindow,
  readAttempts,
  redeliver,
  saveDelivered,
  saveTry,
  type WindowPosition,
  webhookRetention,
} from '../../../../../src/gateway/delivery/webhooks/record/delivery-store.ts';
import { attemptsKeptMs, sentForMs } from '../../../../../src/gateway/delivery/webhooks/rules.ts';
import { attempts, deliveries } from '../../../../../src/gateway/delivery/webhooks/table.ts';
import type { Decision, SqlRow, Statement } from '../../../../../src/gateway/store/statement.ts';
import { startWorker } from '../../../../support/database.ts';
import { RowsDatabase, selectedRows } from '../../../../support/rows-database.ts';

const now = 2_000_000_000_000;

function delivery(partnerId: string, version: number, more: SqlRow = {}): SqlRow {
  const occurredAt = new Date(now - 1_000 + version);
  return {
    partner_id: partnerId,
    version,
    event_id: `evt_${version}`,
    state: 'waiting',
    occurred_at: occurredAt,
    ...more,
  };
}

const both = ['par_a', 'par_b'].flatMap((partnerId) => [1, 2, 3, 9, 10].map((version) => delivery(partnerId, version)));
const names = (rows: readonly SqlRow[]) => rows.map((row) => `${row.partner_id} ${row.version}`);

/** The rows that an UPDATE or DELETE changes. */
function changed({ sql, values }: Statement, rows: readonly SqlRow[]): SqlRow[] {
  const before = sql.slice(0, sql.indexOf(' WHERE ')).split('?').length - 1;
  return selectedRows({ sql, values: values.slice(before) }, rows);
}

describe('the progress of deliveries', () => {
  const some = new Map([
    ['par_a', [1n, 10n]],
    ['par_b', [2n]],
  ]);

  it("progress is read and stored of each partner's own versions", () => {
    const wanted = ['par_a 1', 'par_a 10', 'par_b 2'];
    assert.deepEqual(names(selectedRows(findProgress(some), both)), wanted);
    assert.deepEqual(names(changed(saveDelivered(some, now), both)), wanted);
    const { sql, values } = saveDelivered(some, now);
    for (const set of [
      "state = 'delivered'",
      'queue = NULL',
      'due_at = NULL',
      'attempts = attempts + 1',
      'tries = tries + 1',
    ]) {
      assert.ok(sql.includes(set), set);
    }
    assert.deepEqual(values[0], new Date(now));
  });

  it('an attempt is counted for its own event, and moves the next one only if that changes', () => {
    const kept = saveTry('par_a', 9n, 4, null);
    assert.deepEqual(
      [kept.values, kept.sql.includes('due_at'), kept.sql.includes('queue')],
      [[4, 'par_a', 9n], false, false],
    );
    const moved = saveTry('par_a', 9n, 4, now);
    assert.deepEqual(moved.values, [4, new Date(now), 'par_a', 9n]);
    assert.match(moved.sql, /tries = tries \+ 1, attempts = \?, queue = 2, due_at = \?/);
    for (const statement of [kept, moved]) assert.deepEqual(names(changed(statement, both)), ['par_a 9']);
  });

  it('events are sent again at once, in a new round', () => {
    const statement = redeliver('par_b', [1n, 9n]);
    assert.deepEqual(names(changed(statement, both)), ['par_b 1', 'par_b 9']);
    for (const set of ["state = 'waiting'", 'queue = 1', 'due_at = NULL', 'ended_at = NULL', 'round = round + 1']) {
      assert.ok(statement.sql.includes(set), set);
    }
  });
});

describe('lists of deliveries', () => {
  const listed = (filter: DeliveryFilter, most: number, rows = both) => {
    const { sql, values } = listDeliveries('par_a', filter, most);
    const [, inner = ''] = /FROM \((SELECT .*?)\) d\s/s.exec(sql) ?? [];
    assert.match(sql, /ORDER BY d\.version DESC$/);
    const [, index = ''] = /FORCE INDEX \((\w+)\)/.exec(inner) ?? [];
    assert.ok(index === 'PRIMARY' || index in deliveries.indexes, index);
    return names(selectedRows({ sql: inner, values }, rows));
  };

  it("a partner's deliveries are listed newest first, page by page", () => {
    assert.deepEqual(listed({}, 3), ['par_a 10', 'par_a 9', 'par_a 3']);
    assert.deepEqual(listed({ before: 3n }, 3), ['par_a 2', 'par_a 1']);
    assert.deepEqual(listed({ before: 1n }, 3), []);
  });

  it('deliveries are listed by event, by state and by versions, and by all of them at once', () => {
    const rows = [...both, delivery('par_a', 11, { state: 'expired' }), delivery('par_a', 12, { state: 'expired' })];
    assert.deepEqual(listed({ state: 'expired' }, 9, rows), ['par_a 12', 'par_a 11']);
    assert.deepEqual(listed({ eventId: 'evt_9' }, 9, rows), ['par_a 9']);
    assert.deepEqual(listed({ versions: [12n, 9n, 77n] }, 9, rows), ['par_a 12', 'par_a 9']);
    assert.deepEqual(listed({ versions: [] }, 9, rows), []);
    assert.deepEqual(listed({ versions: [12n, 9n], state: 'expired' }, 9, rows), ['par_a 12']);
    assert.deepEqual(listed({ versions: [12n, 9n], before: 12n }, 9, rows), ['par_a 9']);
    assert.deepEqual(listed({ eventId: 'evt_9', state: 'expired' }, 9, rows), []);
  });

  it('the position of a version is its delivery, or the last one before', () => {
    for (const [version, found] of [
      [0n, []],
      [1n, ['par_a 1']],
      [8n, ['par_a 3']],
      [9n, ['par_a 9']],
      [99n, ['par_a 10']],
    ] as const) {
      assert.deepEqual(names(selectedRows(findPosition('par_a', version), both)), found);
    }
  });

  it("the versions about an object are the last ones before a version, of the partner's own object", () => {
    const events = both.map((row) => ({ ...row, object_id: Number(row.version) % 2 === 1 ? 'ord_a' : 'ord_b' }));
    assert.deepEqual(names(selectedRows(findVersionsAbout('par_a', 'ord_a', undefined, 2), events)), [
      'par_a 9',
      'par_a 3',
    ]);
    assert.deepEqual(names(selectedRows(findVersionsAbout('par_a', 'ord_a', 9n, 5), events)), ['par_a 3', 'par_a 1']);
  });
});

describe('deliveries that are sent again', () => {
  it('an event can be sent again until it is too old', () => {
    for (const [ageMs, isFound] of [
      [sentForMs - 1, true],
      [sentForMs, false],
      [sentForMs + 1, false],
    ] as const) {
      const rows = [delivery('par_a', 1, { occurred_at: new Date(now - ageMs) })];
      const statement = lockEvent('par_a', 'evt_1', now);
      assert.equal(selectedRows(statement, rows).length === 1, isFound, `${ageMs}`);
      assert.match(statement.sql, / FOR UPDATE$/);
    }
    assert.deepEqual(selectedRows(lockEvent('par_b', 'evt_1', now), [delivery('par_a', 1)]), []);
    assert.deepEqual(selectedRows(lockEvent('par_a', 'evt_2', now), [delivery('par_a', 1)]), []);
  });

  it('a window has the changes from its begin, before its end, that are not too old', () => {
    const [from, to] = [now - 100, now - 50];
    const at = (ms: number, version: number) => delivery('par_a', version, { occurred_at: new Date(ms) });
    const rows = [at(from - 1, 1), at(from, 2), at(to - 1, 3), at(to, 4), { ...at(from, 5), partner_id: 'par_b' }];
    assert.deepEqual(names(selectedRows(lockWindow('par_a', { from, to }, now, 9), rows)), ['par_a 2', 'par_a 3']);
    const oldest = now - sentForMs;
    const old = [at(oldest, 1), at(oldest + 1, 2)];
    assert.deepEqual(names(selectedRows(lockWindow('par_a', { from: 0, to: now }, now, 9), old)), ['par_a 2']);
  });

  it('a window is gone through in the order of the changes, each once, also those of one instant', () => {
    const rows = [3, 1, 2, 5, 4, 6].map((version, at) => {
      return delivery('par_a', version, { occurred_at: new Date(now - 100 + Math.floor(at / 2)) });
    });
    const inOrder = [1, 3, 2, 5, 4, 6].map((version) => `par_a ${version}`);
    for (const most of [1, 2, 3, 6, 7]) {
      const seen: SqlRow[] = [];
      for (let after: WindowPosition | undefined; seen.length <= rows.length; ) {
        const page = selectedRows(lockWindow('par_a', { from: 0, to: now, after }, now, most), rows);
        seen.push(...page);
        const last = page.at(-1);
        if (last === undefined) break;
        after = { occurredAt: (last.occurred_at as Date).getTime(), version: BigInt(String(last.version)) };
      }
      assert.deepEqual(names(seen), inOrder, `${most}`);
    }
  });
});

describe('attempts of deliveries', () => {
  const attempt = (partnerId: string, version: number, number: number) => {
    const outcome = {
      at: new Date(now),
      is_probe: 0,
      outcome: 'failed',
      status: 500,
      error_class: 'x',
      duration_ms: 1,
    };
    return { partner_id: partnerId, version, number, ...outcome };
  };
  const stored = ['par_a', 'par_b'].flatMap((id) =>
    [1, 2].flatMap((version) => [1, 2, 3].map((at) => attempt(id, version, at))),
  );

  it('the first attempts of each delivery are found, the newest delivery first, and at most so many', () => {
    const numbers = (statement: Statement) =>
      selectedRows(statement, stored).map((row) => `${row.version}.${row.number}`);
    assert.deepEqual(numbers(findAttempts('par_a', [1n, 2n], 2, 9)), ['2.1', '2.2', '1.1', '1.2']);
    assert.deepEqual(numbers(findAttempts('par_a', [1n, 2n], 2)), ['2.1', '2.2']);
    assert.deepEqual(numbers(findAttempts('par_a', [1n], 9)), ['1.1', '1.2', '1.3']);
  });

  it('attempts are read by their versions, and nothing is asked without one', async () => {
    const database = new RowsDatabase({ [attempts.name]: stored });
    const found = await readAttempts(database as never, 'par_a', [1n, 2n], 2, 9);
    assert.deepEqual(
      [...found].map(([version, of]) => [version, of.map(({ number, partnerId }) => `${partnerId} ${number}`)]),
      [
        [2n, ['par_a 1', 'par_a 2']],
        [1n, ['par_a 1', 'par_a 2']],
      ],
    );
    assert.equal((await readAttempts(database as never, 'par_a', [], 2, 9)).size, 0);
    assert.equal(database.asked.length, 1);
  });
});

describe('old deliveries', () => {
  /** One round of the retention, over queues of overdue deliveries. */
  async function retention(overdue: readonly (readonly string[])[]) {
    const writes: Statement[] = [];
    const expired: string[] = [];
    const reads: Statement[] = [];
    let done = () => {};
    const ended = new Promise<void>((resolve) => {
      done = resolve;
    });
    const database = {
      read: async () => [{ fence: 1 }],
      transaction: async (found: readonly Statement[], decide: (rows: SqlRow[][]) => Decision<unknown>) => {
        if (!found[0]?.sql.includes('webhook_deliveries')) return 1n;
        reads.push(...found);
        const decision = decide(overdue.map((ids) => ids.map((id) => ({ partner_id: id }))));
        writes.push(...decision.writes);
        return decision.result;
      },
      write: async (statement: Statement) => {
        if (!statement.sql.includes('DELETE')) return 1;
        writes.push(statement);
        if (statement.sql.includes('FROM leases')) done();
        return 0;
      },
    };
    const note = (partnerId: string, count: number) => expired.push(`${partnerId} ${count}`);
    const stop = startWorker(webhookRetention(database as never, async () => now, 'test', note));
    await ended;
    await stop();
    return { reads, writes, expired };
  }

  it('overdue deliveries of each queue expire, and each partner is told how many of its own', async () => {
    const { reads, writes, expired } = await retention([['par_a', 'par_b', 'par_a'], ['par_a']]);
    assert.deepEqual(expired, ['par_a 3', 'par_b 1']);
    const at = (version: number, queue: number | null, ageMs: number) =>
      delivery('par_a', version, { queue, occurred_at: new Date(now - ageMs) });
    const rows = [
      at(1, 1, sentForMs),
      at(2, 1, sentForMs - 1),
      at(3, 2, sentForMs),
      at(4, null, sentForMs),
      at(5, 2, 1),
    ];
    assert.deepEqual(
      reads.map((statement) => names(selectedRows(statement, rows))),
      [['par_a 1'], ['par_a 3']],
    );
    const updates = writes.filter(({ sql }) => sql.startsWith('UPDATE'));
    assert.deepEqual(
      updates.map((statement) => names(changed(statement, rows))),
      [['par_a 1'], ['par_a 3']],
    );
    for (const { sql, values } of updates) {
      assert.match(sql, /state = 'expired', queue = NULL,\s+due_at = NULL, ended_at = \?/);
      assert.deepEqual(values[0], new Date(now));
    }
  });

  it('nothing is written for a queue without an overdue delivery', async () => {
    const { writes, expired } = await retention([[], ['par_a']]);
    const updates = writes.filter(({ sql }) => sql.startsWith('UPDATE'));
    assert.deepEqual([updates.length, updates[0]?.values.includes(2), expired], [1, true, ['par_a 1']]);
  });

  it('attempts are kept for thirty days, and a delivery until nothing of it was sent for thirty days', async () => {
    const { writes } = await retention([[], []]);
    const deletes = writes.filter(({ sql }) => sql.startsWith('DELETE'));
    const inner = ({ sql, values }: Statement) => ({ sql: /FROM \((SELECT .*?)\) old/s.exec(sql)?.[1] ?? '', values });
    const [ofAttempts, ofDeliveries] = deletes.map(inner);
    const attemptAt = (ageMs: number) => ({ at: new Date(now - ageMs) });
    const attemptRows = [attemptAt(attemptsKeptMs), attemptAt(attemptsKeptMs + 1)];
    assert.deepEqual(selectedRows(ofAttempts as Statement, attemptRows), [attemptRows[1]]);
    const keptMs = attemptsKeptMs + sentForMs;
    const at = (version: number, queue: number | null, ageMs: number) =>
      delivery('par_a', version, { queue, occurred_at: new Date(now - ageMs) });
    const rows = [at(1, null, keptMs), at(2, null, keptMs + 1), at(3, 1, keptMs + 1)];
    assert.deepEqual(names(selectedRows(ofDeliveries as Statement, rows)), ['par_a 2']);
    assert.deepEqual(
      keptWebhooks.map((kept) => kept.keptMs),
      [attemptsKeptMs, keptMs],
    );
  });
});
