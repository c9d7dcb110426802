import type { SeededBug } from '../fault/seeded-bugs.ts';

const folder = 'src/gateway/operators/calls/account-export';
const lines = 'test/gateway/operators/calls/account-export/lines.integration.test.ts';

/** Bugs by which a regulator gets too little about an account, or something of another one. */
export const accountExportBugs: readonly SeededBug[] = [
  {
    name: 'an order that only a cancel was sent for is missing in the export of its account',
    file: `${folder}/objects.ts`,
    find: 'return rows.filter((row) => isLate(row.updated_at) || stepped.has(row));',
    replace: 'return rows.filter((row) => isLate(row.updated_at) && !stepped.has(row));',
    test: lines,
    pattern: 'that a cancel left as it was',
  },
  {
    name: 'a stop of a partner that no longer had the account is shown as one of the account',
    file: `${folder}/links.ts`,
    find: '(link.from ?? 0) < until && (link.until ?? Number.POSITIVE_INFINITY) > from',
    replace: 'from < until',
    test: lines,
    pattern: 'partners that had the account come with when',
  },
  {
    name: 'an entry is exported because its reason names an object of the account',
    file: `${folder}/entries.ts`,
    find: 'return freeTexts.has(key) ? [] : [[key, value]];',
    replace: 'return [[key, value]];',
    test: lines,
    pattern: 'not because a reason does',
  },
  {
    name: 'an entry that was removed at the end of the days is not noticed',
    file: 'src/gateway/operators/calls/audit-period.ts',
    find: 'while (batch !== undefined && batch.lastId < around.after && !signal.aborted)',
    replace: 'while (batch !== undefined && batch.lastId < 0n && !signal.aborted)',
    test: lines,
    pattern: 'that was changed or removed',
  },
];
