/** How operators prove the audit and take it elsewhere, over entries and batches that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { auditProofCalls } from '../../../../src/gateway/operators/calls/audit-export.ts';
import type { StoredEntry } from '../../../../src/gateway/operators/calls/audit-period.ts';
import { longestStreamMs } from '../../../../src/gateway/operators/calls/call.ts';
import {
  ExportEntriesRequestSchema,
  ExportFormat,
  VerifyEntriesRequestSchema,
} from '../../../../src/gen/marina/admin/v1/audit_pb.ts';
import { auditRows, firstSecret, sealsUnder } from '../../../support/audit-rows.ts';

const seals = sealsUnder(firstSecret);
type Rows = ReturnType<typeof auditRows>;

const callsOf = ({ database }: Rows) => auditProofCalls(database as never, seals);
const verify = (rows: Rows, afterBatch = 0n) =>
  callsOf(rows).verifyEntries(create(VerifyEntriesRequestSchema, { afterBatch }));

interface Exported {
  readonly text: string;
  readonly faults: readonly string[];
  readonly complete: boolean;
}

async function exported(rows: Rows, request: object, calls = callsOf(rows)): Promise<Exported> {
  const asked = create(ExportEntriesRequestSchema, { format: ExportFormat.JSON_LINES, ...request });
  let text = '';
  let [faults, complete] = [[] as string[], false];
  for await (const part of calls.exportEntries(asked, {} as never, new AbortController().signal)) {
    if ('text' in part) text += part.text;
    else [faults, complete] = [part.faults.map(({ batch, kind }) => `${batch} ${kind}`), part.complete];
  }
  return { text, faults, complete };
}

const linesOf = ({ text }: Exported) =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const idsOf = (found: Exported) => linesOf(found).map(({ id }) => Number(id));

describe('the proof of the audit', () => {
  it('a call proves a hundred batches, and the next one goes on after them', async () => {
    for (const [count, after, batches, last, complete] of [
      [0, 0n, 0, 0n, true],
      [99, 0n, 99, 99n, true],
      [100, 0n, 100, 100n, true],
      [101, 0n, 100, 100n, false],
      [101, 100n, 1, 101n, true],
      [101, 101n, 0, 101n, true],
    ] as const) {
      const found = await verify(auditRows(Array(count).fill(1)), after);
      assert.deepEqual(
        [found.batches, found.lastBatch, found.complete],
        [batches, last, complete],
        `${count} ${after}`,
      );
    }
  });

  it('a proof tells how many entries it compared, how many are not sealed yet, and the end that it reached', async () => {
    const rows = auditRows([2, 0, 3], seals, { unsealed: 4 });
    const found = await verify(rows);
    assert.deepEqual([found.entries, found.unsealed, found.lastId, found.faults], [5, 4, 5n, []]);
    assert.deepEqual(found.lastHash, rows.batches[2]?.hash);
    rows.entries.splice(3, 1);
    const { faults, entries } = await verify(rows, 1n);
    assert.deepEqual([faults, entries], [[{ batch: 3n, kind: 'removed', firstId: 3n, lastId: 5n }], 3]);
    assert.equal((await verify(auditRows([], seals, { unsealed: 2 }))).unsealed, 2);
  });

  it('a proof after a batch that does not exist is refused', async () => {
    await assert.rejects(verify(auditRows([1, 1]), 3n), { status: status.NOT_FOUND });
    await assert.rejects(verify(auditRows([]), 1n), { status: status.NOT_FOUND });
  });

  it('one call at a time verifies the audit, and the next one may after it ended or failed', async () => {
    const calls = callsOf(auditRows([1]));
    const request = (afterBatch: bigint) => create(VerifyEntriesRequestSchema, { afterBatch });
    for (const afterBatch of [0n, 7n]) {
      const first = calls.verifyEntries(request(afterBatch)).catch((error: { status: status }) => error);
      await assert.rejects(calls.verifyEntries(request(0n)), { status: status.RESOURCE_EXHAUSTED });
      await first;
    }
    assert.equal((await calls.verifyEntries(request(0n))).batches, 1);
  });
});

describe('an export of the audit', () => {
  const change = (id: number): Partial<StoredEntry> => ({
    ...{ operator: id % 2 === 0 ? 'ada' : 'bola', partnerId: id % 3 === 0 ? 'par_a' : null },
    ...{ subject: id % 4 === 0 ? 'A1' : null, action: id % 5 === 0 ? 'Keys.RevokeKey' : 'Keys.CreateKey' },
  });

  it('the entries that pass each filter are exported, oldest first', async () => {
    const rows = auditRows([7, 200, 40], seals, { unsealed: 3, change });
    const all = Array.from({ length: 250 }, (_, at) => at + 1);
    for (const [request, isWanted] of [
      [{}, () => true],
      [{ operator: 'ada' }, (id: number) => id % 2 === 0],
      [{ partnerId: 'par_a' }, (id: number) => id % 3 === 0],
      [{ subject: 'A1' }, (id: number) => id % 4 === 0],
      [{ action: 'Keys.RevokeKey' }, (id: number) => id % 5 === 0],
      [{ operator: 'ada', partnerId: 'par_a' }, (id: number) => id % 6 === 0],
      [{ subject: 'A1', partnerId: 'par_a', action: 'Keys.RevokeKey' }, (id: number) => id % 60 === 0],
      [{ subject: 'A1', operator: 'bola' }, () => false],
      [{ from: timestampFromMs(10_000), to: timestampFromMs(20_000) }, (id: number) => id >= 10 && id < 20],
      [{ from: timestampFromMs(240_001) }, (id: number) => id > 240],
      [{ to: timestampFromMs(10_001) }, (id: number) => id <= 10],
    ] as const) {
      const found = await exported(rows, request);
      assert.deepEqual(
        [idsOf(found), found.faults, found.complete],
        [all.filter(isWanted), [], true],
        JSON.stringify(request, String),
      );
    }
  });

  it('a filter reads by the index that finds the fewest', async () => {
    for (const [request, index] of [
      [{}, 'PRIMARY'],
      [{ operator: 'ada' }, 'audit_entries_operator'],
      [{ operator: 'ada', partnerId: 'par_a' }, 'audit_entries_partner_id'],
      [{ operator: 'ada', partnerId: 'par_a', subject: 'A1' }, 'audit_entries_subject'],
    ] as const) {
      const rows = auditRows([9], seals, { change });
      await exported(rows, request);
      assert.ok(
        rows.database.asked.some(({ sql }) => sql.includes(`FORCE INDEX (${index})`) && sql.includes('LIMIT 200')),
        index,
      );
    }
  });

  it('an entry is exported with its batch and whether that matches, as CSV or as JSON', async () => {
    const rows = auditRows([1], seals, {
      unsealed: 1,
      change: () => ({
        detail: '{"a":1}',
        was: '{"b":2}',
        roles: 'read',
        keyId: 'key_a',
        requestId: 'r',
        clientAddress: 'c',
      }),
    });
    const [first, second] = linesOf(await exported(rows, {}));
    assert.deepEqual(first, {
      ...{ id: '1', at: '1970-01-01T00:00:01.000Z', operator: 'ada', roles: 'read', key_id: 'key_a' },
      ...{ action: 'Keys.CreateKey', partner_id: '', subject: '', request_id: 'r', client_address: 'c' },
      ...{ batch: '1', batch_state: 'right', detail: { a: 1 }, before: { b: 2 } },
    });
    assert.deepEqual([second?.batch, second?.batch_state], ['', 'not sealed yet']);
    for (const format of [ExportFormat.UNSPECIFIED, ExportFormat.CSV]) {
      const [head, row] = (await exported(rows, { format })).text.split(/\r?\n/);
      assert.equal(
        head,
        'id,at,operator,roles,key_id,action,partner_id,subject,request_id,client_address,detail,before,after,batch,batch_state',
      );
      assert.match(row ?? '', /^1,1970-01-01T00:00:01\.000Z,ada,read,key_a,Keys\.CreateKey,,,r,c,.*,1,right$/);
    }
    assert.equal((await exported(auditRows([]), { format: ExportFormat.CSV })).text.split('\n').length, 2, 'its head');
  });

  it('the faults of the batches of the period come at its end', async () => {
    const rows = auditRows([2, 2, 2], seals);
    rows.entries.splice(2, 1);
    const found = await exported(rows, {});
    assert.deepEqual([idsOf(found), found.faults], [[1, 2, 4, 5, 6], ['2 removed']]);
    assert.equal(linesOf(found)[2]?.batch_state, 'removed');
    assert.deepEqual((await exported(rows, { to: timestampFromMs(2_000) })).faults, []);
  });

  it('a period that ends before it begins, and a format that does not exist, are refused', async () => {
    const rows = auditRows([1]);
    const at = timestampFromMs(5_000);
    for (const to of [at, timestampFromMs(4_999)]) {
      await assert.rejects(exported(rows, { from: at, to }), { status: status.INVALID_ARGUMENT, param: 'to' });
    }
    await assert.rejects(exported(rows, { format: 99 }), { status: status.INVALID_ARGUMENT, param: 'format' });
  });

  it('one export at a time is under way, until it is read or left', async () => {
    const rows = auditRows([1]);
    const calls = callsOf(rows);
    const request = create(ExportEntriesRequestSchema, { format: ExportFormat.JSON_LINES });
    const first = calls.exportEntries(request, {} as never, new AbortController().signal);
    await first.next();
    await assert.rejects(exported(rows, {}, calls), { status: status.RESOURCE_EXHAUSTED });
    await first.return(undefined);
    assert.equal((await exported(rows, {}, calls)).complete, true);
  });

  it('an export that takes half an hour ends with an error, and one that is left ends at once', async (t) => {
    let at = 0;
    t.mock.method(performance, 'now', () => at);
    for (const [tookMs, ends] of [
      [longestStreamMs - 1, true],
      [longestStreamMs, false],
    ] as const) {
      at = 0;
      const rows = auditRows([1]);
      const parts = callsOf(rows).exportEntries(
        create(ExportEntriesRequestSchema, { format: ExportFormat.CSV }),
        {} as never,
        new AbortController().signal,
      );
      await parts.next();
      at = tookMs;
      if (ends) assert.ok((await parts.next()).value);
      else await assert.rejects(parts.next(), { status: status.DEADLINE_EXCEEDED });
    }
  });
});
