/** The list of unsettled objects, over objects that the test holds. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Cursors } from '../../../../../src/gateway/edge/paging.ts';
import {
  UnsettledPages,
  type UnsettledWord,
  unsettledCalls,
  unsettledKinds,
} from '../../../../../src/gateway/operators/calls/diagnostics/unsettled.ts';
import type { SqlRow, Statement } from '../../../../../src/gateway/store/statement.ts';
import { UnsettledKind } from '../../../../../src/gen/marina/admin/v1/diagnostics_pb.ts';
import { fc } from '../../../../support/properties.ts';

const [now, realNow] = [1_000_000, 500_000];
const cursors = new Cursors({ all: [{ id: 'k', key: Buffer.alloc(32, 1) }] } as never);

interface Unsettled {
  readonly kind: UnsettledWord;
  readonly position: string;
  readonly partnerId: string;
  readonly createdAt: number;
  readonly more?: SqlRow;
}

/** The kind that a statement reads. */
function kindOf(sql: string): UnsettledWord | undefined {
  if (sql.includes('FROM open_cancels')) return 'cancel';
  if (sql.includes('STRAIGHT_JOIN documents')) return 'document';
  const [, table = ''] = /FROM (\w+) o FORCE INDEX/.exec(sql) ?? [];
  return unsettledKinds.find((kind) => `${kind}s` === table);
}

/** A database that answers each statement by its conditions. */
function databaseOf(stored: readonly Unsettled[]) {
  const answer = ({ sql, values }: Statement): SqlRow[] => {
    const kind = kindOf(sql);
    if (kind === undefined) return [];
    const given = [...values];
    const conditions = sql.slice(sql.lastIndexOf('WHERE'));
    const tests = [...conditions.matchAll(/(=|<=|>) \?/g)].map(([, comparison]) => {
      const value = given.shift();
      return ({ partnerId, position, createdAt }: Unsettled) => {
        if (comparison === '=') return partnerId === value;
        return comparison === '<=' ? createdAt <= (value as Date).getTime() : position > String(value);
      };
    });
    assert.deepEqual(given, []);
    const found = stored.filter((one) => one.kind === kind && tests.every((passes) => passes(one)));
    return found
      .toSorted((one, other) => (one.position < other.position ? -1 : 1))
      .slice(0, Number(/LIMIT (\d+)$/.exec(sql)?.[1]))
      .map(({ partnerId, position, createdAt, more }) => {
        const [id = ''] = position.split(' ');
        return { partner_id: partnerId, id, position, created_at: new Date(createdAt), until_at: null, ...more };
      });
  };
  return { readAll: async (queries: readonly Statement[]) => queries.map(answer) };
}

it('pages of any size show each unsettled object once, kind by kind, and those of one partner or age alone', async () => {
  const made = fc.record({
    kind: fc.constantFrom(...unsettledKinds),
    place: fc.constantFrom('a', 'b', 'c', 'd'),
    partnerId: fc.constantFrom('par_a', 'par_b'),
    createdAt: fc.integer({ min: 0, max: 3 }),
  });
  const asked = {
    stored: fc.uniqueArray(made, { maxLength: 16, selector: ({ kind, place }) => `${kind} ${place}` }),
    partnerId: fc.constantFrom(undefined, 'par_a'),
    until: fc.constantFrom(undefined, 2),
    size: fc.integer({ min: 1, max: 5 }),
  };
  await fc.assert(
    fc.asyncProperty(fc.record(asked), async ({ stored, partnerId, until, size }) => {
      const all = stored.map(({ place, ...one }) => {
        return { ...one, position: one.kind === 'document' ? `app_${place} identity ${place}` : `obj_${place}` };
      });
      const pages = new UnsettledPages(databaseOf(all) as never, cursors);
      const seen: string[] = [];
      for (let cursor = ''; ; ) {
        const { data, nextCursor } = await pages.read('list', unsettledKinds, { partnerId, until }, cursor, size);
        seen.push(...data.map(({ kind, row }) => `${kind} ${row.position}`));
        assert.ok(data.length <= size && seen.length <= all.length);
        if (nextCursor === undefined) break;
        assert.equal(data.length, size);
        cursor = nextCursor;
      }
      const wanted = all.filter(
        (one) => (partnerId ?? one.partnerId) === one.partnerId && one.createdAt <= (until ?? one.createdAt),
      );
      const inOrder = unsettledKinds.flatMap((kind) =>
        wanted
          .filter((one) => one.kind === kind)
          .map(({ position }) => `${kind} ${position}`)
          .toSorted(),
      );
      assert.deepEqual(seen, inOrder);
    }),
    { numRuns: 150 },
  );
});

it('a cursor of unsettled objects is one of the same list, kinds and partner', async () => {
  const objects = ['a', 'b'].map((id) => ({ kind: 'order', position: id, partnerId: 'par_a', createdAt: 1 }) as const);
  const pages = new UnsettledPages(databaseOf(objects) as never, cursors);
  const { nextCursor = '' } = await pages.read('list', ['order', 'cancel'], {}, '', 1);
  assert.equal((await pages.read('list', ['order', 'cancel'], { until: 5 }, nextCursor, 1)).data.length, 1);
  for (const [list, kinds, filter] of [
    ['other', ['order', 'cancel'], {}],
    ['list', ['order'], {}],
    ['list', ['order', 'cancel'], { partnerId: 'par_a' }],
  ] as const) {
    await assert.rejects(pages.read(list, kinds, filter, nextCursor, 1), /was not issued for this list/);
  }
});

/** The list of what is stored. */
async function listed(stored: readonly Unsettled[], request: object = {}) {
  const database = databaseOf(stored);
  const clock = { now: () => now, realNow: () => realNow };
  const pages = new UnsettledPages(database as never, cursors);
  const { listUnsettled } = unsettledCalls(database as never, pages, clock);
  const asked = { kind: 0, partnerId: '', olderThanSeconds: 0n, cursor: '', limit: 0, ...request };
  return (await listUnsettled(asked as never, {} as never)) as unknown as {
    objects: readonly Record<string, unknown>[];
  };
}

it('an unsettled cancel or document is being sent until its time is over, in real time, unless it is known to be unconfirmed', async () => {
  for (const kind of ['cancel', 'document'] as const) {
    for (const [untilAt, state, shown] of [
      [realNow + 1, undefined, 'sending'],
      [realNow, undefined, 'unconfirmed'],
      [realNow + 1, 'unconfirmed', 'unconfirmed'],
      [null, undefined, 'unconfirmed'],
    ] as const) {
      const more = { until_at: untilAt === null ? null : new Date(untilAt), ...(state === undefined ? {} : { state }) };
      const { objects } = await listed([
        { kind, position: 'obj_a type', partnerId: 'par_a', createdAt: now - 5, more },
      ]);
      assert.deepEqual([objects[0]?.state, objects[0]?.ageMs], [shown, 5], `${kind} ${untilAt} ${state}`);
    }
  }
  const more = { until_at: new Date(realNow + 1), state: 'uncertain' };
  const { objects } = await listed([
    { kind: 'order', position: 'obj_a', partnerId: 'par_a', createdAt: now + 5, more },
  ]);
  assert.deepEqual([objects[0]?.state, objects[0]?.ageMs], ['uncertain', 0], 'another clock was ahead');
});

it('an acknowledgement of an unsettled object is shown while it is in force, in real time', async () => {
  for (const [endsAt, by] of [
    [realNow + 1, 'ada'],
    [realNow, undefined],
    [null, undefined],
  ] as const) {
    const until = endsAt === null ? null : new Date(endsAt);
    const more = { state: 'uncertain', acknowledged_by: 'ada', acknowledged_reason: 'why', acknowledged_until: until };
    const { objects } = await listed([{ kind: 'order', position: 'obj_a', partnerId: 'par_a', createdAt: 1, more }]);
    assert.equal(objects[0]?.acknowledgedBy, by);
  }
});

it('unsettled objects are listed by an age of whole seconds in business time, and by kind', async () => {
  const stored = [now - 3_000, now - 2_999].map((createdAt, at) => {
    return {
      kind: 'order',
      position: `obj_${at}`,
      partnerId: 'par_a',
      createdAt,
      more: { state: 'uncertain' },
    } as const;
  });
  const ids = async (request: object) => (await listed(stored, request)).objects.map(({ id }) => id);
  assert.deepEqual(await ids({ olderThanSeconds: 3n }), ['obj_0']);
  assert.deepEqual(await ids({}), ['obj_0', 'obj_1']);
  assert.deepEqual(await ids({ kind: UnsettledKind.ORDER }), ['obj_0', 'obj_1']);
  assert.deepEqual(await ids({ kind: UnsettledKind.CANCEL }), []);
});
