import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { newOperatorToken } from '../../../src/kit/operator-tokens.ts';
import { eventually } from '../../support/eventually.ts';
import { createFixDatabase, TestAdapter } from '../../support/fix/adapter.ts';
import { Exchange } from '../../support/fix/exchange.ts';
import { ofType } from '../../support/fix/session.ts';
import type { Found } from '../../support/operator.ts';
import { ReflectedClient } from '../../support/reflected.ts';

const ada = newOperatorToken('ada', Date.now() + 86_400_000);

describe('an operator of the FIX adapter', () => {
  it('sees that Logons were refused and why, and has the session log on again', async () => {
    const made = await createFixDatabase();
    const exchange = await Exchange.start();
    exchange.intercept = ({ type }) => {
      if (type !== messageTypes.Logon) return false;
      exchange.nextIn += 1;
      exchange.send(messageTypes.Logout, [tags.Text, 'wrong password']);
      return true;
    };
    const fix = await TestAdapter.start({
      MARINA_FIX_DATABASE_URL: made.url,
      MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
      MARINA_FIX_ADMIN_PORT: '0',
      MARINA_FIX_OPERATOR_TOKENS: ada.line,
      MARINA_FIX_LOGON_TRIES: '1',
    });
    const operator = await ReflectedClient.connect(`127.0.0.1:${fix.adapter.adminPort}`);
    const call = (name: string, request = {}): Promise<Found> =>
      operator.call(`marina.fix.v1.FixOperations.${name}`, request, ada.token);
    try {
      await fix.active();
      await eventually(async () => {
        const { session } = await call('GetSession');
        // It waits half a minute after a refusal, and then sends no further Logon.
        assert.ok(['SESSION_STATE_WAITING', 'SESSION_STATE_STOPPED'].includes(session.state), session.state);
        assert.match(session.reason, /wrong password/);
      });
      assert.equal(ofType(exchange, messageTypes.Logon).length, 1);
      exchange.intercept = () => false;
      const { session } = await call('LogOn', { reason: 'the desk has set the password' });
      assert.equal(session.state, 'SESSION_STATE_UP');
      assert.equal(ofType(exchange, messageTypes.Logon).length, 2);
    } finally {
      operator.close();
      await fix.stop();
      await exchange.close();
      await made.drop();
    }
  });
});
