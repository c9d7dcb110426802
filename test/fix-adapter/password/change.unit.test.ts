/** A new password of the session, over a database that the test scripts. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PasswordChange } from '../../../src/fix-adapter/password/change.ts';
import { fixPasswordChanges, type PasswordChangeRow } from '../../../src/fix-adapter/password/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import type { SqlRow, Statement } from '../../../src/gateway/store/statement.ts';
import { storedRow } from '../../support/stored-row.ts';

/** A table of new passwords, and the processes that know it. */
function begin(settings: { password: string | undefined; newPassword: string | undefined }) {
  const rows: PasswordChangeRow[] = [];
  const state = { isAway: false, isLost: false, losesWrites: false, reads: 0 };
  const write = ({ sql, values }: Statement) => {
    if (state.losesWrites) return;
    const given = values.flat(2);
    if (sql.startsWith('INSERT')) {
      const [salt, digest] = given.filter((value) => Buffer.isBuffer(value));
      if (salt === undefined || digest === undefined) assert.fail('a new password has its salt and its digest');
      const outcome = given.find((value) => value === 'sent') as 'sent';
      rows.push({ id: BigInt(rows.length + 1), salt, digest, sentAt: 7, outcome });
      return;
    }
    const row = rows.find(({ id }) => given.some((value) => typeof value === 'bigint' && value === id));
    const outcome = given.find((value) => typeof value === 'string') as PasswordChangeRow['outcome'];
    Object.assign(row ?? assert.fail('an unknown row'), { outcome });
  };
  const database: Partial<Database> = {
    read: async () => {
      state.reads += 1;
      if (state.isAway) throw new Error('the database is away');
      return rows.toReversed().map((row): SqlRow => storedRow(fixPasswordChanges, row));
    },
    transaction: async (_, decide) => {
      if (state.isAway) throw new Error('the database is away');
      const { writes, result } = decide([state.isLost ? [] : [{ fence: '3' }]]);
      writes.forEach(write);
      return result;
    },
  };
  const lines: string[] = [];
  const noted = (level: string) => (_: unknown, line?: string) => void lines.push(`${level}: ${line ?? String(_)}`);
  const log = { info: noted('info'), warn: noted('warn'), error: noted('error') };
  const process = () =>
    new PasswordChange({
      database: database as Database,
      lease: { name: 'fix', fence: 3n },
      password: {
        get current() {
          return settings.password;
        },
      } as never,
      newPassword: {
        get current() {
          return settings.newPassword;
        },
      } as never,
      now: () => 7,
      log: log as never,
    });
  return { change: process(), process, rows, state, lines, settings };
}

const changed = { isAccepted: true, sessionStatus: '1' };

describe('a new password of the FIX session', () => {
  it('a new password of the FIX session is stored before the Logon may have it, by a digest that is not the password', async () => {
    const { change, rows, state } = begin({ password: 'old', newPassword: 'new' });
    assert.equal(await change.next(), 'new');
    assert.deepEqual(
      rows.map(({ outcome }) => outcome),
      ['sent'],
    );
    assert.ok(!rows.some(({ digest }) => digest.includes('new')));
    assert.equal(change.current(), 'old');
    assert.ok(state.reads > 0);
  });

  it('a new password of the FIX session is not sent without the database, without the lease, or if it is not read back, and is sent once they are right', async () => {
    for (const fault of ['isAway', 'isLost', 'losesWrites'] as const) {
      const { change, rows, state } = begin({ password: 'old', newPassword: 'new' });
      state[fault] = true;
      await assert.rejects(change.next(), fault);
      assert.deepEqual(rows, []);
      state[fault] = false;
      assert.equal(await change.next(), 'new', fault);
    }
  });

  it('a new password of the FIX session is sent once by all processes, whatever came of it, and an operator is notified once by each that no answer came', async () => {
    const { change, process, rows, lines } = begin({ password: 'old', newPassword: 'new' });
    await change.next();
    for (const each of [change, process()]) {
      lines.length = 0;
      assert.deepEqual([await each.next(), await each.next(), await each.next()], [undefined, undefined, undefined]);
      assert.deepEqual(lines, [
        'error: a new password was sent, and no answer came: ask the broker which password holds',
      ]);
    }
    assert.equal(rows.length, 1);
  });

  it('a new password of the FIX session is the password from the answer on that says so, also in another process and where that could not be stored', async () => {
    for (const isAway of [false, true]) {
      const { change, process, rows, state, lines } = begin({ password: 'old', newPassword: 'new' });
      await change.next();
      state.isAway = isAway;
      await change.answered(changed);
      state.isAway = false;
      assert.equal(change.current(), 'new');
      assert.equal(rows[0]?.outcome, isAway ? 'sent' : 'changed');
      assert.equal(lines.includes('warn: the outcome of a new password was not stored'), isAway);
      const later = process();
      await later.load();
      assert.equal(later.current(), isAway ? 'old' : 'new');
      assert.equal(await later.next(), undefined);
      lines.length = 0;
      assert.equal(await change.next(), undefined);
      assert.deepEqual(lines, []);
    }
  });

  it('a new password of the FIX session is the password after no other answer', async () => {
    for (const [isAccepted, sessionStatus, outcome] of [
      [true, undefined, 'unknown'],
      [true, '3', 'refused'],
    ] as const) {
      const { change, rows } = begin({ password: 'old', newPassword: 'new' });
      await change.next();
      await change.answered({ isAccepted, sessionStatus });
      assert.deepEqual([change.current(), rows[0]?.outcome], ['old', outcome]);
    }
  });

  it('a new password of the FIX session takes the answer to the Logon that had it, and neither a second one nor that to a later Logon', async () => {
    const once = begin({ password: 'old', newPassword: 'new' });
    await once.change.next();
    await once.change.answered({ isAccepted: false, sessionStatus: undefined });
    await once.change.answered(changed);
    assert.deepEqual([once.change.current(), once.rows[0]?.outcome], ['old', 'refused']);
    const later = begin({ password: 'old', newPassword: 'new' });
    await later.change.next();
    await later.change.next();
    await later.change.answered(changed);
    assert.deepEqual([later.change.current(), later.rows[0]?.outcome], ['old', 'sent']);
  });

  it('a new password of the FIX session takes no answer to a Logon whose new password could not be stored', async () => {
    const { change, state, settings } = begin({ password: 'old', newPassword: 'new' });
    await change.next();
    settings.newPassword = 'newer';
    state.isAway = true;
    await assert.rejects(change.next());
    state.isAway = false;
    await change.answered(changed);
    settings.newPassword = 'new';
    assert.equal(change.current(), 'old');
  });

  it('a new password of the FIX session is not sent if there is none, or if it is the password already', async () => {
    for (const newPassword of [undefined, 'old']) {
      const { change, rows } = begin({ password: 'old', newPassword });
      assert.equal(await change.next(), undefined);
      assert.deepEqual([rows, change.current()], [[], 'old']);
    }
  });

  it('a new password of the FIX session can be followed by a further one, and is found among the later ones', async () => {
    const { change, process, rows, settings } = begin({ password: 'old', newPassword: 'new' });
    await change.next();
    await change.answered(changed);
    settings.newPassword = 'newer';
    assert.equal(change.current(), 'old');
    assert.equal(await change.next(), 'newer');
    await change.answered({ isAccepted: true, sessionStatus: '3' });
    assert.deepEqual(
      rows.map(({ outcome }) => outcome),
      ['changed', 'refused'],
    );
    settings.newPassword = 'new';
    const later = process();
    await later.load();
    assert.equal(later.current(), 'new');
  });
});
