import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { asApiError } from '../../../src/gateway/edge/errors.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import { noFact, rowsFact } from '../../../src/gateway/store/facts.ts';
import { type Statement, statement } from '../../../src/gateway/store/statement.ts';
import { createPartner } from '../../../src/sandbox/provision.ts';
import { withDatabase } from '../../support/database.ts';

/** The answer to the caller of a transaction, and the number of tries. */
interface Ended {
  readonly answer: string;
  readonly cause: string;
  readonly tries: number;
}

/** The server itself ends the statement with this error. */
function fails(errno: number): Statement {
  return statement(`SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = ${errno}, MESSAGE_TEXT = 'as the server says it'`);
}

describe('an error of the database in a transaction that writes', () => {
  let database: Database;
  let partnerId: string;
  withDatabase(
    (opened) => {
      database = opened;
    },
    { poolSize: 2 },
  );
  beforeEach(async () => {
    partnerId = await createPartner(database, { name: 'Errors', limits: {}, features: [] });
  });

  async function ended(errno: number, work: (fails: () => Statement) => Promise<unknown>): Promise<Ended> {
    let tries = 0;
    try {
      await work(() => {
        tries += 1;
        return fails(errno);
      });
    } catch (error) {
      const { cause } = error as { cause?: { name: string; errno?: number } };
      const answer = asApiError(error)?.code ?? 'internal_error';
      return { answer, cause: cause?.errno === undefined ? (cause?.name ?? '') : String(cause.errno), tries };
    }
    return { answer: 'done', cause: '', tries };
  }

  const inPartner = (error: () => Statement) =>
    database.inPartnerTransaction(partnerId, {
      touches: [],
      fact: rowsFact(),
      decide: () => ({ writes: [statement('DO 1'), error()], result: undefined }),
    });
  const inTransaction = (error: () => Statement) =>
    database.transaction([], () => ({ writes: [statement('DO 1'), error()], result: undefined }));

  const expected: readonly [name: string, errno: number, ended: Ended][] = [
    // A cluster says so of a COMMIT that it may have done all the same.
    ['an error during COMMIT', 1180, { answer: 'service_unavailable', cause: 'CommitUnknownError', tries: 1 }],
    ['a deadlock', 1213, { answer: 'service_unavailable', cause: '1213', tries: 4 }],
    ['a lock wait that took too long', 1205, { answer: 'service_unavailable', cause: '1205', tries: 4 }],
    ['a node that is not ready', 1047, { answer: 'service_unavailable', cause: '1047', tries: 1 }],
    ['a server that only reads', 1290, { answer: 'service_unavailable', cause: '1290', tries: 1 }],
    ['a full disk', 1021, { answer: 'service_unavailable', cause: '1021', tries: 1 }],
    ['a full table', 1114, { answer: 'service_unavailable', cause: '1114', tries: 1 }],
    ['a statement that took too long for MariaDB', 1969, { answer: 'service_unavailable', cause: '1969', tries: 1 }],
    ['a query that took too long for MySQL', 3024, { answer: 'service_unavailable', cause: '3024', tries: 1 }],
    ['a transaction that stood still on MySQL', 4031, { answer: 'service_unavailable', cause: '4031', tries: 1 }],
    ['a statement that was killed', 1317, { answer: 'service_unavailable', cause: '1317', tries: 1 }],
    ['a statement that is wrong', 1064, { answer: 'internal_error', cause: '', tries: 1 }],
  ];
  for (const [name, errno, outcome] of expected) {
    it(`${name} (${errno}) is ${outcome.answer}, after ${outcome.tries} ${outcome.tries === 1 ? 'try' : 'tries'}`, async () => {
      for (const work of [inPartner, inTransaction]) assert.deepEqual(await ended(errno, work), outcome);
    });
  }

  it('leaves the connection usable, and nothing written', async () => {
    const [before] = await database.read(statement('SELECT name FROM partners WHERE id = ?', partnerId));
    const rename = statement("UPDATE partners SET name = 'Written' WHERE id = ?", partnerId);
    for (const errno of [1180, 1213, 1064]) {
      await assert.rejects(database.transaction([], () => ({ writes: [rename, fails(errno)], result: undefined })));
      const [now] = await database.read(statement('SELECT name FROM partners WHERE id = ?', partnerId));
      assert.deepEqual(now, before, `after ${errno} what stood before it was written`);
    }
  });

  it('an error at the COMMIT of work whose reads are known is not tried again in the other way', async () => {
    const work = (write: () => Statement) => {
      const decide = () => ({ writes: [write()], result: undefined });
      return database.inPartnerTransaction(partnerId, { touches: [], fact: noFact, decide });
    };
    await work(() => statement('DO 1')); // From now on the partner is known.
    const outcome = await ended(1180, work);
    assert.deepEqual(outcome, { answer: 'service_unavailable', cause: 'CommitUnknownError', tries: 1 });
  });
});
