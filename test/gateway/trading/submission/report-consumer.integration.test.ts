import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import { orders, type StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import type { ReportConsumerOptions, ReportedKind } from '../../../../src/gateway/trading/submission/report-session.ts';
import { ReportConsumer } from '../../../../src/gateway/trading/submission/reports.ts';
import { noteRestore } from '../../../../src/gateway/trading/submission/restored.ts';
import { StuckPartners } from '../../../../src/gateway/trading/submission/stuck-partners.ts';
import { type Report, ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { pause } from '../../../../src/kit/worker.ts';
import { openTestDatabase, startWorker, whileRunning, withDatabase } from '../../../support/database.ts';
import { eventually } from '../../../support/eventually.ts';
import { lockPartnerRow } from '../../../support/partner-lock.ts';
import { openSettling, type Settling } from '../../../support/settling.ts';

describe("the stream of the broker's reports", () => {
  let database: Database;
  withDatabase(
    (opened) => {
      database = opened;
    },
    { poolSize: 2 },
  );

  let broker: 'breaks' | 'silent' | 'speaks';
  let consumer: ReportConsumer<never, never>;
  beforeEach(() => {
    broker = 'breaks';
    const kind = {
      name: 'order',
      async *streamReports(_after: bigint, signal: AbortSignal) {
        for (; !signal.aborted; await delay(50, undefined, { signal })) {
          if (broker === 'breaks') throw new Error('the stream ended');
          if (broker === 'speaks') yield [];
        }
      },
    } as Partial<ReportedKind<never, never>> as ReportedKind<never, never>;
    const log = createLogger({ name: 'test', level: 'silent' });
    const options = { broker: firstBroker, kind, database, log, holder: 'a' };
    consumer = new ReportConsumer(
      options as Partial<ReportConsumerOptions<never, never>> as ReportConsumerOptions<never, never>,
    );
  });

  it('is broken for as long as the broker takes the call and says nothing, and whole when it speaks', async () => {
    await whileRunning(consumer.worker, async () => {
      await eventually(() => assert.ok(consumer.problem !== undefined), 15_000);
      broker = 'silent';
      await eventually(() => assert.ok(consumer.isFollowing), 8_000);
      for (const until = performance.now() + 3_000; performance.now() < until; await delay(50)) {
        assert.ok(consumer.problem !== undefined, 'nobody has heard of it yet');
      }
      broker = 'speaks';
      await eventually(() => assert.ok(consumer.problem === undefined), 8_000);
    });
  });

  it('is followed by no replica that another has taken it over from, also when it learns so from a transaction', async () => {
    broker = 'speaks';
    await whileRunning(consumer.worker, async () => {
      await eventually(() => assert.ok(consumer.isFollowing), 8_000);
      const taken = (fence: number) =>
        database.write(
          statement(
            `UPDATE leases SET holder = 'b', fence = fence + ${fence}, expires_at = NOW(3) + INTERVAL 4 SECOND WHERE name = 'order-reports'`,
          ),
        );
      await taken(1);
      await eventually(async () => {
        await taken(0); // A lease that ends later counts as run out.
        assert.ok(!consumer.isFollowing, 'it says that it follows the stream for ever');
      }, 8_000);
    });
    await database.write(statement("UPDATE leases SET expires_at = NOW(3) WHERE name = 'order-reports'"));
  });

  it('is not broken for a replica that another has taken it over from', async () => {
    await whileRunning(consumer.worker, async () => {
      await eventually(() => assert.ok(consumer.problem !== undefined), 15_000);
      await database.write(
        statement(
          `UPDATE leases SET holder = 'b', fence = fence + 1, expires_at = NOW(3) + INTERVAL 1 HOUR WHERE name = 'order-reports'`,
        ),
      );
      await eventually(() => assert.ok(consumer.problem === undefined), 8_000);
    });
    await database.write(statement("UPDATE leases SET expires_at = NOW(3) WHERE name = 'order-reports'"));
  });
});

describe('reports of the exchange', () => {
  let settling: Settling;
  let partnerId: string;
  /** The streams the exchange gives, one after another; the last lasts. Each is some batches. */
  let streams: (readonly Report[])[][];
  /** After which number each stream was asked for. */
  let asked: bigint[];
  let stop: () => Promise<void> = async () => {};
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());
  beforeEach(async () => {
    partnerId = await settling.newPartner();
    await settling.database.write(statement('DELETE FROM positions'));
    streams = [];
    asked = [];
    settling.broker.streamReports = async function* (after, signal) {
      const batches = streams[asked.length];
      asked.push(after);
      yield* batches ?? [];
      if (asked.length >= streams.length) await pause(600_000, signal);
    };
  });
  afterEach(() => stop());

  function follow(
    options: Partial<ReportConsumerOptions<StoredOrder, Report>> = {},
  ): ReportConsumer<StoredOrder, Report> {
    const { database, recorder, log, clock, order: kind } = settling;
    const findLost = async () => {};
    const stuck = new StuckPartners(log);
    const own = { broker: firstBroker, kind, database, recorder, log, clock, holder: 'test', findLost, stuck };
    const consumer = new ReportConsumer({ ...own, ...options });
    stop = startWorker(consumer.worker);
    return consumer;
  }

  const reached = (consumer: ReportConsumer<StoredOrder, Report>, position: bigint) =>
    eventually(() => assert.equal(consumer.position, position, `reports are applied up to ${consumer.position}`));

  function trade({ id }: Pick<StoredOrder, 'id'>, number: bigint, quantity = 1n): Report {
    return create(ReportSchema, {
      number,
      clientOrderId: id,
      exchangeOrderId: 'X1',
      kind: ReportKind.TRADE,
      at: timestampFromMs(settling.clock.now()),
      quantity,
      priceKobo: 1_000n,
    });
  }

  const storePending = (fields: Partial<StoredOrder> = {}) =>
    settling.storeOrder({ partnerId, state: 'pending', checkAt: null, ...fields });

  async function filledOf(order: StoredOrder): Promise<bigint> {
    return (await settling.readOrder(order)).filledQuantity;
  }

  it('about an order that the database lost are applied too, when others of their batch are about known orders', async () => {
    const known = await storePending();
    const lost = { ...known, id: settling.ids.object('ord') };
    streams = [[[trade(known, 1n), trade(lost, 2n)]]];
    const findLost = () => settling.database.write(orders.insert(lost)).then(() => {});
    await reached(follow({ findLost }), 2n);
    assert.equal(await filledOf(known), 1n);
    const rows = await settling.database.read(statement('SELECT id FROM orders WHERE id = ?', lost.id));
    assert.equal(rows.length, 1, 'nobody looked for the lost order, and its report was passed over');
    assert.equal(await filledOf(lost), 1n, 'the report of the lost order was passed over');
  });

  it('about an order that is not stored wait while lost ones cannot be looked for, and all others are applied', async () => {
    const known = await storePending();
    const lost = { ...known, id: settling.ids.object('ord') };
    streams = [
      [
        [trade(lost, 1n), trade(known, 2n)],
        [trade(lost, 3n), trade(known, 4n)],
      ],
    ];
    let isListed = false;
    const findLost = async () => {
      if (!isListed) throw new Error('the broker does not list what it was given');
      await settling.database.write(orders.insert(lost));
    };
    const consumer = follow({ findLost });
    await eventually(async () =>
      assert.equal(await filledOf(known), 2n, 'fills wait for a list that they do not need'),
    );
    await eventually(() => assert.equal(consumer.problem, 'unfound'));
    assert.equal(consumer.position, 0n);
    isListed = true;
    await reached(consumer, 4n);
    assert.deepEqual([await filledOf(lost), await filledOf(known), consumer.problem], [2n, 2n, undefined]);
    assert.deepEqual(asked, [0n], 'the stream goes on');
  });

  it('behind a gap are fetched again from the gap, and each is applied once', async () => {
    const order = await storePending();
    const [one, two, three, four] = [1n, 2n, 3n, 4n].map((number) => trade(order, number)) as [
      Report,
      Report,
      Report,
      Report,
    ];
    streams = [
      [[one, three]],
      [
        [one, two, two, three],
        [three, four],
      ],
    ];
    await reached(follow(), 4n);
    assert.deepEqual(asked, [0n, 1n], 'the second stream begins after the last report before the gap');
    assert.equal(await filledOf(order), 4n);
  });

  it('go on after the last one applied when another process takes them over', async () => {
    const order = await storePending();
    streams = [[[trade(order, 1n)], [trade(order, 2n), trade(order, 3n)]]];
    await reached(follow(), 3n);
    await stop();
    streams.push([[trade(order, 4n)]]);
    await reached(follow(), 4n);
    assert.deepEqual(asked, [0n, 3n]);
    assert.equal(await filledOf(order), 4n);
  });

  it('are applied when the answer to the send brought the first of them already', async () => {
    const order = await storePending({ lastReport: 1n });
    streams = [[[trade(order, 1n), trade(order, 2n), trade(order, 3n)]]];
    await reached(follow(), 3n);
    assert.equal(await filledOf(order), 2n);
  });

  it('reports of more partners than are worked on at once are all applied', async () => {
    const orders: StoredOrder[] = [];
    for (let count = 0; count < 9; count += 1) {
      orders.push(await storePending({ partnerId: await settling.newPartner() }));
    }
    // A stream that begins again, as it does when a busy machine renews the lease too late, has the reports again.
    const send = openStream();
    send(...orders.map((order, at) => trade(order, BigInt(at + 1))));
    await reached(follow(), 9n);
    for (const order of orders) assert.equal(await filledOf(order), 1n, `the report of ${order.id} was passed over`);
  });

  /** A stream that stays open and gives each batch when the test sends it. */
  function openStream() {
    const batches: (readonly Report[])[] = [];
    let wake = () => {};
    settling.broker.streamReports = async function* (after, signal) {
      asked.push(after);
      for (let at = 0; !signal.aborted; ) {
        const batch = batches[at];
        if (batch === undefined) {
          yield []; // It lives.
          await Promise.race([pause(100, signal), new Promise<void>((resolve) => (wake = resolve))]);
          continue;
        }
        at += 1;
        const fresh = batch.filter(({ number }) => number > after);
        if (fresh.length > 0) yield fresh;
      }
    };
    return (...reports: readonly Report[]) => {
      batches.push(reports);
      wake();
    };
  }

  const storedPosition = async () => {
    const rows = await settling.database.read(statement("SELECT position FROM positions WHERE name = 'order-reports'"));
    return BigInt(String(rows[0]?.position ?? 0));
  };
  const stored = (position: bigint) => eventually(async () => assert.equal(await storedPosition(), position));

  /** Sets an order and the position back, as a failover does that loses commits. */
  async function loseCommits({ id }: StoredOrder, filled: bigint, position: bigint): Promise<void> {
    await settling.database.writeAll([
      statement(
        "UPDATE orders SET state = 'pending', filled_quantity = ?, filled_value_kobo = ?, last_report = ? WHERE id = ?",
        ...[filled, filled * 1_000n, position, id],
      ),
      statement("UPDATE positions SET position = ? WHERE name = 'order-reports'", String(position)),
    ]);
  }

  it('are read again from the position that the database has, after it lost the last of them', async () => {
    const order = await storePending();
    const send = openStream();
    const went: string[] = [];
    const consumer = follow({ onWentBack: (kind) => went.push(kind) });
    send(trade(order, 1n), trade(order, 2n));
    await stored(2n);
    await loseCommits(order, 0n, 0n);
    send(trade(order, 3n));
    await reached(consumer, 3n);
    await stored(3n);
    assert.equal(await filledOf(order), 3n, 'the trades that the database lost are applied again');
    assert.deepEqual(asked, [0n, 0n]);
    assert.deepEqual(went, ['order'], 'operators hear of it');
  });

  it('are read again within seconds after the database lost the last of them, though no further report comes', async () => {
    const order = await storePending();
    const send = openStream();
    follow();
    send(trade(order, 1n), trade(order, 2n));
    await stored(2n);
    await loseCommits(order, 1n, 1n);
    await eventually(async () => assert.equal(await filledOf(order), 2n), 5_000);
    assert.deepEqual(asked, [0n, 1n]);
  });

  it('are read again when the database lost their effect and the position was not stored since', async () => {
    const order = await storePending();
    const send = openStream();
    const went: string[] = [];
    let isLost = false;
    const { recorder } = settling;
    const losing: typeof recorder = Object.create(recorder, {
      changeMany: {
        value: async (...work: Parameters<typeof recorder.changeMany>) => {
          const rows = await recorder.changeMany(...work);
          if (isLost) return rows;
          isLost = true;
          await loseCommits(order, 0n, 0n);
          return rows;
        },
      },
    });
    await settling.database.write(statement("INSERT INTO positions (name, position) VALUES ('order-reports', '0')"));
    const consumer = follow({ recorder: losing, onWentBack: (kind) => went.push(kind) });
    send(trade(order, 1n), trade(order, 2n));
    await stored(2n);
    await reached(consumer, 2n);
    assert.equal(await filledOf(order), 2n, 'the position moved past reports that the database does not have');
    assert.deepEqual(asked, [0n, 0n]);
    assert.deepEqual(went, ['order']);
  });

  it('go on from the position that an operator stores while a gateway runs', async () => {
    const order = await storePending();
    const send = openStream();
    const went: string[] = [];
    const consumer = follow({ onWentBack: (kind) => went.push(kind) });
    send(trade(order, 1n));
    await stored(1n);
    await settling.database.write(statement("UPDATE positions SET position = '5' WHERE name = 'order-reports'"));
    await reached(consumer, 5n);
    send(trade(order, 6n));
    await stored(6n);
    assert.equal(await filledOf(order), 2n);
    assert.deepEqual(went, [], 'nothing was lost');
  });

  it('about an order that the replica for reads does not have yet are applied', async () => {
    const order = await storePending();
    const lagging = await openTestDatabase();
    try {
      const { database } = settling;
      // A proxy that sends reads to a replica which lags, and transactions to the writer.
      const split = new Proxy(database, {
        get(_, name) {
          const there = name === 'read' || name === 'readAll' ? lagging.database : database;
          const member: unknown = Reflect.get(there, name, there);
          return typeof member === 'function' ? member.bind(there) : member;
        },
      });
      const unclaimed: string[] = [];
      streams = [[[trade(order, 1n), trade(order, 2n)]]];
      await reached(follow({ database: split, onUnclaimed: (kind) => unclaimed.push(kind) }), 2n);
      assert.equal(await filledOf(order), 2n, 'one look at the replica decided that the order is not stored');
      assert.deepEqual(unclaimed, []);
      await stored(2n);
    } finally {
      await stop();
      await lagging.close();
    }
  });

  it('about an object that is nowhere are kept for operators with all that they say, once each', async () => {
    const known = await storePending();
    const foreign = { id: settling.ids.object('ord') };
    const unclaimed: string[] = [];
    const onUnclaimed = (kind: string) => unclaimed.push(kind);
    streams = [[[trade(known, 1n), trade(foreign, 2n, 70n), trade(foreign, 3n, 30n)]]];
    await reached(follow({ onUnclaimed }), 3n);
    await stored(3n);
    assert.deepEqual(unclaimed, ['order']);
    await stop();
    // A restore reads them again.
    await settling.database.write(statement("UPDATE positions SET position = '0' WHERE name = 'order-reports'"));
    streams.push([[trade(known, 1n), trade(foreign, 2n, 70n), trade(foreign, 3n, 30n)]]);
    await reached(follow({ onUnclaimed }), 3n);
    await stored(3n);
    const rows = await settling.database.read(
      statement('SELECT * FROM unclaimed_reports WHERE object_id = ? ORDER BY number', foreign.id),
    );
    assert.deepEqual(
      rows.map(({ kind, number, reference, report, quantity, price_kobo: price }) => [
        ...[kind, Number(number), reference, report, Number(quantity), Number(price)],
      ]),
      [
        ['order', 2, 'X1', 'trade', 70, 1_000],
        ['order', 3, 'X1', 'trade', 30, 1_000],
      ],
    );
    assert.equal(await filledOf(known), 1n);
  });

  /** Makes statements fail that change an order, as damage of its rows does; `when` is a condition on its old and new row. */
  async function damage({ id }: StoredOrder, when: string): Promise<() => Promise<unknown>> {
    const name = `damage_${id}`;
    const refusal = "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'damaged'";
    await settling.database.write(
      statement(
        `CREATE TRIGGER ${name} BEFORE UPDATE ON orders FOR EACH ROW IF NEW.id = '${id}' AND ${when} THEN ${refusal}; END IF`,
      ),
    );
    return () => settling.database.write(statement(`DROP TRIGGER ${name}`));
  }

  it('are all applied but for the one that cannot be, whose order is looked up instead', async () => {
    const orders: StoredOrder[] = [];
    for (let count = 0; count < 21; count += 1) orders.push(await storePending());
    const poisoned = orders[13] as StoredOrder;
    const repair = await damage(poisoned, 'NEW.last_report > OLD.last_report');
    try {
      streams = [[orders.map((order, at) => trade(order, BigInt(at + 1)))]];
      await reached(follow(), 21n);
      for (const order of orders.filter((one) => one !== poisoned)) assert.equal(await filledOf(order), 1n);
      const { filledQuantity, missedReport, checkAt } = await settling.readOrder(poisoned);
      assert.deepEqual([filledQuantity, missedReport, checkAt], [0n, 14n, settling.clock.realNow()]);
    } finally {
      await repair();
    }
  });

  it('reports of one order are applied up to the one that cannot be, and none after it', async () => {
    const order = await storePending();
    const repair = await damage(order, 'NEW.last_report >= 4');
    try {
      const reports = Array.from({ length: 7 }, (_, at) => trade(order, BigInt(at + 1)));
      streams = [[reports]];
      await reached(follow(), 7n);
      const { filledQuantity, lastReport, missedReport } = await settling.readOrder(order);
      assert.deepEqual([filledQuantity, lastReport, missedReport], [3n, 3n, 7n]);
    } finally {
      await repair();
    }
  });

  it('reports of other orders are applied although one order can be neither changed nor noted as behind', async () => {
    const [poisoned, ...others] = [await storePending(), await storePending(), await storePending()];
    const stranger = await storePending({ partnerId: await settling.newPartner() });
    const repair = await damage(poisoned, 'TRUE');
    const [one, two] = others as [StoredOrder, StoredOrder];
    let consumer: ReturnType<typeof follow>;
    try {
      streams = [[[trade(one, 1n), trade(poisoned, 2n), trade(two, 3n), trade(poisoned, 4n), trade(stranger, 5n)]]];
      consumer = follow();
      await eventually(async () => {
        for (const order of [one, two, stranger]) assert.equal(await filledOf(order), 1n);
      });
      await eventually(() => assert.equal(consumer.problem, 'damaged', 'nobody hears of it'));
      assert.equal(consumer.position, 1n, 'the position stays before the first report that is not applied');
    } finally {
      await repair();
    }
    await reached(consumer, 5n);
    assert.deepEqual([await filledOf(poisoned), consumer.problem !== undefined], [2n, false]);
  });

  it('reports that failed in a replica put it in trouble only while it has the lease', async () => {
    const poisoned = await storePending();
    const repair = await damage(poisoned, 'TRUE');
    const lease = (fence: number, seconds: number) =>
      settling.database.write(
        statement(
          `UPDATE leases SET holder = 'b', fence = fence + ${fence}, expires_at = NOW(3) + INTERVAL ${seconds} SECOND WHERE name = 'order-reports'`,
        ),
      );
    try {
      streams = [[[trade(poisoned, 1n)]]];
      const consumer = follow();
      await eventually(() => assert.ok(consumer.problem !== undefined), 15_000);
      await lease(1, 4);
      await eventually(async () => {
        await lease(0, 4); // A lease that ends later counts as run out.
        assert.ok(consumer.problem === undefined, 'the other replica has the reports that fail');
      }, 8_000);
      await stop();
    } finally {
      await lease(1, 0);
      await repair();
    }
  });

  it('are read again when the database lost what was proven while another partner was locked', async () => {
    const [locked, partner] = [await storePending(), await settling.newPartner()];
    const others: StoredOrder[] = [];
    for (let count = 0; count < 1_000; count += 1)
      others.push({ ...locked, partnerId: partner, id: settling.ids.object('ord') });
    await settling.database.write(orders.insert(...others));
    const send = openStream();
    const went: string[] = [];
    const lock = await lockPartnerRow(settling.url, locked.partnerId);
    const proven = statement("SELECT position FROM positions WHERE name = 'order-reports proven'");
    try {
      follow({ onWentBack: (kind) => went.push(kind) });
      send(trade(locked, 1n), ...others.map((order, at) => trade(order, BigInt(at + 2))));
      await eventually(async () => assert.equal((await settling.database.read(proven)).length, 1, 'nothing is proven'));
      const [lost] = others as [StoredOrder];
      await settling.database.writeAll([
        statement(
          "UPDATE orders SET state = 'pending', filled_quantity = 0, filled_value_kobo = 0, last_report = 0 WHERE id = ?",
          lost.id,
        ),
        statement("DELETE FROM positions WHERE name = 'order-reports proven'"),
      ]);
      send(trade(lost, 1_002n));
      await eventually(async () =>
        assert.equal(await filledOf(lost), 2n, 'a report was taken for proof of a lost one'),
      );
      assert.deepEqual(went, ['order'], 'operators hear of it');
    } finally {
      await lock.release();
    }
    await stored(1_002n);
    assert.equal(await filledOf(locked), 1n);
  });

  it('reports that wait for a locked partner are read again by the process that follows, and applied once', async () => {
    const [locked, free] = [await storePending(), await storePending({ partnerId: await settling.newPartner() })];
    const lock = await lockPartnerRow(settling.url, locked.partnerId);
    try {
      streams = [[[trade(locked, 1n), trade(free, 2n), trade(free, 3n)]]];
      follow();
      await eventually(async () => assert.equal(await filledOf(free), 2n));
      const stopped = stop();
      await lock.release();
      await stopped;
    } finally {
      await lock.release();
    }
    const [row] = await settling.database.read(
      statement("SELECT position FROM positions WHERE name = 'order-reports'"),
    );
    const position = BigInt(String(row?.position ?? 0));
    streams.push([[trade(locked, 1n), trade(free, 2n), trade(free, 3n)].filter(({ number }) => number > position)]);
    await reached(follow(), 3n);
    assert.deepEqual([await filledOf(locked), await filledOf(free)], [1n, 2n]);
  });
});

describe('a database that is declared restored', () => {
  let settling: Settling;
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());

  const save = (name: string, position: string) =>
    settling.database.write(statement('REPLACE INTO positions (name, position) VALUES (?, ?)', name, position));
  const read = async (name: string) =>
    (await settling.database.read(statement('SELECT position FROM positions WHERE name = ?', name)))[0]?.position;

  it('has all reports read again, from their beginning while fewer than eight days are known', async () => {
    await save('order-reports', '5142162');
    await save('order-reports day 3', '5000000 @20779');
    const rewound = await noteRestore(settling.database, firstBroker);
    assert.deepEqual(rewound, [{ name: 'order-reports', from: 5_142_162n, to: 0n }]);
    assert.equal(await read('order-reports'), '0');
    assert.equal(await read('application-reports'), undefined);
  });

  it('has the reports of the last eight days read again, and none of them twice when that is repeated', async () => {
    await save('application-reports', '900');
    for (let day = 0; day < 8; day += 1) await save(`application-reports day ${day}`, `${100 + day} @${20_776 + day}`);
    assert.deepEqual(await noteRestore(settling.database, firstBroker), [
      { name: 'application-reports', from: 900n, to: 100n },
    ]);
    assert.deepEqual(await noteRestore(settling.database, firstBroker), []);
    assert.equal(await read('application-reports'), '100');
  });
});
