import assert from 'node:assert/strict';
import { it } from 'node:test';
import { askedServer } from '../../src/sandbox/servers.ts';

it('a database server that is not known is refused, and named with its setting', () => {
  assert.equal(askedServer({}), undefined);
  assert.equal(askedServer({ MARINA_DATABASE_SERVER: 'mysql' }), 'mysql');
  assert.equal(askedServer({ MARINA_TEST_SERVER: 'mariadb' }), 'mariadb');
  assert.throws(() => askedServer({ MARINA_TEST_SERVER: 'MySQL8' }), /^Advice: MARINA_TEST_SERVER is MySQL8/);
});
