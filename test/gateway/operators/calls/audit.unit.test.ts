/** The list of the audit's entries, and the entry of each read of money. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { auditService, readAuditor } from '../../../../src/gateway/operators/calls/audit.ts';
import type { Statement } from '../../../../src/gateway/store/statement.ts';
import { Audit, ListEntriesRequestSchema } from '../../../../src/gen/marina/admin/v1/audit_pb.ts';
import { Wallets } from '../../../../src/gen/marina/admin/v1/wallets_pb.ts';
import { entryOf } from '../../../support/audit-rows.ts';

const now = 1_000_000_000_000;

/** Lists entries. Answers what TypeORM was asked for, too. */
async function list(request: object, found = 0) {
  const asked: unknown[] = [];
  const note =
    (name: string) =>
    (...given: unknown[]) => {
      asked.push([name, ...given]);
      return query;
    };
  const query: Record<string, unknown> = {
    ...Object.fromEntries(['orderBy', 'take', 'andWhere', 'useIndex'].map((name) => [name, note(name)])),
    getMany: async () => Array.from({ length: found }, (_, at) => entryOf(100 - at, { was: 'w', became: 'b' })),
  };
  const database = { manage: (work: (manager: object) => unknown) => work({ createQueryBuilder: () => query }) };
  const { calls } = auditService({ database, clock: {} } as never, {} as never, {} as never);
  const listEntries = calls.listEntries as (
    asked: object,
  ) => Promise<{ entries: Record<string, unknown>[]; hasMore: boolean }>;
  return { asked, ...(await listEntries(create(ListEntriesRequestSchema, request))) };
}

describe('the list of entries of the audit', () => {
  it('entries are listed newest first, those that pass each filter', async () => {
    const [from, to] = [5_000, 6_000];
    const { asked } = await list({
      ...{ partnerId: 'par_a', subject: 'A1', operator: 'ada', action: 'X.Y', beforeId: 9n, limit: 3 },
      ...{ from: timestampFromMs(from), to: timestampFromMs(to) },
    });
    assert.deepEqual(asked, [
      ['orderBy', 'entry.id', 'DESC'],
      ['take', 4],
      ['andWhere', 'entry.partnerId = :partnerId', { partnerId: 'par_a' }],
      ['andWhere', 'entry.subject = :subject', { subject: 'A1' }],
      ['andWhere', 'entry.operator = :operator', { operator: 'ada' }],
      ['andWhere', 'entry.action = :action', { action: 'X.Y' }],
      ['useIndex', 'audit_entries_partner_id'],
      ['andWhere', 'entry.at >= :from', { from: new Date(from) }],
      ['andWhere', 'entry.at < :to', { to: new Date(to) }],
      ['andWhere', 'entry.id < :beforeId', { beforeId: '9' }],
    ]);
    assert.deepEqual((await list({})).asked, [
      ['orderBy', 'entry.id', 'DESC'],
      ['take', 26],
    ]);
  });

  it('a filter is read by its own index', async () => {
    for (const [request, index] of [
      [{ subject: 'A1', operator: 'ada' }, 'audit_entries_subject'],
      [{ operator: 'ada', action: 'X.Y' }, 'audit_entries_operator'],
      [{ action: 'X.Y' }, undefined],
    ] as const) {
      const used = (await list(request)).asked.find((each) => (each as string[])[0] === 'useIndex') as
        | string[]
        | undefined;
      assert.equal(used?.[1], index);
    }
  });

  it('an entry has the state before and after by their names, and a page says whether there are more', async () => {
    const { entries, hasMore } = await list({ limit: 2 }, 3);
    assert.deepEqual([entries.length, hasMore], [2, true]);
    const [entry] = entries;
    assert.deepEqual([entry?.before, entry?.after, entry?.was, entry?.id], ['w', 'b', undefined, 100n]);
    assert.equal((await list({ limit: 2 }, 2)).hasMore, false);
  });

  it('a period that ends before it begins is refused', async () => {
    const from = timestampFromMs(5_000);
    await assert.rejects(list({ from, to: from }), { param: 'to' });
    await assert.rejects(list({ from, to: timestampFromMs(4_999) }), { param: 'to' });
    assert.ok(await list({ from, to: timestampFromMs(5_001) }));
  });

  it('every call of the audit has its handler', () => {
    const { calls } = auditService({} as never, {} as never, {} as never);
    assert.deepEqual(Object.keys(calls).toSorted(), Audit.methods.map(({ localName }) => localName).toSorted());
  });
});

describe('the entry of a read of money', () => {
  it('a read of money is in the audit with whose it is and what was asked for, before it is answered', async () => {
    const { listCredits, listWallets } = Wallets.method;
    for (const [method, request, partnerId] of [
      [listCredits, create(listCredits.input, { partnerId: 'par_a', limit: 3 }), 'par_a'],
      [listWallets, create(listWallets.input, {}), null],
    ] as const) {
      const written: Statement[] = [];
      let isStored = false;
      const write = async (statement: Statement) => {
        written.push(statement);
        await new Promise(setImmediate);
        isStored = true;
      };
      const audited = readAuditor({ database: { write }, clock: { now: () => now } } as never);
      await audited(
        { operator: 'ada', action: 'Wallets.ListCredits', requestId: 'r', roles: ['read'] } as never,
        method,
        request,
      );
      assert.equal(isStored, true);
      const text = JSON.stringify(written[0]?.values);
      for (const part of ['ada', 'Wallets.ListCredits', new Date(now).toISOString(), '\\"asked\\"']) {
        assert.ok(text.includes(part), part);
      }
      assert.equal(text.includes('"par_a"'), partnerId !== null);
    }
  });
});
