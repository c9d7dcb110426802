import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { audit } from '../../../../src/gateway/edge/auth/audit-store.ts';
import { auditSealer } from '../../../../src/gateway/operators/audit/sealer.ts';
import { AuditSeals, auditSealUse } from '../../../../src/gateway/operators/audit/seals.ts';
import { batchBefore } from '../../../../src/gateway/operators/audit/walk.ts';
import { auditProofCalls } from '../../../../src/gateway/operators/calls/audit-export.ts';
import type { AdminCall } from '../../../../src/gateway/operators/calls/call.ts';
import { describeRing } from '../../../../src/gateway/operators/secret-keys/status.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { type SqlValue, statement } from '../../../../src/gateway/store/statement.ts';
import {
  ExportEntriesRequestSchema,
  ExportFormat,
  VerifyEntriesRequestSchema,
} from '../../../../src/gen/marina/admin/v1/audit_pb.ts';
import { type KeyRing, keysFor, parseKeyRing } from '../../../../src/kit/key-ring.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { fixed } from '../../../../src/kit/watched-files.ts';
import { whileRunning, withDatabase } from '../../../support/database.ts';
import { eventually } from '../../../support/eventually.ts';
import { TestClock } from '../../../support/settling.ts';

const [one, two] = ['ab'.repeat(32), 'cd'.repeat(32)];
const firstAt = Date.UTC(2026, 2, 2);
const call = {} as AdminCall;

function sealsUnder(text: string): AuditSeals {
  const ring: KeyRing = parseKeyRing(text);
  return new AuditSeals(keysFor(fixed(ring), auditSealUse), 'sandbox');
}

describe('the seals of the audit', () => {
  let database: Database;
  let logged: string[];
  let ids: number[];
  withDatabase((opened) => {
    database = opened;
  });

  beforeEach(async () => {
    logged = [];
    for (const table of ['audit_entries', 'audit_seals', 'leases']) await write(`DELETE FROM ${table}`);
    await record(450);
  });

  const write = (sql: string, ...values: SqlValue[]) => database.write(statement(sql, ...values));

  /** Writes entries of two operators, a second apart, and reads the numbers of all. */
  async function record(count: number): Promise<void> {
    const entries = Array.from({ length: count }, (_, at) => {
      const by = { operator: at % 2 === 0 ? 'ada' : 'bola', action: 'Trading.PauseTrading', requestId: `r${at}` };
      return audit(by, firstAt + at * 1_000, { subject: `S${at % 10}`, detail: { reason: `=${at}, "why"` } });
    });
    await database.transaction([], () => ({ writes: entries, result: undefined }));
    const rows = await database.read(statement('SELECT id FROM audit_entries ORDER BY id'));
    ids = rows.map(({ id }) => Number(id));
  }

  /** Seals as a replica with these secrets, for some rounds. Answers how many batches were at fault in the last one. */
  async function seal(secrets = one): Promise<number | undefined> {
    const reports: number[] = [];
    const destination = { write: (line: string) => void logged.push(line) };
    const log = createLogger({ name: 'marina', level: 'info', destination });
    const parts = { database, clock: new TestClock(), log, holder: 'test', settleMs: 0, betweenRoundsMs: 5 };
    const worker = auditSealer({ ...parts, seals: sealsUnder(secrets), checked: (faulty) => reports.push(faulty) });
    return whileRunning(worker, async () => {
      await eventually(() => assert.ok(reports.length > 4, 'rounds go on'));
      return reports.at(-1);
    });
  }

  const verify = (secrets = one, afterBatch = 0n) =>
    auditProofCalls(database, sealsUnder(secrets)).verifyEntries(create(VerifyEntriesRequestSchema, { afterBatch }));
  const faults = async (secrets = one) => (await verify(secrets)).faults.map(({ batch, kind }) => `${batch} ${kind}`);

  async function exported(request: Parameters<typeof create<typeof ExportEntriesRequestSchema>>[1] = {}) {
    const { exportEntries } = auditProofCalls(database, sealsUnder(one));
    const signal = new AbortController().signal;
    let text = '';
    let last: { faults?: readonly { batch: bigint; kind: string }[]; complete?: boolean } = {};
    for await (const part of exportEntries(create(ExportEntriesRequestSchema, request), call, signal)) {
      text += 'text' in part ? part.text : '';
      if ('complete' in part) last = part;
    }
    return { text, lines: text.split(/\r?\n/).slice(0, -1), ...last };
  }

  it('seals of the audit are made in batches of at most 200 entries, and name nothing while all is as it was', async () => {
    assert.equal(await seal(), 0);
    const answer = await verify();
    assert.deepEqual(answer.faults, []);
    assert.deepEqual([answer.batches, answer.entries, answer.complete, answer.unsealed], [3, 450, true, 0]);
    assert.equal(Number(answer.lastId), ids.at(-1));
    await record(1);
    assert.equal((await verify()).unsealed, 1);
    assert.equal(await seal(), 0);
    assert.deepEqual([(await verify()).batches, (await verify()).entries], [4, 451]);
    assert.equal((await verify(one, 3n)).batches, 1);
    assert.ok(logged.some((line) => line.includes('entries of the audit are sealed') && line.includes('"hash"')));
  });

  for (const [kind, sql] of [
    ['changed', `UPDATE audit_entries SET detail = '{"reason":"another"}' WHERE id = ?`],
    ['changed', `UPDATE audit_entries SET operator = 'carl' WHERE id = ?`],
    ['changed', `UPDATE audit_entries SET client_address = '1.2.3.4' WHERE id = ?`],
    ['removed', 'DELETE FROM audit_entries WHERE id = ?'],
  ] as const) {
    it(`show the batch of an entry that was ${kind}: ${sql}`, async () => {
      await seal();
      await write(sql, ids[250] ?? 0);
      assert.deepEqual(await faults(), [`2 ${kind}`]);
      assert.equal(await seal(), 1);
      assert.match(logged.join(''), new RegExp(`"batch":2,"kind":"${kind}".*do not match their seal`));
    });
  }

  it('the batch of an entry is found by any of its entries, from the first to the last', async () => {
    await seal();
    const numbers = async (...places: number[]) =>
      Promise.all(places.map(async (at) => Number(await batchBefore(database, BigInt(ids[at] ?? 0)))));
    assert.deepEqual(await numbers(0, 1, 199), [0, 0, 0]);
    assert.deepEqual(await numbers(200, 201, 399), [1, 1, 1]);
    assert.deepEqual(await numbers(400, 449), [2, 2]);
    assert.equal(await batchBefore(database, BigInt(ids.at(-1) ?? 0) + 1n), 3n, 'no batch has it');
  });

  it('show the batch into which an entry was inserted', async () => {
    await write('DELETE FROM audit_entries WHERE id = ?', ids[100] ?? 0);
    await seal();
    assert.deepEqual(await faults(), []);
    await write(
      `INSERT INTO audit_entries (id, at, operator, action, detail) VALUES (?, NOW(3), 'ada', 'x', '{}')`,
      ids[100] ?? 0,
    );
    assert.deepEqual(await faults(), ['1 inserted']);
  });

  it('show a batch that is gone, and one that was sealed again without the secret', async () => {
    await seal();
    await write('DELETE FROM audit_seals WHERE number = 2');
    assert.deepEqual(await faults(), ['3 missing']);
    await write('DELETE FROM audit_seals');
    await write('DELETE FROM audit_entries WHERE id = ?', ids[250] ?? 0);
    // Whoever has the database and another secret makes the whole chain again.
    await seal(two);
    assert.deepEqual(await faults(one), ['3 unsealed']);
    assert.equal(await seal(one), 1, 'and no batch is put on top of it');
    assert.deepEqual((await verify(one)).batches, 3);
  });

  it('the audit is sealed anew when the secret changes, so that the former one can leave the ring', async () => {
    const needs = async () =>
      (await describeRing(database, parseKeyRing(`${two} ${one}`), firstAt)).filter((line) => /last seal/.test(line));
    await seal(one);
    assert.deepEqual(await needs(), [
      '  needed for the last seal of the audit, until a gateway renews it within two minutes',
    ]);
    assert.equal(await seal(`${two} ${one}`), 0);
    assert.deepEqual(await needs(), []);
    const { batches, faults: found } = await verify(two);
    assert.deepEqual([batches, found], [4, []]);
    await write(`UPDATE audit_entries SET action = 'y' WHERE id = ?`, ids[3] ?? 0);
    assert.deepEqual(await faults(two), ['1 changed'], 'the chain still stands for what the former secret sealed');
  });

  it('the audit goes to CSV with the state of each batch, and the last message names the batches that do not match', async () => {
    await seal();
    await record(1);
    const { lines, faults: none, complete } = await exported();
    assert.equal(lines.length, 452);
    assert.match(lines[0] ?? '', /^id,at,operator,roles,key_id,action,.*,batch,batch_state$/);
    assert.match(lines[1] ?? '', /^\d+,2026-03-02T00:00:00\.000Z,ada,.*,r0,,"\{""reason"":""=0, .*,1,right$/);
    assert.match(lines[451] ?? '', /,,not sealed yet$/);
    assert.deepEqual([none, complete], [[], true]);
    await write('DELETE FROM audit_entries WHERE id = ?', ids[250] ?? 0);
    const damaged = await exported({ operator: 'bola' });
    assert.deepEqual(
      damaged.faults?.map(({ batch, kind }) => [batch, kind]),
      [[2n, 'removed']],
      'also if the entry that is gone is of another operator',
    );
    assert.equal(damaged.lines.filter((line) => line.endsWith(',2,removed')).length, 100);
  });

  it('the audit goes to lines of JSON, by subject, operator and period', async () => {
    await seal();
    const [from, to] = [timestampFromMs(firstAt + 100_000), timestampFromMs(firstAt + 120_000)];
    const filter = { subject: 'S4', operator: 'ada', from, to, format: ExportFormat.JSON_LINES };
    const { lines } = await exported(filter);
    const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(
      entries.map(({ request_id: id, detail, batch }) => [id, detail, batch]),
      [
        ['r104', { reason: '=104, "why"' }, '1'],
        ['r114', { reason: '=114, "why"' }, '1'],
      ],
    );
    const later = timestampFromMs(firstAt + 9_000_000);
    assert.deepEqual((await exported({ from: later })).lines.length, 1, 'only the names of the columns');
    const gone = { from, to: timestampFromMs(firstAt + 130_000) };
    await write(
      'DELETE FROM audit_entries WHERE at >= ? AND at < ?',
      new Date(firstAt + 90_000),
      new Date(firstAt + 140_000),
    );
    const emptied = await exported(gone);
    assert.deepEqual([emptied.lines.length, emptied.faults?.map(({ kind }) => kind)], [1, ['removed']]);
    const all = await exported({ format: ExportFormat.JSON_LINES, action: 'Trading.PauseTrading' });
    assert.equal(all.lines.length, 400);
  });

  it('an export names a batch of which no entry is left at the end of the audit or of the period', async () => {
    await seal();
    const faultsOf = async (request: Parameters<typeof exported>[0]) =>
      (await exported(request)).faults?.map(({ batch, kind }) => `${batch} ${kind}`);
    const second = { to: timestampFromMs(firstAt + 400_000) };
    await write('DELETE FROM audit_entries WHERE id >= ?', ids[400] ?? 0);
    assert.deepEqual([await faultsOf({}), await faultsOf(second)], [['3 removed'], ['3 removed']]);
    await write('DELETE FROM audit_entries WHERE id >= ?', ids[200] ?? 0);
    assert.deepEqual(await faultsOf({}), ['2 removed', '3 removed']);
    const first = { to: timestampFromMs(firstAt + 100_000) };
    assert.deepEqual([await faultsOf(second), await faultsOf(first)], [['2 removed', '3 removed'], []]);
  });

  it('wait for an entry that is committed after one with a higher number', async () => {
    const parts = { database, clock: new TestClock(), seals: sealsUnder(one), holder: 'test', betweenRoundsMs: 5 };
    const rounds: number[] = [];
    const worker = auditSealer({
      ...parts,
      log: createLogger({ name: 'marina', level: 'silent' }),
      checked: (faulty) => rounds.push(faulty),
    });
    await whileRunning(worker, () => eventually(() => assert.ok(rounds.length > 4)));
    assert.equal((await verify()).batches, 0, 'the newest number must have been there for a minute');
  });
});
