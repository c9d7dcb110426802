import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setDropCopyNumbers } from '../../../src/fix-adapter/store/set-numbers.ts';
import type { Field } from '../../../src/fix-adapter/wire/message.ts';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { connect } from '../../../src/gateway/store/data-source.ts';
import { Database } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { eventually } from '../../support/eventually.ts';
import { createFixDatabase, order, soon, TestAdapter } from '../../support/fix/adapter.ts';
import { Exchange } from '../../support/fix/exchange.ts';

const { ExecutionReport, SequenceReset, TradeCaptureReport } = messageTypes;
const unconfirmed =
  'the drop copy lacks a trade that was booked: 100 at 25050 kobo; it passed over messages, so the trade is not confirmed';

describe('a drop copy whose messages are lost, and trades that are changed', () => {
  let made: Awaited<ReturnType<typeof createFixDatabase>>;
  let database: Database;
  let exchange: Exchange;
  let copy: Exchange;
  let fix: TestAdapter;
  let variables: Record<string, string>;
  before(async () => {
    made = await createFixDatabase();
    database = new Database(await connect({ url: made.ownerUrl, poolSize: 2 }), 'live', 2);
    exchange = await Exchange.start();
    copy = await Exchange.start();
    variables = {
      MARINA_FIX_DATABASE_URL: made.url,
      MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
      MARINA_FIX_DROP_COPY_ADDRESS: `127.0.0.1:${copy.port}`,
      MARINA_FIX_DROP_COPY_SENDER_COMP_ID: 'MARINA',
      MARINA_FIX_DROP_COPY_TARGET_COMP_ID: 'EXCHANGE',
      MARINA_FIX_DROP_COPY_GRACE_SECONDS: '4',
    };
    fix = await TestAdapter.start(variables);
    await fix.active();
  });
  after(async () => {
    await fix.stop();
    await exchange.close();
    await copy.close();
    await database.close();
    await made.drop();
  });

  const metric = async (name: string) => {
    const text = await (await fetch(`http://127.0.0.1:${fix.adapter.opsPort}/metrics`)).text();
    return new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1];
  };
  const isUp = () =>
    eventually(async () => {
      assert.ok(fix.adapter.isUp);
      assert.equal(await metric('marina_fix_drop_copy_up'), '1');
    }, 20_000);
  const rows = (sql: string) => database.read(statement(sql));
  /** The findings that the comparison made of an order. */
  const findingsOf = async (id: string) =>
    (
      await rows(`SELECT detail FROM fix_findings WHERE what = 'drop_copy_differs' AND order_id = '${id}' ORDER BY id`)
    ).map(({ detail }) => String(detail));
  const execIdOf = (fields: readonly Field[]) => fields.find(([tag]) => tag === tags.ExecID)?.[1] ?? '';
  const orderIdOf = (fields: readonly Field[]) => fields.find(([tag]) => tag === tags.OrderID)?.[1] ?? '';
  /** Places an order and fills it; the order session books the trade. */
  const traded = async () => {
    const made = order();
    await fix.orders.submitOrder(made, soon);
    const fields = exchange.fill(made.clientOrderId, 100, '250.50');
    await eventually(async () => {
      const sql = `SELECT number FROM fix_reports WHERE kind = 'trade' AND order_id = '${made.clientOrderId}'`;
      assert.equal((await rows(sql)).length, 1);
    }, 20_000);
    return { id: made.clientOrderId, fields };
  };
  /** Waits until everything that came on either session was compared. */
  const compared = () =>
    eventually(async () => {
      const [left] = await rows(
        `SELECT (SELECT COUNT(*) FROM fix_drop_copy WHERE compared = 0) AS waiting,
          (SELECT last_report FROM fix_numbers) - (SELECT booked_to FROM fix_drop_copy_numbers) AS behind,
          (SELECT COALESCE(MAX(id), 0) FROM fix_trade_changes) - (SELECT changed_to FROM fix_drop_copy_numbers) AS unchanged`,
      );
      assert.deepEqual([Number(left?.waiting), Number(left?.behind), Number(left?.unchanged)], [0, 0, 0]);
    }, 40_000);

  it('finds each trade whose copy was passed over, and none whose copy came after a gap that was filled', async () => {
    await isUp();
    const [lost, late] = [await traded(), await traded()];
    // The other side passes over two numbers for good.
    const number = copy.nextOut;
    copy.write(number, SequenceReset, [tags.GapFillFlag, 'Y'], [tags.NewSeqNo, String(number + 2)]);
    copy.nextOut = number + 2;
    copy.sendIntoNothing(ExecutionReport, ...late.fields);
    copy.send(messageTypes.TestRequest, [tags.TestReqID, 'later']);
    await compared();
    assert.deepEqual(await findingsOf(lost.id), [unconfirmed]);
    assert.deepEqual(await findingsOf(late.id), []);
    const copies = await rows(`SELECT id FROM fix_drop_copy WHERE named = '${late.id}'`);
    assert.equal(copies.length, 1);
  });

  it('compares busts and corrections of both sessions, also those of a TradeCaptureReport', async () => {
    await isUp();
    const all = [await traded(), await traded(), await traded(), await traded()];
    const [both, byReport, onlyOrders, onlyCopy] = all as [Traded, Traded, Traded, Traded];
    for (const { fields } of [both, onlyOrders, onlyCopy]) copy.send(ExecutionReport, ...fields);
    const capture = ({ fields }: Traded, more: readonly Field[]) =>
      copy.send(TradeCaptureReport, ...more, [tags.NoSides, '1'], [tags.Side, '1'], [tags.OrderID, orderIdOf(fields)]);
    capture(byReport, [
      ...([[tags.TradeReportID, 't1']] as const),
      ...([[tags.ExecID, execIdOf(byReport.fields)]] as const),
      ...([[tags.LastQty, '100']] as const),
      ...([[tags.LastPx, '250.50']] as const),
    ]);
    const change = ({ id, fields }: Traded, type: 'G' | 'H', more: readonly Field[] = []) =>
      exchange.report(id, type, [[tags.ExecRefID, execIdOf(fields)], ...more]);
    const corrected = change(both, 'G', [
      [tags.LastQty, '40'],
      [tags.LastPx, '250.50'],
    ]);
    exchange.send(ExecutionReport, ...corrected);
    copy.send(ExecutionReport, ...corrected);
    exchange.send(ExecutionReport, ...change(byReport, 'H'));
    capture(byReport, [
      [tags.TradeReportID, 't2'],
      [tags.TradeReportRefID, 't1'],
      [tags.TradeReportTransType, '1'],
    ]);
    exchange.send(ExecutionReport, ...change(onlyOrders, 'H'));
    copy.send(ExecutionReport, ...change(onlyCopy, 'H'));
    await eventually(async () => {
      assert.equal((await rows('SELECT id FROM fix_trade_changes')).length, 3);
      assert.equal((await rows("SELECT id FROM fix_drop_copy WHERE kind <> 'trade'")).length, 3);
    }, 20_000);
    await compared();
    assert.deepEqual(await findingsOf(both.id), []);
    assert.deepEqual(await findingsOf(byReport.id), []);
    assert.deepEqual(await findingsOf(onlyOrders.id), [
      `the drop copy lacks that the order session took trade ${execIdOf(onlyOrders.fields)} back`,
    ]);
    assert.deepEqual(await findingsOf(onlyCopy.id), [
      `the drop copy took trade ${execIdOf(onlyCopy.fields)} back, and the order session did not`,
    ]);
    const [untouched] = await rows(`SELECT filled, adjusted FROM fix_orders WHERE id = '${onlyCopy.id}'`);
    assert.deepEqual([Number(untouched?.filled), Number(untouched?.adjusted)], [100, 0]);
  });

  it('goes on by the adapter that takes over, which compares each trade once', async () => {
    await isUp();
    const [confirmed, missing] = [await traded(), await traded()];
    const second = await TestAdapter.start(variables);
    await fix.stop();
    fix = second;
    await fix.active();
    await isUp();
    copy.send(ExecutionReport, ...confirmed.fields);
    await compared();
    assert.deepEqual(await findingsOf(confirmed.id), []);
    assert.equal((await findingsOf(missing.id)).length, 1);
    const later = await traded();
    copy.send(ExecutionReport, ...later.fields);
    await compared();
    assert.deepEqual([await findingsOf(later.id), (await findingsOf(missing.id)).length], [[], 1]);
  });

  it('finds the trades whose copies were passed over by numbers that an operator set', async () => {
    await isUp();
    const lost = await traded();
    await fix.stop();
    copy.sendIntoNothing(ExecutionReport, ...lost.fields);
    await setDropCopyNumbers(database, { nextOut: copy.nextIn, nextIn: copy.nextOut });
    fix = await TestAdapter.start(variables);
    await fix.active();
    await isUp();
    await compared();
    assert.deepEqual(await findingsOf(lost.id), [unconfirmed]);
  });
});

/** An order with its trade, as the exchange reported it. */
interface Traded {
  readonly id: string;
  readonly fields: readonly Field[];
}
