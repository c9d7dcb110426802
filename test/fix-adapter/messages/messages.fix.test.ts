import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { createConnection } from 'mysql2/promise';
import { findMessages, type MessageFilter } from '../../../src/fix-adapter/messages/find.ts';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { connect } from '../../../src/gateway/store/data-source.ts';
import { Database } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { CancelOutcome } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { eventually } from '../../support/eventually.ts';
import { createFixDatabase, order, soon, TestAdapter } from '../../support/fix/adapter.ts';
import { Exchange } from '../../support/fix/exchange.ts';

const password = 'correct-HORSE-battery';
const hasCode = (code: status) => (error: { code?: number }) => error.code === code;

describe("the FIX adapter's message log", () => {
  let made: Awaited<ReturnType<typeof createFixDatabase>>;
  let database: Database;
  let exchange: Exchange;
  let fix: TestAdapter;
  const isUp = () => eventually(() => assert.ok(fix.adapter.isUp), 20_000);
  beforeEach(isUp);
  before(async () => {
    made = await createFixDatabase();
    database = new Database(await connect({ url: made.url, poolSize: 2 }), 'live', 2);
    exchange = await Exchange.start();
    fix = await TestAdapter.start({
      MARINA_FIX_DATABASE_URL: made.url,
      MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
      MARINA_FIX_USERNAME: 'marina',
      MARINA_FIX_PASSWORD: password,
      MARINA_FIX_ORDER_FIELDS: '453=1|448=CUSTOMER|447=D|452=3',
    });
    await fix.active();
  });
  after(async () => {
    await fix.stop();
    await exchange.close();
    await database.close();
    await made.drop();
  });

  const find = async (filter: MessageFilter) => {
    const { messages } = await findMessages(database, filter, 1_000);
    return [...messages].reverse();
  };
  /** Waits until the newest messages are as expected: direction, type and outcome. */
  const shows = (filter: MessageFilter, expected: readonly string[]) =>
    eventually(async () => {
      const found = (await find(filter)).map(({ direction, type, outcome }) => `${direction} ${type} ${outcome}`);
      assert.deepEqual(found, expected);
    });
  const newest = async () => (await find({})).at(-1)?.id ?? 0n;

  it('has the messages of an order in both directions, by its id, also those of its cancel', async () => {
    const one = order();
    await fix.orders.submitOrder(one, soon);
    exchange.fill(one.clientOrderId, 40, '250.5');
    await shows({ orderId: one.clientOrderId }, ['out D written', 'in 8 applied', 'in 8 applied']);
    const { outcome } = await fix.orders.cancelOrder({ clientOrderId: one.clientOrderId }, soon);
    assert.equal(outcome, CancelOutcome.CANCELLED);
    const expected = ['out D written', 'in 8 applied', 'in 8 applied', 'out F written', 'in 8 applied'];
    await shows({ orderId: one.clientOrderId }, expected);
    await shows({ clOrdId: `${one.clientOrderId}.c1` }, ['out F written', 'in 8 applied']);
    const [sent] = await find({ orderId: one.clientOrderId });
    const arrived = exchange.book.get(one.clientOrderId)?.order;
    assert.equal(sent?.number, BigInt(arrived?.number ?? 0));
    assert.match(sent?.text ?? '', new RegExp(`\\|11=${one.clientOrderId}\\|.*\\|1=NG-0000001\\|.*\\|44=250\\.50\\|`));
    assert.match(sent?.text ?? '', /\|453=1\|448=\*\*\*\|447=D\|452=3\|/);
  });

  it('has no byte of the password, from the Logon or from what the exchange repeats of it', async () => {
    const before = await newest();
    exchange.send('B', [tags.Text, `${password} was wrong`], [tags.ClOrdID, password]);
    exchange.send('B', [tags.Text, 'x'], [553, 'somebody'], [554, 'other-secret'], [925, 'new-secret']);
    await shows({ afterId: before, direction: 'in' }, ['in B refused', 'in B refused']);
    const rows = await database.read(statement('SELECT * FROM fix_messages'));
    const all = JSON.stringify(rows.map((row) => Object.values(row).map((value) => String(value))));
    for (const word of [password, 'other-secret', 'new-secret', 'CUSTOMER']) assert.ok(!all.includes(word), word);
    assert.match(all, /553=marina\|554=\*\*\*/);
    assert.match(all, /58=\*\*\* was wrong/);
  });

  it('shows what became of messages that were not applied: gap, duplicate, unreadable, refused', async () => {
    const before = await newest();
    const text = (number: number, body: string) => {
      exchange.write(number, 'B', [tags.Text, body]);
    };
    exchange.write(exchange.nextOut - 1, 'B', [tags.PossDupFlag, 'Y'], [tags.Text, 'again']);
    exchange.sendIntoNothing('B', [tags.Text, 'lost']);
    exchange.send('B', [tags.Text, 'behind']);
    await eventually(async () => {
      const found = await find({ afterId: before, type: 'B' });
      assert.deepEqual(
        found.map(({ outcome, text: shown }) => [outcome, /58=(\w+)/.exec(shown)?.[1]]),
        [
          ['duplicate', 'again'],
          ['gap', 'behind'],
          ['refused', 'lost'],
          ['refused', 'behind'],
        ],
      );
    });
    exchange.raw('rubbish');
    await shows({ afterId: before, type: '' }, ['in  unreadable']);
    text(1, 'too low');
    await eventually(async () => {
      const found = await find({ afterId: before, type: 'B' });
      assert.deepEqual([found.at(-1)?.outcome, found.at(-1)?.number], ['refused', 1n]);
    });
  });

  it('has an order that was given a number and not written as not written', async () => {
    const one = order();
    await fix.orders.submitOrder(one, soon);
    await assert.rejects(fix.orders.submitOrder(one, soon), hasCode(status.ALREADY_EXISTS));
    await shows({ orderId: one.clientOrderId }, ['out D written', 'in 8 applied', 'out D not_written']);
    const [, , copy] = await find({ orderId: one.clientOrderId });
    // Its number is passed over at the exchange.
    await shows({ numbers: { from: copy?.number ?? 0n, to: copy?.number ?? 0n }, direction: 'out' }, [
      'out D not_written',
      'out 4 written',
    ]);
  });

  it('never stops orders: they flow while the table of the log is locked, and are in it afterwards', async () => {
    const owner = await createConnection({ uri: made.ownerUrl });
    await owner.query('LOCK TABLES fix_messages WRITE');
    const placed: string[] = [];
    try {
      for (let count = 0; count < 30; count += 1) {
        const one = order();
        placed.push(one.clientOrderId);
        await fix.orders.submitOrder(one, soon);
      }
    } finally {
      await owner.query('UNLOCK TABLES');
      await owner.end();
    }
    await eventually(async () => {
      const found = (await find({ type: 'D' })).map(({ orderId }) => orderId);
      assert.deepEqual(
        found.filter((id) => placed.includes(id)),
        placed,
      );
    }, 30_000);
  });

  it('numbers messages of later processes behind those of earlier ones', async () => {
    const before = await newest();
    await fix.stop();
    await fix.start();
    await fix.active();
    await isUp();
    await fix.orders.submitOrder(order(), soon);
    await eventually(async () => {
      const found = await find({ afterId: before, type: messageTypes.NewOrderSingle });
      assert.equal(found.length, 1);
    });
    const logons = await find({ type: messageTypes.Logon });
    assert.ok(logons.filter(({ direction }) => direction === 'out').length >= 2);
  });
});

describe('the FIX adapter without a message log', () => {
  it('keeps no message', async () => {
    const made = await createFixDatabase();
    const exchange = await Exchange.start();
    const fix = await TestAdapter.start({
      MARINA_FIX_DATABASE_URL: made.url,
      MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
      MARINA_FIX_MESSAGES_DAYS: '0',
    });
    await fix.active();
    await eventually(() => assert.ok(fix.adapter.isUp), 20_000);
    await fix.orders.submitOrder(order(), soon);
    await fix.stop();
    const owner = await createConnection({ uri: made.ownerUrl });
    const [rows] = await owner.query('SELECT COUNT(*) AS messages FROM fix_messages');
    assert.deepEqual(rows, [{ messages: 0 }]);
    await owner.end();
    await exchange.close();
    await made.drop();
  });
});
