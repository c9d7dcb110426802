/** The walk over the batches of the audit, over batches and entries that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AuditBatch, nextBatch, noBatch } from '../../../../src/gateway/operators/audit/rules.ts';
import {
  batchBefore,
  readLastBatch,
  secretOfLastSeal,
  type WalkedBatch,
  walkBatches,
} from '../../../../src/gateway/operators/audit/walk.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { auditRows, entryOf, firstSecret, nextSecret, sealsUnder, toRow } from '../../../support/audit-rows.ts';

async function walked(database: unknown, after = 0n, seals = sealsUnder(firstSecret)): Promise<WalkedBatch[]> {
  const found: WalkedBatch[] = [];
  for await (const batch of walkBatches(database as Database, seals, after)) found.push(batch);
  return found;
}

const faultsOf = (batches: readonly WalkedBatch[]) =>
  batches.map(({ number, fault }) => `${number} ${fault ?? 'right'}`);

describe('the walk over the batches of the audit', () => {
  it('each batch is walked once, in order, however many there are', async () => {
    for (const count of [0, 1, 19, 20, 21, 40, 41]) {
      const { database } = auditRows(Array(count).fill(2));
      const numbers = (await walked(database)).map(({ number }) => Number(number));
      assert.deepEqual(
        numbers,
        Array.from({ length: count }, (_, at) => at + 1),
      );
    }
  });

  it('the walk goes on after a batch, and ends at once after one that does not exist', async () => {
    const { database } = auditRows([2, 1, 3]);
    assert.deepEqual(faultsOf(await walked(database, 2n)), ['3 right']);
    assert.deepEqual(faultsOf(await walked(database, 3n)), []);
    assert.deepEqual(faultsOf(await walked(database, 4n)), []);
  });

  it('a batch that matches its seal and its entries is right, also one that only renews the seal', async () => {
    const { database } = auditRows([2, 0, 1, 200, 0]);
    assert.deepEqual(faultsOf(await walked(database)), ['1 right', '2 right', '3 right', '4 right', '5 right']);
  });

  it('a change of entries or batches is a fault of the batch that has it, and of no other', async () => {
    const faults: Readonly<Record<string, [(rows: ReturnType<typeof auditRows>) => void, string[]]>> = {
      'an entry is gone': [({ entries }) => entries.splice(2, 1), ['1 right', '2 removed', '3 right']],
      'the first entry is gone': [({ entries }) => entries.splice(0, 1), ['1 removed', '2 right', '3 right']],
      'an entry is changed': [
        ({ entries }) => Object.assign(entries[5] as object, { detail: 'other' }),
        ['1 right', '2 right', '3 changed'],
      ],
      'a batch is gone': [({ batches }) => batches.splice(1, 1), ['1 right', '3 missing']],
      'a number is changed': [
        ({ batches }) => Object.assign(batches[1] as object, { entries: 1 }),
        ['1 right', '2 unsealed', '3 right'],
      ],
    };
    for (const [name, [change, expected]] of Object.entries(faults)) {
      const rows = auditRows([2, 2, 2]);
      change(rows);
      assert.deepEqual(faultsOf(await walked(rows.database)), expected, name);
    }
  });

  it('an entry too many is found, also right before the first or after the last of a batch', async () => {
    for (const [id, batch] of [
      [5, 1],
      [15, 1],
      [25, 2],
      [45, 3],
    ] as const) {
      const spread = (number: number) => ({ id: BigInt(number) * 10n });
      const { entries, database } = auditRows([2, 2, 2], undefined, { change: spread });
      entries.push(toRow(entryOf(id)));
      const found = (await walked(database)).filter(({ fault }) => fault !== undefined);
      assert.deepEqual(faultsOf(found), [`${batch} inserted`], `${id}`);
    }
  });

  it('a seal under a secret that left the ring is no fault, and one that no gateway made is', async () => {
    const { database } = auditRows([1, 1], sealsUnder(nextSecret));
    assert.deepEqual(faultsOf(await walked(database)), ['1 right', '2 right']);
    const others = auditRows([1, 1], sealsUnder(nextSecret));
    for (const batch of others.batches) {
      const seal = Buffer.from(batch.seal as Buffer);
      sealsUnder(firstSecret).make(noBatch).copy(seal, 0, 0, 8);
      batch.seal = seal;
    }
    assert.deepEqual(faultsOf(await walked(others.database)), ['1 unsealed', '2 unsealed']);
  });
});

describe('the ends of the audit', () => {
  it('the last batch has its proof, by the secrets of the ring', async () => {
    const { database } = auditRows([1, 2]);
    for (const [seals, proof] of [
      [sealsUnder(firstSecret), 'right'],
      [sealsUnder(nextSecret, firstSecret), 'right'],
      [sealsUnder(nextSecret), 'unknown'],
    ] as const) {
      const last = await readLastBatch(database as never, seals);
      assert.deepEqual([last?.batch.number, last?.batch.lastId, last?.proof], [2n, 3n, proof]);
    }
    assert.equal(await readLastBatch(auditRows([]).database as never, sealsUnder(firstSecret)), undefined);
  });

  it('the secret of the last seal is known by its id', async () => {
    const seals = sealsUnder(nextSecret);
    const { database } = auditRows([1], seals);
    assert.equal(await secretOfLastSeal(database as never), seals.make(noBatch).toString('hex', 0, 8));
    assert.equal(await secretOfLastSeal(auditRows([]).database as never), undefined);
  });

  it('the batch before an entry is the last that ends before it', async () => {
    const { database } = auditRows([2, 0, 2]);
    for (const [id, number] of [
      [1n, 0n],
      [2n, 0n],
      [3n, 2n],
      [4n, 2n],
      [5n, 3n],
      [9n, 3n],
    ] as const) {
      assert.equal(await batchBefore(database as never, id), number, `${id}`);
    }
    assert.equal(await batchBefore(auditRows([]).database as never, 1n), 0n);
  });

  it('a batch that follows another one has the number after it and the entries after it', () => {
    let batch: AuditBatch = noBatch;
    for (const [ids, expected] of [
      [
        [1, 2],
        [1n, 1n, 2n, 2],
      ],
      [[], [2n, 2n, 2n, 0]],
      [[3], [3n, 3n, 3n, 1]],
    ] as const) {
      batch = nextBatch(batch, ids.map(entryOf));
      assert.deepEqual([batch.number, batch.firstId, batch.lastId, batch.entries], expected);
    }
  });
});
