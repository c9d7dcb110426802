import assert from 'node:assert/strict';
import { eventually } from '../eventually.ts';
import { fc } from '../properties.ts';
import { ask, assertAnswer, boundMs, type Command, type Whole } from './surroundings.ts';

/** The partner makes a key, goes on with it, and revokes the one before: that one is refused everywhere. */
function rotate(replica: number): Command {
  return {
    toString: () => 'rotate the key',
    check: () => true,
    run: async (_, whole) => {
      const scopes = ['read', 'trade', 'apply', 'fund', 'keys', 'withdraw'];
      const made = await ask(whole, replica, 'POST', '/v1/keys', { body: { scopes } });
      assertAnswer(made, { status: 201 });
      const { partner } = whole;
      const old = partner.key;
      partner.key = made.body.secret;
      await untilUsable(whole, partner.key, 200);
      // Without a clear answer it was made again, and nobody knows the first one.
      const { body: list } = await ask(whole, replica, 'GET', '/v1/keys');
      for (const { id, revoked_at } of list.data) {
        if (id === made.body.id || revoked_at !== null) continue;
        assertAnswer(await ask(whole, replica, 'DELETE', `/v1/keys/${id}`), { status: 200 });
      }
      await untilUsable(whole, old, 401);
    },
  };
}

function untilUsable(whole: Whole, key: string, status: number): Promise<void> {
  return eventually(async () => {
    for (const replica of whole.replicas.keys()) {
      const answer = await ask(whole, replica, 'GET', '/v1/limits', { key });
      assert.equal(answer.status, status, answer.text);
    }
  }, boundMs);
}

/** The commands of keys. */
export const keyCommands = [fc.nat(1).map(rotate)];
