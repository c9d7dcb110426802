/** Orders with the fields of a broker's template, with short names, and with an exchange's reasons for rejections. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { listRejections } from '../../src/fix-adapter/operations/rejections.ts';
import { messageTypes, tags } from '../../src/fix-adapter/wire/tags.ts';
import { randomBase32 } from '../../src/gateway/edge/ids.ts';
import { connect } from '../../src/gateway/store/data-source.ts';
import { Database } from '../../src/gateway/store/database.ts';
import { statement } from '../../src/gateway/store/statement.ts';
import { CancelOutcome, RejectReason, ReportKind } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { eventually } from '../support/eventually.ts';
import { createFixDatabase, order, soon, TestAdapter } from '../support/fix/adapter.ts';
import { Exchange } from '../support/fix/exchange.ts';
import { temporaryFolder } from '../support/folders.ts';

const hasCode = (code: status) => (error: { code?: number }) => error.code === code;
const cscs = 'C0123456789';
const template = `453=2
448={account.cscs}
447=D
452=24
448=MARINA01
447=D
452=1
5001={account.cscs}
[order]
528={partner.capacity}
581={account.type}
386=1
336=MAIN
`;
const lookups = `account=NG-0000001|cscs=${cscs}|type=1\npartner=par_a|capacity=A\n`;

describe("the FIX adapter with a broker's template and names of 20 characters", () => {
  const folder = temporaryFolder();
  const lookupFile = join(folder, 'lookups');
  let made: Awaited<ReturnType<typeof createFixDatabase>>;
  let database: Database;
  let exchange: Exchange;
  let fix: TestAdapter;
  beforeEach(() => eventually(() => assert.ok(fix.adapter.isUp), 20_000));
  before(async () => {
    made = await createFixDatabase();
    database = new Database(await connect({ url: made.url, poolSize: 2 }), 'live', 2);
    exchange = await Exchange.start();
    writeFileSync(join(folder, 'template'), template);
    writeFileSync(lookupFile, lookups);
    writeFileSync(join(folder, 'reasons'), '103=99|58=*cash*|reason=insufficient_funds\n');
    fix = await TestAdapter.start({
      MARINA_FIX_DATABASE_URL: made.url,
      MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
      MARINA_FIX_ORDER_TEMPLATE_FILE: join(folder, 'template'),
      MARINA_FIX_ORDER_LOOKUP_FILE: lookupFile,
      MARINA_FIX_CL_ORD_ID_LENGTH: '20',
      MARINA_FIX_MESSAGES_PER_SECOND: '5',
      MARINA_FIX_REJECT_REASONS_FILE: join(folder, 'reasons'),
    });
    await fix.active();
  });
  after(async () => {
    await fix.stop();
    await exchange.close();
    await database.close();
    await made.drop();
  });

  const one = (more: object = {}) =>
    order({ clientOrderId: `ord_${randomBase32(20)}`, partner: 'par_a', note: Buffer.from('n'), ...more });
  const sent = (type: string) => exchange.received.filter((message) => message.type === type);
  const texts = (message: { fields: readonly (readonly [number, string])[] } | undefined, some: readonly number[]) =>
    (message?.fields ?? []).filter(([tag]) => some.includes(tag)).map((field) => field.join('='));
  const parties = ['453=2', `448=${cscs}`, '447=D', '452=24', '448=MARINA01', '447=D', '452=1', `5001=${cscs}`];
  const partyTags = [453, 448, 447, 452, 5001];

  it('sends the template’s fields with an order, its cancel and a question about it, all by names of 20 characters', async () => {
    const wanted = one();
    const { clientOrderId } = wanted;
    const { report } = await fix.orders.submitOrder(wanted, soon);
    assert.deepEqual([report?.kind, report?.clientOrderId], [ReportKind.ACCEPTED, clientOrderId]);
    const name = clientOrderId.slice(4);
    const newOrder = sent(messageTypes.NewOrderSingle).at(-1);
    assert.equal(newOrder?.get(tags.ClOrdID), name);
    assert.deepEqual(texts(newOrder, partyTags), parties);
    assert.deepEqual(texts(newOrder, [528, 581, 386, 336]), ['528=A', '581=1', '386=1', '336=MAIN']);
    exchange.fill(name, 40, '250.5');
    const { reports } = await eventually(async () => {
      const found = await fix.orders.lookUpOrder({ clientOrderId }, soon);
      assert.equal(found.reports.length, 2);
      return found;
    });
    assert.ok(reports.every((each) => each.clientOrderId === clientOrderId));
    const asked = sent(messageTypes.OrderStatusRequest).at(-1);
    assert.deepEqual([asked?.get(tags.ClOrdID), ...texts(asked, partyTags)], [name, ...parties]);
    const { outcome } = await fix.orders.cancelOrder({ clientOrderId }, soon);
    assert.equal(outcome, CancelOutcome.CANCELLED);
    const cancel = sent(messageTypes.OrderCancelRequest).at(-1);
    assert.deepEqual([cancel?.get(tags.OrigClOrdID), ...texts(cancel, partyTags)], [name, ...parties]);
    assert.match(cancel?.get(tags.ClOrdID) ?? '', /^C.{19}$/);
  });

  it('shows the message log’s reader the order, and nothing of what the account has at the clearing house', async () => {
    const wanted = one();
    await fix.orders.submitOrder(wanted, soon);
    const rows = await eventually(async () => {
      const found = await database.read(
        statement('SELECT text FROM fix_messages WHERE order_id = ? ORDER BY id', Buffer.from(wanted.clientOrderId)),
      );
      assert.equal(found.length, 2);
      return found;
    });
    const shown = JSON.stringify(rows);
    assert.ok(!shown.includes(cscs), shown);
    assert.match(shown, /448=\*\*\*\|447=D\|452=24\|448=MARINA01\|447=D\|452=1\|5001=\*\*\*\|528=A\|581=1/);
  });

  it('refuses an order for ever whose placeholder has no value, and sends the next one once the file has it', async () => {
    const before = sent(messageTypes.NewOrderSingle).length;
    const unknown = one({ account: 'NG-0000002' });
    await assert.rejects(fix.orders.submitOrder(unknown, soon), hasCode(status.FAILED_PRECONDITION));
    // More than the exchange takes in a second: they take the turn of no other order.
    for (let times = 0; times < 6; times += 1) {
      await assert.rejects(
        fix.orders.submitOrder(one({ partner: undefined }), soon),
        hasCode(status.FAILED_PRECONDITION),
      );
    }
    const good = await fix.orders.submitOrder(one({ notAfter: timestampFromMs(Date.now() + 5_000) }), soon);
    assert.equal(good.report?.kind, ReportKind.ACCEPTED, 'an order with all its values');
    assert.equal((await fix.orders.lookUpOrder({ clientOrderId: unknown.clientOrderId }, soon)).found, false);
    assert.equal(sent(messageTypes.NewOrderSingle).length, before + 1);
    const metrics = await (await fetch(`http://127.0.0.1:${fix.adapter.opsPort}/metrics`)).text();
    assert.match(metrics, /^marina_fix_template_values_missing_total [1-9]/m);
    const lines = fix.logged.filter((line) => line.includes('has no value for an order'));
    assert.ok(lines.some((line) => line.includes('{account.cscs}') && line.includes(unknown.clientOrderId)));
    writeFileSync(lookupFile, `${lookups}account=NG-0000002|cscs=C2|type=2\n`);
    await eventually(() => assert.ok(fix.logged.some((line) => line.includes('its new values are used'))), 20_000);
    await assert.rejects(fix.orders.submitOrder(unknown, soon), hasCode(status.ALREADY_EXISTS));
    const next = one({ account: 'NG-0000002' });
    assert.equal((await fix.orders.submitOrder(next, soon)).report?.kind, ReportKind.ACCEPTED);
    assert.ok(texts(sent(messageTypes.NewOrderSingle).at(-1), [448, 581]).includes('448=C2'));
  });

  it('gives partners the reason of the file, and operators what the exchange said', async () => {
    const wanted = one();
    const name = wanted.clientOrderId.slice(4);
    exchange.treat = () => 'silent';
    const answer = fix.orders.submitOrder(wanted, soon);
    const entry = await eventually(() => {
      const found = exchange.book.get(name);
      assert.ok(found);
      return found;
    });
    exchange.treat = () => 'accept';
    entry.status = '8';
    const said = [
      [tags.OrdRejReason, '99'],
      [tags.Text, 'No CASH in the account'],
    ] as const;
    exchange.send(messageTypes.ExecutionReport, ...exchange.report(name, '8', said));
    const { report } = await answer;
    assert.deepEqual([report?.kind, report?.rejectReason], [ReportKind.REJECTED, RejectReason.INSUFFICIENT_FUNDS]);
    assert.ok(
      !JSON.stringify(report, (_, value) => (typeof value === 'bigint' ? String(value) : value)).includes('CASH'),
    );
    for (const orderId of [wanted.clientOrderId, undefined]) {
      const [first] = await listRejections(database, orderId, 10);
      assert.deepEqual(
        [first?.orderId, first?.shownReason, first?.exchangeReason, first?.exchangeText],
        [wanted.clientOrderId, 'insufficient_funds', 'OrdRejReason=99', 'No CASH in the account'],
      );
    }
  });

  it('takes no id that has no name of 20 characters', async () => {
    const wrong = one({ clientOrderId: `chk_${randomBase32(20)}` });
    await assert.rejects(fix.orders.submitOrder(wrong, soon), hasCode(status.INVALID_ARGUMENT));
  });
});
