import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { findMessages } from '../../../src/fix-adapter/messages/find.ts';
import { printedMessages } from '../../../src/fix-adapter/operations/printed.ts';
import type { Field } from '../../../src/fix-adapter/wire/message.ts';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { utcTimestamp } from '../../../src/fix-adapter/wire/times.ts';
import { connect } from '../../../src/gateway/store/data-source.ts';
import { Database } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { TimeInForce } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { eventually } from '../../support/eventually.ts';
import { createFixDatabase, order, soon, TestAdapter } from '../../support/fix/adapter.ts';
import { Exchange } from '../../support/fix/exchange.ts';
import { ofType } from '../../support/fix/session.ts';

describe('a drop copy', () => {
  let made: Awaited<ReturnType<typeof createFixDatabase>>;
  let database: Database;
  let exchange: Exchange;
  let copy: Exchange;
  let fix: TestAdapter;
  before(async () => {
    made = await createFixDatabase();
    database = new Database(await connect({ url: made.ownerUrl, poolSize: 2 }), 'live', 2);
    exchange = await Exchange.start();
    copy = await Exchange.start();
    fix = await TestAdapter.start({
      MARINA_FIX_DATABASE_URL: made.url,
      MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
      MARINA_FIX_DROP_COPY_ADDRESS: `127.0.0.1:${copy.port}`,
      MARINA_FIX_DROP_COPY_SENDER_COMP_ID: 'MARINA',
      MARINA_FIX_DROP_COPY_TARGET_COMP_ID: 'EXCHANGE',
      MARINA_FIX_DROP_COPY_USERNAME: 'control',
      MARINA_FIX_DROP_COPY_PASSWORD: 'copied',
      MARINA_FIX_DROP_COPY_GRACE_SECONDS: '4',
    });
    await fix.active();
  });
  after(async () => {
    await fix.stop();
    await exchange.close();
    await copy.close();
    await database.close();
    await made.drop();
  });

  const ops = async (path: string) => (await fetch(`http://127.0.0.1:${fix.adapter.opsPort}${path}`)).text();
  const metric = async (name: string) => new RegExp(`^${name} (\\d+)$`, 'm').exec(await ops('/metrics'))?.[1];
  const isUp = () =>
    eventually(async () => {
      assert.ok(fix.adapter.isUp);
      assert.equal(await metric('marina_fix_drop_copy_up'), '1');
    }, 20_000);
  const placed = async (more: object = {}) => {
    const made = order(more);
    await fix.orders.submitOrder(made, soon);
    return made.clientOrderId;
  };
  const rows = (sql: string) => database.read(statement(sql));
  const findings = async () =>
    (await rows('SELECT what, order_id, exec_id, detail FROM fix_findings ORDER BY id')).map(
      ({ what, order_id, exec_id, detail }) => [String(what), String(order_id), String(exec_id), String(detail)],
    );
  const execIdOf = (fields: readonly Field[]) => fields.find(([tag]) => tag === tags.ExecID)?.[1] ?? '';
  const changed = (fields: readonly Field[], tag: number, value: string) =>
    fields.map((field): Field => (field[0] === tag ? [tag, value] : field));
  const copied = (fields: readonly Field[]) => copy.send(messageTypes.ExecutionReport, ...fields);
  /** Waits until everything that came on either session was compared. */
  const compared = () =>
    eventually(async () => {
      const [left] = await rows(
        `SELECT (SELECT COUNT(*) FROM fix_drop_copy WHERE compared = 0) AS waiting,
          (SELECT last_report FROM fix_numbers) - (SELECT booked_to FROM fix_drop_copy_numbers) AS behind`,
      );
      assert.deepEqual([Number(left?.waiting), Number(left?.behind)], [0, 0]);
    }, 30_000);

  it('logs on with names of its own, and trades that both sessions bring are no findings', async () => {
    await isUp();
    const [logon] = ofType(copy, messageTypes.Logon);
    assert.deepEqual([logon?.get(tags.Username), logon?.get(tags.Password)], ['control', 'copied']);
    const id = await placed();
    copied(exchange.fill(id, 40, '250.50'));
    const second = exchange.fill(id, 60, '250.00');
    copy.send(
      messageTypes.TradeCaptureReport,
      [tags.TradeReportID, 't1'],
      [tags.ExecID, execIdOf(second)],
      [tags.Symbol, 'MTNN'],
      [tags.LastQty, '60'],
      [tags.LastPx, '250.00'],
      [tags.NoSides, '1'],
      [tags.Side, '1'],
      [tags.OrderID, second.find(([tag]) => tag === tags.OrderID)?.[1] ?? ''],
    );
    await eventually(async () => assert.equal((await rows('SELECT id FROM fix_drop_copy')).length, 2), 10_000);
    await compared();
    assert.deepEqual(await findings(), []);
    assert.deepEqual(ofType(copy, messageTypes.BusinessMessageReject), []);
  });

  it('finds each trade that one of them lacks or has differently once, and changes nothing else', async () => {
    await isUp();
    const [missing, unbooked, priced] = [await placed(), await placed(), await placed()];
    const notCopied = exchange.fill(missing, 100, '250.50');
    const notBooked = exchange.fill(unbooked, 100, '250.50', false);
    copied(notBooked);
    // Sent twice, it is one trade.
    copied(notBooked);
    const otherPrice = exchange.fill(priced, 100, '250.50');
    copied(changed(otherPrice, tags.LastPx, '250.40'));
    copied([...changed(changed(otherPrice, tags.ClOrdID, 'of-another-firm'), tags.OrderID, 'Z9')]);
    await eventually(async () => {
      const booked = await rows("SELECT number FROM fix_reports WHERE kind = 'trade'");
      assert.equal(booked.length, 4);
      assert.equal((await findings()).length, 3);
    }, 30_000);
    await compared();
    const expected = [
      [
        'drop_copy_differs',
        missing,
        execIdOf(notCopied),
        'the drop copy lacks a trade that was booked: 100 at 25050 kobo',
      ],
      [
        'drop_copy_differs',
        unbooked,
        execIdOf(notBooked),
        'the drop copy has a trade that was not booked: 100 at 25050 kobo',
      ],
      [
        ...['drop_copy_differs', priced, execIdOf(otherPrice)],
        'the drop copy has 100 at 25040 kobo, and what was booked is 100 at 25050 kobo',
      ],
    ];
    const byOrder = (one: readonly string[], other: readonly string[]) =>
      String(one[1]).localeCompare(String(other[1]));
    assert.deepEqual((await findings()).sort(byOrder), expected.sort(byOrder));
    assert.equal(await metric('marina_fix_drop_copy_others_total'), '1');
    const [order] = await rows(`SELECT state, filled FROM fix_orders WHERE id = '${unbooked}'`);
    assert.deepEqual([order?.state, Number(order?.filled)], ['open', 0]);
    const [{ price_kobo: price } = {}] = await rows(
      `SELECT price_kobo FROM fix_reports WHERE kind = 'trade' AND order_id = '${priced}'`,
    );
    assert.equal(Number(price), 25_050);
  });

  it('confirms no trade by one with the OrderID of another day, or of another symbol or side', async () => {
    await isUp();
    const othersBefore = Number(await metric('marina_fix_drop_copy_others_total'));
    const [id, confirmed, ended] = [await placed(), await placed(), await placed({ timeInForce: TimeInForce.GTC })];
    const [trade, second] = [exchange.fill(id, 100, '250.50'), exchange.fill(confirmed, 100, '250.50')];
    const last = exchange.fill(ended, 100, '250.50');
    const [yesterday, tomorrow] = [-1, 1].map((days) => utcTimestamp(Date.now() + days * 86_400_000));
    const capture = (
      fields: readonly Field[],
      more: { symbol?: string; side?: string; at?: string | undefined } = {},
    ) =>
      copy.send(
        messageTypes.TradeCaptureReport,
        [tags.ExecID, execIdOf(fields)],
        [tags.Symbol, more.symbol ?? 'MTNN'],
        [tags.LastQty, '100'],
        [tags.LastPx, '250.50'],
        [tags.TransactTime, more.at ?? utcTimestamp(Date.now())],
        [tags.NoSides, '1'],
        [tags.Side, more.side ?? '1'],
        [tags.OrderID, fields.find(([tag]) => tag === tags.OrderID)?.[1] ?? ''],
      );
    for (const other of [{ at: yesterday }, { symbol: 'DANGCEM', at: yesterday }, { side: '2', at: yesterday }]) {
      capture(trade, other);
    }
    for (const other of [{ symbol: 'DANGCEM' }, { side: '2' }]) capture(trade, other);
    capture(last, { at: tomorrow });
    capture(second);
    const lacking = 'the drop copy lacks a trade that was booked: 100 at 25050 kobo';
    await eventually(async () => {
      const own = (await findings()).filter(([, of = '']) => [id, confirmed, ended].includes(of));
      assert.deepEqual(own, [
        ['drop_copy_differs', id, execIdOf(trade), lacking],
        ['drop_copy_differs', ended, execIdOf(last), lacking],
      ]);
      assert.equal(Number(await metric('marina_fix_drop_copy_others_total')) - othersBefore, 6);
    }, 30_000);
    await compared();
  });

  it('has its messages in the message log, which names its session and masks its password', async () => {
    const own = await eventually(async () => {
      const { messages } = await findMessages(database, { session: 'drop_copy' }, 100);
      assert.ok(messages.some(({ type }) => type === messageTypes.TradeCaptureReport));
      return messages;
    }, 20_000);
    const logon = own.find(({ type, direction }) => type === messageTypes.Logon && direction === 'out');
    assert.match(logon?.text ?? '', /\|554=\*\*\*/);
    assert.ok(own.every(({ text }) => !text.includes('copied')));
    const [report] = own.filter(({ type, orderId }) => type === messageTypes.ExecutionReport && /^ord_/.test(orderId));
    const both = (await findMessages(database, { orderId: report?.orderId }, 100)).messages;
    assert.deepEqual([...new Set(both.map(({ session }) => session))].sort(), ['drop_copy', 'order']);
    const [titles = '', ...lines] = printedMessages(both).split('\n');
    assert.match(titles, /^Lagos +UTC +session +number +message +outcome +fields$/);
    assert.ok(lines.some((line) => /Z {2}drop-copy {2}← {2}\d+ +ExecutionReport +applied /.test(line)));
    assert.ok(lines.some((line) => /Z {2}order {6}→ {2}\d+ +NewOrderSingle +written /.test(line)));
    const [orders] = (await findMessages(database, { session: 'order', numbers: { from: 1n, to: 1n } }, 100)).messages;
    assert.equal(orders?.session, 'order');
  });

  it('does not hold orders up, or make the adapter unready, while it is down', async () => {
    await isUp();
    await copy.close();
    await eventually(async () => assert.equal(await metric('marina_fix_drop_copy_up'), '0'), 20_000);
    assert.equal(await metric('marina_fix_drop_copy_expected'), '1');
    const { status } = await fetch(`http://127.0.0.1:${fix.adapter.opsPort}/readyz`);
    assert.equal(status, 200);
    const before = await findings();
    const id = await placed();
    exchange.fill(id, 100, '250.50');
    await eventually(async () => {
      const booked = await rows(`SELECT number FROM fix_reports WHERE kind = 'trade' AND order_id = '${id}'`);
      assert.equal(booked.length, 1);
    }, 10_000);
    assert.deepEqual(await findings(), before);
  });
});
