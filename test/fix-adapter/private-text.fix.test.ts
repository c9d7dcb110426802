/** Free text of the exchange may be about a person: operators see it, and no log line has it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { messageTypes, tags } from '../../src/fix-adapter/wire/tags.ts';
import { connect } from '../../src/gateway/store/data-source.ts';
import { Database } from '../../src/gateway/store/database.ts';
import { statement } from '../../src/gateway/store/statement.ts';
import { eventually } from '../support/eventually.ts';
import { createFixDatabase, order, soon, TestAdapter } from '../support/fix/adapter.ts';
import { Exchange } from '../support/fix/exchange.ts';

const person = 'Adaeze Okafor 0803';

describe('the text of the exchange', () => {
  it('is in no log line when it logs out, refuses the Logon or rejects; findings have it unless the tag is masked', async (context) => {
    const made = await createFixDatabase();
    const database = new Database(await connect({ url: made.url, poolSize: 1 }), 'live', 1);
    const exchange = await Exchange.start();
    const variables = { MARINA_FIX_DATABASE_URL: made.url, MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}` };
    let fix = await TestAdapter.start(variables);
    context.after(async () => {
      await fix.stop();
      await exchange.close();
      await database.close();
      await made.drop();
    });
    const up = async () => {
      await fix.active();
      await eventually(() => assert.ok(fix.adapter.isUp), 20_000);
    };
    const rows = async (sql: string) => JSON.stringify(await database.read(statement(sql)));
    const reports = async () => {
      const one = order();
      await fix.orders.submitOrder(one, soon);
      exchange.send(messageTypes.ExecutionReport, ...exchange.report('ord_not_ours', '0', [[tags.Text, person]]));
      Object.assign(exchange.book.get(one.clientOrderId) ?? {}, { status: '4' });
      exchange.send(messageTypes.ExecutionReport, ...exchange.report(one.clientOrderId, '4', [[tags.Text, person]]));
    };
    await up();
    await reports();
    await eventually(async () => assert.ok((await rows('SELECT facts FROM fix_findings')).includes(person)));
    exchange.send(messageTypes.Reject, [tags.RefSeqNum, '1'], [tags.RefMsgType, 'A'], [tags.Text, person]);
    exchange.intercept = ({ type }, { send }) => {
      if (type !== messageTypes.Logon) return false;
      send.call(exchange, messageTypes.Logout, [tags.Text, person]);
      return true;
    };
    exchange.send(messageTypes.Logout, [tags.Text, person]);
    await eventually(() => assert.ok(fix.logged.some((line) => line.includes('refused the Logon'))), 20_000);
    await eventually(async () => assert.ok((await rows('SELECT reason FROM fix_session')).includes(person)), 20_000);
    const readyz = await (await fetch(`http://127.0.0.1:${fix.adapter.opsPort}/readyz`)).text();
    assert.ok(!readyz.includes(person), readyz);
    assert.deepEqual(
      fix.logged.filter((line) => line.includes('Adaeze')),
      [],
    );
    await fix.stop();
    exchange.intercept = () => false;
    const [known] = await database.read(statement('SELECT MAX(id) AS id FROM fix_findings'));
    fix = await TestAdapter.start({ ...variables, MARINA_FIX_MESSAGES_MASKED_TAGS: '58,1' });
    await up();
    await reports();
    await eventually(async () => {
      const facts = await rows(`SELECT facts FROM fix_findings WHERE id > ${known?.id}`);
      assert.ok(facts.includes('***') && !facts.includes('Adaeze'), facts);
      const said = await rows("SELECT exchange_text FROM fix_reports WHERE kind = 'cancelled' ORDER BY number");
      assert.match(said, /Adaeze Okafor 0803.*\*\*\*/);
    });
  });
});
