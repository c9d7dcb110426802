import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { listFindings } from '../../src/fix-adapter/operations/findings.ts';
import { printedFindings } from '../../src/fix-adapter/operations/printed.ts';
import { messageTypes, tags } from '../../src/fix-adapter/wire/tags.ts';
import { connect } from '../../src/gateway/store/data-source.ts';
import { Database } from '../../src/gateway/store/database.ts';
import { eventually } from '../support/eventually.ts';
import { createFixDatabase, TestAdapter } from '../support/fix/adapter.ts';
import { Exchange } from '../support/fix/exchange.ts';
import { ofType } from '../support/fix/session.ts';

const dayMs = 86_400_000;
const news = 'B';

describe('messages of types that the FIX adapter does not support', () => {
  let made: Awaited<ReturnType<typeof createFixDatabase>>;
  let database: Database;
  let exchange: Exchange;
  let fix: TestAdapter;
  let aheadMs = 0;
  const now = () => Date.now() + aheadMs;
  before(async () => {
    made = await createFixDatabase();
    database = new Database(await connect({ url: made.url, poolSize: 2 }), 'live', 2);
    exchange = await Exchange.start();
    exchange.now = now;
    await start();
  });
  after(async () => {
    await fix.stop();
    await exchange.close();
    await database.close();
    await made.drop();
  });

  async function start(): Promise<void> {
    const address = `127.0.0.1:${exchange.port}`;
    fix = await TestAdapter.start({ MARINA_FIX_DATABASE_URL: made.url, MARINA_FIX_ADDRESS: address }, now);
    await fix.active();
    await eventually(() => assert.ok(fix.adapter.isUp), 20_000);
  }
  const found = async () => (await listFindings(database, {}, 100)).findings;
  /** The type and the count of messages of each finding, the oldest first. */
  const counted = async () =>
    (await found())
      .map(({ what, facts, messages }) => [what, JSON.parse(facts ?? '{}').MsgType, Number(messages)])
      .reverse();
  const capture = () => exchange.send(messageTypes.TradeCaptureReport, [tags.TradeReportID, 't1'], [tags.ExecID, 'x1']);

  it('are answered by a BusinessMessageReject each, and are one finding a type, with how many came', async () => {
    for (let count = 0; count < 3; count += 1) exchange.send(news, [tags.Text, `opens at ${count}`]);
    capture();
    exchange.send(news, [tags.Text, 'opens now']);
    await eventually(() => assert.equal(ofType(exchange, messageTypes.BusinessMessageReject).length, 5));
    const answers = ofType(exchange, messageTypes.BusinessMessageReject);
    assert.deepEqual(
      answers.map((answer) => [answer.get(tags.RefMsgType), answer.get(380)]),
      [news, news, news, messageTypes.TradeCaptureReport, news].map((type) => [type, '3']),
    );
    await eventually(async () => {
      assert.deepEqual(await counted(), [
        ['unsupported', news, 4],
        ['unsupported', messageTypes.TradeCaptureReport, 1],
      ]);
    });
    assert.match(printedFindings(await found()), /MsgType=B {2}\(4 messages\)$/m);
    const metrics = await (await fetch(`http://127.0.0.1:${fix.adapter.opsPort}/metrics`)).text();
    assert.match(metrics, /^marina_fix_findings_total\{what="unsupported"\} 2$/m);
    assert.match(metrics, /^marina_fix_session_troubles_total\{what="unsupported"\} 5$/m);
    assert.match(metrics, /^marina_fix_findings_open 2$/m);
  });

  it('are counted on by the next process, and are a finding again on the next session day', async () => {
    await fix.stop();
    await start();
    exchange.send(news, [tags.Text, 'still open']);
    await eventually(async () => assert.equal((await counted())[0]?.[2], 5));
    await fix.stop();
    aheadMs = dayMs;
    Object.assign(exchange, { nextIn: 1, nextOut: 1 });
    await start();
    exchange.send(news, [tags.Text, 'opens at 9']);
    await eventually(async () => {
      assert.deepEqual(await counted(), [
        ['unsupported', news, 5],
        ['unsupported', messageTypes.TradeCaptureReport, 1],
        ['unsupported', news, 1],
      ]);
    });
  });
});
