/** The password of each Logon while the database fails at any of the writes around a change. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { PasswordChange } from '../../../src/fix-adapter/password/change.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { openFixDatabase } from '../../support/fix/adapter.ts';

const former = 'the former word';

describe("the password of a session's Logons", () => {
  let opened: Awaited<ReturnType<typeof openFixDatabase>>;
  let database: Database;
  let count = 0;
  before(async () => {
    opened = await openFixDatabase(2);
    ({ database } = opened);
    await database.write(
      statement("INSERT INTO leases (name, holder, fence, expires_at) VALUES ('s', 'a', 4, NOW(3) + INTERVAL 1 HOUR)"),
    );
  });
  after(() => opened.close());

  /** A process with the setting of a new password, and a database whose next writes and reads may fail. */
  function begin(wanted: string, fence = 4n) {
    const logged: string[] = [];
    const failing = { writes: 0, reads: 0 };
    const fail = (kind: keyof typeof failing) => {
      if (failing[kind] === 0) return;
      failing[kind] -= 1;
      throw new Error('the database is away');
    };
    const failed: Partial<Database> = {
      read: async (read) => {
        fail('reads');
        return database.read(read);
      },
      transaction: async (reads, decide) => {
        fail('writes');
        return database.transaction(reads, decide);
      },
    };
    const settings = { former, wanted };
    const change = new PasswordChange({
      ...{ database: failed as Database, lease: { name: 's', fence }, now: () => 5 },
      password: {
        get current() {
          return settings.former;
        },
        onChange: () => {},
      },
      newPassword: {
        get current() {
          return settings.wanted;
        },
        onChange: () => {},
      },
      log: createLogger({ name: 'fix', level: 'debug', destination: { write: (line) => void logged.push(line) } }),
    });
    /** The passwords of the next Logon: the one that it has, and the one that it asks for. */
    const logon = async () => {
      const asked = await change.next();
      return [change.current(), asked];
    };
    return { change, failing, logged, logon, settings };
  }
  const fresh = () => {
    count += 1;
    return `wanted ${count}`;
  };

  for (const [what, reply, isChanged] of [
    ['changed', { isAccepted: true, sessionStatus: '1' }, true],
    ['changed with a Logout', { isAccepted: false, sessionStatus: '1' }, true],
    ['refused', { isAccepted: true, sessionStatus: '3' }, false],
    ['left open', { isAccepted: true, sessionStatus: undefined }, false],
  ] as const) {
    for (const failures of [0, 1]) {
      it(`the password is ${isChanged ? 'the new one' : 'the former one'} once it is ${what}, if ${failures} writes of that fail`, async () => {
        const wanted = fresh();
        const { change, failing, logon } = begin(wanted);
        assert.deepEqual(await logon(), [former, wanted]);
        failing.writes = failures;
        await change.answered(reply);
        const holds = isChanged ? wanted : former;
        for (let time = 0; time < 3; time += 1) {
          assert.deepEqual(await logon(), [holds, undefined], 'it is asked for once');
          await change.answered({ isAccepted: true, sessionStatus: undefined });
        }
        const next = begin(wanted);
        await next.change.load();
        const stored = isChanged && failures === 0 ? wanted : former;
        assert.deepEqual(await next.logon(), [stored, undefined], 'the next process asks no more either');
        const lines = next.logged.filter((line) => line.includes('no answer came'));
        assert.equal(lines.length, failures, 'an operator is told of an outcome that nobody knows');
        await next.logon();
        assert.equal(next.logged.filter((line) => line.includes('no answer came')).length, failures, 'once');
      });
    }
  }

  for (const kind of ['reads', 'writes'] as const) {
    it(`no Logon asks for a new password before it is stored that it does, if ${kind} fail`, async () => {
      const wanted = fresh();
      const { failing, logon } = begin(wanted);
      failing[kind] = 2;
      for (let time = 0; time < 2; time += 1) await assert.rejects(logon(), /the database is away/);
      assert.deepEqual(await logon(), [former, wanted]);
    });
  }

  for (const reply of [
    { isAccepted: true, sessionStatus: '0' },
    { isAccepted: true, sessionStatus: '1' },
    { isAccepted: false, sessionStatus: '3' },
    { isAccepted: false, sessionStatus: '5' },
  ]) {
    it(`the answer to a later Logon, ${JSON.stringify(reply)}, says nothing of a new password whose Logon had no answer`, async () => {
      const wanted = fresh();
      const { change, logon } = begin(wanted);
      assert.deepEqual(await logon(), [former, wanted]);
      assert.deepEqual(await logon(), [former, undefined]);
      await change.answered(reply as Parameters<typeof change.answered>[0]);
      const [row] = await database.read(statement('SELECT outcome FROM fix_password_changes ORDER BY id DESC LIMIT 1'));
      assert.equal(row?.outcome, 'sent');
    });
  }

  it('no Logon asks for a new password of a process that has lost the lease', async () => {
    const wanted = fresh();
    await assert.rejects(begin(wanted, 3n).logon(), /another process has the session/);
    assert.deepEqual(await begin(wanted).logon(), [former, wanted]);
  });

  it('the password is the setting alone while there is no new one, and when both are the same', async () => {
    const wanted = fresh();
    const { change, logon, settings } = begin(wanted);
    settings.former = wanted;
    assert.deepEqual(await logon(), [wanted, undefined]);
    settings.former = former;
    assert.deepEqual(await logon(), [former, wanted]);
    await change.answered({ isAccepted: true, sessionStatus: '1' });
    const other = fresh();
    settings.wanted = other;
    assert.deepEqual(await logon(), [former, other], 'another wish is another change');
    settings.wanted = wanted;
    assert.deepEqual(await logon(), [wanted, undefined], 'the outcome of the first one is known');
  });
});
