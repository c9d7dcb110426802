/** Orders whose day is over, and whose end the exchange has not reported. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { connect } from '../../../src/gateway/store/data-source.ts';
import { Database } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { ReportKind, TimeInForce } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { eventually } from '../../support/eventually.ts';
import { createFixDatabase, order, soon, TestAdapter } from '../../support/fix/adapter.ts';
import { Exchange } from '../../support/fix/exchange.ts';
import { type Acceptor, field, startAcceptor, whyNoAcceptor } from '../../support/quickfix.ts';

const skip = (await whyNoAcceptor()) ?? false;
const dayMs = 86_400_000;
const long = 25_000;

describe('an order whose day is over', { skip, concurrency: 4 }, () => {
  it('is reported as expired if the exchange reported nothing at its end, and a GTC order is asked about', async (t) => {
    const { acceptor, days } = await begin(t);
    const [untouched, traded] = [await days.place(), await days.place()];
    const lasting = await days.place({ timeInForce: TimeInForce.GTC });
    await acceptor.fill(traded, { quantity: 40, price: '250.50' });
    await eventually(async () => assert.equal(await days.reports(traded), 'accepted trade'));
    await days.end();
    await acceptor.endDaySilently();
    const fix = await days.begin();
    await eventually(async () => {
      assert.equal(await days.reports(untouched), 'accepted expired');
      assert.equal(await days.reports(traded), 'accepted trade expired');
    }, long);
    const numbers: bigint[] = [];
    for await (const { reports, lastNumber } of fix.orders.streamReports({ afterNumber: 0n }, soon)) {
      numbers.push(...reports.map(({ number }) => number));
      if (BigInt(numbers.length) >= lastNumber) break;
    }
    assert.deepEqual(numbers, [1n, 2n, 3n, 4n, 5n, 6n]);
    // A report about it may have been lost with the numbering before.
    await eventually(() => assert.equal(days.questions(lasting), 1), long);
    assert.equal(await days.reports(lasting), 'accepted');
    for (const id of [untouched, traded, lasting]) assert.deepEqual(await days.findings(id), []);
  });

  it('is shown to an operator once a day if the exchange does not know it, and gets no report until it does', async (t) => {
    const { acceptor, days } = await begin(t);
    const id = await days.place();
    await days.end();
    await acceptor.onStatusRequest({ as: 'unknown' });
    const fix = await days.begin();
    await eventually(async () => assert.deepEqual(await days.findings(id), ['not_ended']), long);
    const shown = await eventually(() => {
      const lines = fix.logged.filter((line) => line.includes('the exchange says what needs a person'));
      assert.equal(lines.length, 1);
      return lines[0] ?? '';
    });
    assert.match(shown, /the exchange does not know it; OrderID=O\S+ session=\S+ filled=0\/100/);
    assert.match(await metricsOf(fix), /marina_fix_findings_total\{what="not_ended"\} 1/);
    const newer = await days.place();

    // The next process asks about what was not asked about today, and about nothing else.
    await days.stop();
    await days.age(newer);
    await days.begin();
    await eventually(async () => assert.deepEqual(await days.findings(newer), ['not_ended']), long);
    assert.equal(days.questions(id), 1);
    assert.deepEqual(await days.findings(id), ['not_ended']);
    assert.equal(await days.reports(id), 'accepted');

    await days.end();
    await acceptor.onStatusRequest({ as: 'answer' });
    await acceptor.endDaySilently();
    await days.begin();
    await eventually(async () => assert.equal(await days.reports(id), 'accepted expired'), long);
    assert.deepEqual(await days.findings(id), ['not_ended']);
  });

  it('is shown to an operator if the exchange still has it, and not again by a standby that takes over', async (t) => {
    const { days } = await begin(t);
    const id = await days.place();
    await days.end();
    const first = await days.begin();
    await eventually(async () => assert.deepEqual(await days.findings(id), ['not_ended']), long);
    const newer = await days.place();
    const second = await days.startAdapter();
    await days.stop(first);
    await days.ready(second);
    await days.age(newer);
    await eventually(async () => assert.deepEqual(await days.findings(newer), ['not_ended']), long);
    assert.equal(days.questions(id), 1);
    assert.equal(await days.reports(id), 'accepted');
    assert.ok(first.logged.some((line) => line.includes('the exchange says that it is not over')));
  });

  it('is not reported as expired while a trade of it is missing', async (t) => {
    const { acceptor, days } = await begin(t);
    const id = await days.place();
    await days.end();
    // The numbers begin at 1 again, so this report is lost for good.
    await acceptor.fill(id, { quantity: 40, price: '250.50' });
    await acceptor.endDaySilently();
    await days.begin();
    await eventually(async () => assert.deepEqual(await days.findings(id), ['trades_missing', 'not_ended']), long);
    assert.equal(await days.reports(id), 'accepted');
  });
});

describe('an adapter that runs when the next session day begins', () => {
  it('asks about orders of the day before, and not about those of its own', async (t) => {
    const made = await createFixDatabase();
    const exchange = await Exchange.start();
    let now = Date.now();
    const clock = () => now;
    exchange.now = clock;
    const fix = await TestAdapter.start(
      {
        MARINA_FIX_DATABASE_URL: made.url,
        MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
        MARINA_FIX_RESETS_BY_LOGON: 'true',
      },
      clock,
    );
    t.after(async () => {
      await fix.stop();
      await exchange.close();
      await made.drop();
    });
    await fix.active();
    await eventually(() => assert.ok(fix.adapter.isUp), 20_000);
    const one = order();
    await fix.orders.submitOrder(one, soon);
    const book = exchange.book.get(one.clientOrderId);
    assert.ok(book);
    book.status = 'C';
    now += dayMs;
    const notAfter = { seconds: BigInt(Math.floor(now / 1_000) + 30), nanos: 0 };
    // The day's first connection: what is sent over the one before is of a numbering that ends with it.
    const { connections } = exchange;
    await eventually(() => assert.ok(exchange.connections > connections && fix.adapter.isUp), long);
    await eventually(() => fix.orders.submitOrder(order({ notAfter }), { timeoutMs: dayMs + 10_000 }), long);
    await eventually(async () => {
      const [last] = await reportsOf(fix);
      assert.deepEqual([last?.clientOrderId, last?.kind], [one.clientOrderId, ReportKind.EXPIRED]);
    }, long);
    const asked = exchange.received.filter(({ type }) => type === messageTypes.OrderStatusRequest);
    assert.deepEqual(
      asked.map((question) => question.get(tags.ClOrdID)),
      [one.clientOrderId],
    );
  });
});

/** All reports, newest first. */
async function reportsOf(fix: TestAdapter) {
  const found = [];
  for await (const { reports, lastNumber } of fix.orders.streamReports({ afterNumber: 0n }, { timeoutMs: dayMs * 2 })) {
    found.unshift(...reports.toReversed());
    if (BigInt(found.length) >= lastNumber) break;
  }
  return found;
}

async function metricsOf(fix: TestAdapter): Promise<string> {
  return (await fetch(`http://127.0.0.1:${fix.adapter.opsPort}/metrics`)).text();
}

async function begin(context: TestContext): Promise<{ acceptor: Acceptor; days: Days }> {
  const made = await createFixDatabase();
  const acceptor = await startAcceptor({ sender: 'EXCHANGE', target: 'MARINA' });
  const database = new Database(await connect({ url: made.ownerUrl, poolSize: 2 }), 'live', 2);
  const days = new Days(database, made.url, acceptor);
  context.after(async () => {
    await days.stop();
    await acceptor.kill();
    await database.close();
    await made.drop();
  });
  await acceptor.onOrder({ as: 'rest' });
  await days.begin();
  return { acceptor, days };
}

/** An exchange and adapters, over days. */
class Days {
  #adapters: TestAdapter[] = [];

  constructor(
    private readonly database: Database,
    private readonly databaseUrl: string,
    private readonly acceptor: Acceptor,
  ) {}

  /** Starts an adapter that has the session. */
  async begin(): Promise<TestAdapter> {
    const fix = await this.startAdapter();
    await this.ready(fix);
    return fix;
  }

  async startAdapter(): Promise<TestAdapter> {
    const fix = await TestAdapter.start({
      MARINA_FIX_DATABASE_URL: this.databaseUrl,
      MARINA_FIX_ADDRESS: `127.0.0.1:${this.acceptor.port}`,
      MARINA_FIX_RESETS_BY_LOGON: 'true',
    });
    this.#adapters.push(fix);
    return fix;
  }

  async ready(fix: TestAdapter): Promise<void> {
    await fix.active();
    await eventually(() => assert.ok(fix.adapter.isUp), 30_000);
  }

  async place(more: object = {}): Promise<string> {
    const [fix] = this.#adapters;
    const one = order(more);
    await fix?.orders.submitOrder(one, soon);
    return one.clientOrderId;
  }

  async stop(...some: TestAdapter[]): Promise<void> {
    const stopped = some.length > 0 ? some : this.#adapters;
    this.#adapters = this.#adapters.filter((fix) => !stopped.includes(fix));
    for (const fix of stopped) await fix.stop();
  }

  /** Stops the adapters, and makes all that has happened a day older. */
  async end(): Promise<void> {
    await this.stop();
    await this.#write('UPDATE fix_numbers SET started_at = started_at - INTERVAL 1 DAY');
    await this.#write('UPDATE fix_findings SET at = at - INTERVAL 1 DAY');
    for (const { id } of await this.#read('SELECT id FROM fix_orders')) await this.age(String(id));
  }

  /** Makes an order a day older. */
  async age(id: string): Promise<void> {
    const earlier = 'started_at = started_at - INTERVAL 1 DAY, received_at = received_at - INTERVAL 1 DAY';
    await this.#write(`UPDATE fix_orders SET ${earlier} WHERE id = '${id}'`);
  }

  /** The kinds of an order's reports, as they are stored: nobody is asked. */
  async reports(id: string): Promise<string> {
    const rows = await this.#read(`SELECT kind FROM fix_reports WHERE order_id = '${id}' ORDER BY number`);
    return rows.map(({ kind }) => String(kind)).join(' ');
  }

  async findings(id: string): Promise<string[]> {
    const rows = await this.#read(`SELECT what FROM fix_findings WHERE order_id = '${id}' ORDER BY id`);
    return rows.map(({ what }) => String(what));
  }

  /** How often the exchange was asked about an order by name. */
  questions(id: string): number {
    return this.acceptor.messages().filter(({ direction, message }) => {
      const isQuestion = field(message, tags.MsgType) === messageTypes.OrderStatusRequest;
      return direction === 'in' && isQuestion && field(message, tags.ClOrdID) === id;
    }).length;
  }

  #read(text: string) {
    return this.database.read(statement(text));
  }

  #write(text: string) {
    return this.database.write(statement(text));
  }
}
