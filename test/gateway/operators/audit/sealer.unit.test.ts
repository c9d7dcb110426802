import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { auditEntries } from '../../../../src/gateway/edge/auth/audit-store.ts';
import type { AuditBatch } from '../../../../src/gateway/operators/audit/rules.ts';
import { auditSealer } from '../../../../src/gateway/operators/audit/sealer.ts';
import { AuditSeals, auditSealUse } from '../../../../src/gateway/operators/audit/seals.ts';
import { auditSeals } from '../../../../src/gateway/operators/audit/table.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import type { Decision, SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { keysFor, parseKeyRing } from '../../../../src/kit/key-ring.ts';
import type { Logger } from '../../../../src/kit/log.ts';
import { fixed } from '../../../../src/kit/watched-files.ts';
import { startWorker } from '../../../support/database.ts';
import { storedRow } from '../../../support/stored-row.ts';

const settleMs = 60_000;

const [first, next] = ['ab'.repeat(32), 'cd'.repeat(32)];
const sealsUnder = (...secrets: readonly string[]) =>
  new AuditSeals(keysFor(fixed(parseKeyRing(secrets.join('\n'))), auditSealUse), 'live');

function entry(id: number): SqlRow {
  const none = { subject: null, partnerId: null, was: null, became: null, requestId: null, clientAddress: null };
  const call = { operator: 'ada', action: 'Keys.CreateKey', detail: `${id}`, roles: null, keyId: null };
  return storedRow(auditEntries, { id: BigInt(id), at: 0, ...none, ...call } as never);
}

/** A sealer of an audit in memory, which goes on round by round. */
function startSealer(t: TestContext) {
  const clock = { ms: 100_000 };
  t.mock.method(performance, 'now', () => clock.ms);
  const entries: SqlRow[] = [];
  const sealed: SqlRow[] = [];
  const state = { holdsLease: true, beforeSealing: () => {}, seals: sealsUnder(first) };
  const newest = () => [...sealed].sort((one, other) => Number(other.number) - Number(one.number));
  const find = ({ sql, values: [first, last] }: Statement): SqlRow[] => {
    const most = Number(/LIMIT (\d+)/.exec(sql)?.[1] ?? 1);
    const isAfter = (value: unknown) => Number(value) > Number(first);
    if (sql.includes('FROM leases')) return state.holdsLease ? [{ fence: 1 }] : [];
    if (sql.includes('MAX(id)')) return [{ id: entries.at(-1)?.id ?? null }];
    if (sql.includes('FROM audit_entries'))
      return entries.filter(({ id }) => isAfter(id) && Number(id) <= Number(last)).slice(0, most);
    if (sql.includes('number > ?'))
      return newest()
        .reverse()
        .filter(({ number }) => isAfter(number))
        .slice(0, most);
    if (sql.includes('number = ?')) return sealed.filter(({ number }) => Number(number) === Number(first));
    return newest().slice(0, 1);
  };
  let isPaused = true;
  let goOn = () => {};
  let ended = () => {};
  const database = {
    async read(query: Statement) {
      if (isPaused) {
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
      }
      return find(query);
    },
    async transaction(reads: readonly Statement[], decide: (rows: SqlRow[][]) => Decision<unknown>) {
      if (reads[0]?.sql.includes('INSERT IGNORE INTO leases')) return 1n;
      state.beforeSealing();
      const { writes, result } = decide(reads.map(find));
      for (const { values } of writes) {
        for (const row of values[0] as readonly unknown[][]) {
          sealed.push(
            storedRow(auditSeals, Object.fromEntries(auditSeals.fields.map((field, at) => [field, row[at]])) as never),
          );
        }
      }
      return result;
    },
    write: async () => 1,
  };
  const logged: unknown[] = [];
  const counts: number[] = [];
  const log = {
    info: () => {},
    error: ({ batch, kind }: { batch: number; kind: string }) => void logged.push(`${batch} ${kind}`),
  };
  const worker = auditSealer({
    ...{
      database: database as unknown as Database,
      clock: { now: () => 0, realNow: () => 0 },
      holder: 'test',
      settleMs,
    },
    seals: {
      make: (batch: AuditBatch) => state.seals.make(batch),
      prove: (batch: AuditBatch, seal: Buffer) => state.seals.prove(batch, seal),
      isCurrent: (seal: Buffer) => state.seals.isCurrent(seal),
    } as AuditSeals,
    log: log as unknown as Logger,
    checked(faulty) {
      counts.push(faulty);
      isPaused = true;
      ended();
    },
    betweenRoundsMs: 1,
  });
  const stopped = startWorker(worker);
  t.after(async () => {
    const stopping = stopped();
    isPaused = false;
    goOn();
    await stopping;
    assert.equal(counts.at(-1), 0, 'another process reports faults from now on');
  });
  const goRound = async () => {
    const over = new Promise<void>((resolve) => {
      ended = resolve;
    });
    isPaused = false;
    goOn();
    await over;
  };
  /** Lets the round go on that waits, and then one after so many milliseconds. Returns how many batches there are. */
  const round = async (afterMs = 0) => {
    clock.ms += afterMs;
    await goRound();
    await goRound();
    return sealed.length;
  };
  const add = (count: number) => {
    for (let at = 0; at < count; at += 1) entries.push(entry(entries.length + 1));
  };
  /** Adds entries, and seals them as batches of one each. */
  const sealEach = async (count: number) => {
    // A lease that is being taken must not run out.
    await round();
    for (let at = 0; at < count; at += 1) {
      add(1);
      await round(settleMs);
      await round(settleMs);
    }
  };
  return { state, entries, sealed, logged, counts, round, add, sealEach };
}

describe('the sealer of the audit', () => {
  it('entries are sealed once the newest of them was there for a minute, in batches of 200', async (t) => {
    const { sealed, round, add } = startSealer(t);
    add(401);
    assert.deepEqual([await round(), await round(settleMs - 1)], [0, 0]);
    add(1);
    assert.equal(await round(1), 3);
    assert.deepEqual(
      sealed.map(({ last_id: id }) => Number(id)),
      [200, 400, 401],
      'the later one waits',
    );
    assert.deepEqual([await round(settleMs - 1), await round(1)], [3, 4]);
    assert.equal(await round(settleMs), 4, 'nothing is new');
  });

  it('nothing is sealed by a process that lost the lease, on another end of the chain, or on one that no gateway sealed', async (t) => {
    const { state, sealed, round, add, sealEach } = startSealer(t);
    await sealEach(1);
    add(1);
    await round(settleMs);
    state.holdsLease = false;
    assert.equal(await round(settleMs), 1);
    state.holdsLease = true;
    const sealHere = (batch: AuditBatch) => {
      const row = { ...batch, seal: state.seals.make(batch), sealedAt: 0 };
      sealed.push(storedRow(auditSeals, row));
    };
    state.beforeSealing = () => {
      state.beforeSealing = () => {};
      sealHere({ number: 2n, firstId: 2n, lastId: 2n, entries: 1, hash: Buffer.alloc(32) });
    };
    assert.equal(await round(settleMs), 2, 'another process has sealed meanwhile');
    add(1);
    await round(settleMs);
    Object.assign(sealed[1] ?? {}, { seal: sealed[0]?.seal });
    assert.equal(await round(settleMs), 2, 'the last seal is one of another batch');
  });

  it('the end of the chain is sealed anew with a new secret once, also without a new entry', async (t) => {
    const { state, sealed, logged, round, sealEach } = startSealer(t);
    await sealEach(1);
    state.seals = sealsUnder(next, first);
    assert.equal(await round(settleMs), 2);
    assert.equal(Number(sealed[1]?.entries), 0);
    assert.deepEqual([await round(settleMs), await round(settleMs)], [2, 2]);
    assert.deepEqual(logged, []);
    state.seals = sealsUnder('ef'.repeat(32));
    assert.equal(await round(settleMs), 2);
    assert.deepEqual(logged, ['2 unsealed'], 'nobody can prove the end of the chain any more');
  });

  it('twenty batches are checked in a round, again and again, and a fault is told once and counted until it is mended', async (t) => {
    const { entries, logged, counts, round, sealEach } = startSealer(t);
    await sealEach(25);
    const [second, last] = [entries[1], entries[24]] as [SqlRow, SqlRow];
    const details = [second.detail, last.detail];
    second.detail = 'another';
    last.detail = 'another';
    for (let rounds = 0; rounds < 3; rounds += 1) await round();
    assert.equal(counts.at(-1), 2);
    assert.deepEqual([...logged].sort(), ['2 changed', '25 changed'], 'once each');
    [second.detail, last.detail] = details;
    for (let rounds = 0; rounds < 2; rounds += 1) await round();
    assert.equal(counts.at(-1), 0);
    second.detail = 'another';
    for (let rounds = 0; rounds < 2; rounds += 1) await round();
    assert.deepEqual([counts.at(-1), logged.length], [1, 3], 'it is told again');
  });
});
