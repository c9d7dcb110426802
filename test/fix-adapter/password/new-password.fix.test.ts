/** The change of the session's password by a Logon. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { Field, FixMessage } from '../../../src/fix-adapter/wire/message.ts';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { connect } from '../../../src/gateway/store/data-source.ts';
import { Database } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { eventually } from '../../support/eventually.ts';
import { createFixDatabase, TestAdapter } from '../../support/fix/adapter.ts';
import { Exchange } from '../../support/fix/exchange.ts';

const former = 'former-SECRET-word';
const wanted = 'wanted-SECRET-word';

/** An adapter that shall change its password, and an exchange that answers each of its Logons so. */
async function begin(context: TestContext, answer: (logon: FixMessage, exchange: Exchange) => void) {
  const made = await createFixDatabase();
  const exchange = await Exchange.start();
  exchange.intercept = (message) => {
    if (message.type !== messageTypes.Logon) return false;
    exchange.nextIn = message.number + 1;
    answer(message, exchange);
    return true;
  };
  const start = () =>
    TestAdapter.start({
      MARINA_FIX_DATABASE_URL: made.url,
      MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
      MARINA_FIX_USERNAME: 'marina',
      MARINA_FIX_PASSWORD: former,
      MARINA_FIX_NEW_PASSWORD: wanted,
    });
  let fix = await start();
  context.after(async () => {
    await fix.stop();
    await exchange.close();
    await made.drop();
  });
  const logons = () =>
    exchange.received
      .filter(({ type }) => type === messageTypes.Logon)
      .map((logon) => [logon.get(tags.Password), logon.get(tags.NewPassword)]);
  const shows = (expected: readonly (readonly (string | undefined)[])[]) =>
    eventually(() => assert.deepEqual(logons(), expected), 20_000);
  return {
    ...{ exchange, made, shows },
    logged: () => fix.logged,
    isUp: () => eventually(() => assert.ok(fix.adapter.isUp), 20_000),
    restart: async () => {
      await fix.stop();
      fix = await start();
    },
  };
}

function accept(exchange: Exchange, ...more: readonly Field[]): void {
  exchange.send(messageTypes.Logon, [tags.EncryptMethod, '0'], [tags.HeartBtInt, '30'], ...more);
}

describe('the new password of a session', () => {
  it('is sent once, is the password from the answer on, and is in no log', async (context) => {
    const chain = await begin(context, (logon, exchange) => {
      const isChange = logon.get(tags.NewPassword) !== undefined;
      accept(
        exchange,
        ...(isChange ? [[tags.SessionStatus, '1'] as const, [tags.Text, `now ${wanted}`] as const] : []),
      );
    });
    await chain.isUp();
    await chain.shows([[former, wanted]]);
    assert.ok(chain.logged().some((line) => line.includes('set MARINA_FIX_PASSWORD to the new one')));
    chain.exchange.cut();
    await chain.shows([
      [former, wanted],
      [wanted, undefined],
    ]);
    const first = chain.logged();
    await chain.restart();
    await chain.shows([
      [former, wanted],
      [wanted, undefined],
      [wanted, undefined],
    ]);
    await chain.isUp();
    const lines = [...first, ...chain.logged()].join('');
    assert.ok(!lines.includes(wanted) && !lines.includes(former));
    const database = new Database(await connect({ url: chain.made.url, poolSize: 1 }), 'live', 1);
    context.after(() => database.close());
    const texts = await eventually(async () => {
      const rows = await database.read(statement("SELECT text FROM fix_messages WHERE type = 'A'"));
      assert.ok(rows.length >= 6);
      return rows.map(({ text }) => String(text)).join('\n');
    });
    assert.match(texts, /\|554=\*\*\*\|925=\*\*\*/);
    assert.ok(!texts.includes(wanted) && !texts.includes(former), texts);
    const changes = await database.read(statement('SELECT * FROM fix_password_changes'));
    assert.deepEqual(
      changes.map(({ outcome }) => outcome),
      ['changed'],
    );
    const stored = Object.values(changes[0] ?? {}).map((value) =>
      Buffer.isBuffer(value) ? value.toString('latin1') : value,
    );
    assert.ok(!stored.join(' ').includes(wanted));
  });

  it('is not sent again after the exchange refused it or left it unanswered, and the former one stays', async (context) => {
    let count = 0;
    const chain = await begin(context, (_, exchange) => {
      count += 1;
      if (count === 1) exchange.cut();
      else accept(exchange);
    });
    await chain.isUp();
    await chain.shows([
      [former, wanted],
      [former, undefined],
    ]);
    assert.ok(chain.logged().some((line) => line.includes('no answer came: ask the broker')));
    await chain.restart();
    await chain.isUp();
    await chain.shows([
      [former, wanted],
      [former, undefined],
      [former, undefined],
    ]);
  });

  it('is refused by name if it does not comply with the rules of the exchange', async (context) => {
    const chain = await begin(context, (logon, exchange) => {
      const isChange = logon.get(tags.NewPassword) !== undefined;
      accept(exchange, ...(isChange ? [[tags.SessionStatus, '3'] as const] : []));
    });
    await chain.isUp();
    assert.ok(chain.logged().some((line) => line.includes('because it does not comply with its rules')));
    chain.exchange.cut();
    await chain.shows([
      [former, wanted],
      [former, undefined],
    ]);
  });
});
