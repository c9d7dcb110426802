import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import { type Database, openDatabase } from '../../../../src/gateway/store/database.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import { savePosition } from '../../../../src/gateway/trading/submission/positions.ts';
import { declareRestored } from '../../../../src/gateway/trading/submission/recovery.ts';
import { submissionsPosition } from '../../../../src/gateway/trading/submission/restored.ts';
import { createPartner } from '../../../../src/sandbox/provision.ts';
import { openTestDatabase } from '../../../support/database.ts';

/** The calls that write. */
const writing = ['write', 'writeAll', 'transaction', 'inPartnerTransaction'] as const;

describe('the declaration that a database was restored', () => {
  let database: Database;
  let close: () => Promise<void>;
  /** Of a process that dies. */
  let own: Database;
  before(async () => {
    const opened = await openTestDatabase();
    ({ database } = opened);
    own = await openDatabase({ url: opened.url, environment: 'sandbox', poolSize: 2 });
    close = opened.close;
    for (const name of ['One', 'Two']) await createPartner(database, { name, limits: {}, features: [] });
  });
  after(async () => {
    await own.close();
    await close();
  });

  /** Declares it in a process that dies before or after one of its writes. Answers whether it died. */
  async function declareAndDie(t: TestContext, fatal: number, isMade: boolean): Promise<boolean> {
    let writes = 0;
    let isDead = false;
    for (const name of writing) {
      const real = own[name].bind(own) as (...given: unknown[]) => Promise<unknown>;
      t.mock.method(own, name, async (...given: unknown[]) => {
        writes += 1;
        const isFatal = writes === fatal;
        isDead ||= isFatal && !isMade;
        if (isDead) throw new Error('the process is dead');
        const result = await real(...given);
        isDead ||= isFatal;
        if (isDead) throw new Error('the process is dead');
        return result;
      });
    }
    try {
      await declareRestored(own, firstBroker);
    } catch (error) {
      assert.ok(isDead, String(error));
    } finally {
      t.mock.restoreAll();
    }
    return isDead;
  }

  const versions = async () => {
    const rows = await database.read(statement('SELECT version FROM partners ORDER BY id'));
    return rows.map(({ version }) => Number(version));
  };

  it('a declaration is made again by the next start if the process dies at any of its writes, and no version is used twice', async (t) => {
    let at = 0;
    for (const isMade of [false, true]) {
      for (let fatal = 1; ; fatal += 1) {
        at += 1;
        await database.write(savePosition(submissionsPosition(firstBroker), String(at)));
        const earlier = await versions();
        const isDead = await declareAndDie(t, fatal, isMade);
        const wasLast = isDead && !(await declareRestored(database, firstBroker));
        const said = `died ${isMade ? 'after' : 'before'} write ${fatal}`;
        const later = await versions();
        assert.ok(
          later.every((version, partner) => version > (earlier[partner] ?? 0)),
          `${said}: a partner has no gap`,
        );
        assert.equal(await declareRestored(database, firstBroker), false, `${said}: it is declared`);
        if (isDead && !wasLast) continue;
        assert.ok(fatal > 3, `${said}: each partner has a write`);
        break;
      }
    }
  });
});
