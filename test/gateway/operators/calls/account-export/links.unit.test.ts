/** Which partners had an account, and when, by the audit and by the table of accounts. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { auditEntries } from '../../../../../src/gateway/edge/auth/audit-store.ts';
import {
  type AccountLink,
  hadIt,
  linkLine,
  readLinks,
} from '../../../../../src/gateway/operators/calls/account-export/links.ts';
import type { SqlRow, Statement } from '../../../../../src/gateway/store/statement.ts';
import { accounts } from '../../../../../src/gateway/trading/accounts/store.ts';
import { storedRow } from '../../../../support/stored-row.ts';

type Entry = readonly [action: string, partnerId: string | null, at: number, was?: string];

/** The links of an account that some entries of the audit are about, and that a partner may have now. */
function linksOf(
  entries: readonly Entry[],
  now?: { readonly partnerId: string; readonly createdAt: number; readonly applicationId: string | null },
): Promise<AccountLink[]> {
  const rows = entries.map(([action, partnerId, at, was = null], index) =>
    storedRow(auditEntries, {
      ...{
        id: BigInt(index + 1),
        at,
        operator: `op-${index + 1}`,
        action,
        subject: 'A1',
        detail: '{}',
        partnerId,
        was,
      },
      ...{ became: null, requestId: null, clientAddress: null, roles: null, keyId: null },
    }),
  );
  const database = {
    read: async ({ sql, values }: Statement): Promise<SqlRow[]> => {
      const [subject, after, last] = values;
      assert.deepEqual([subject, last], ['A1', 2n ** 63n - 1n]);
      const most = Number(/LIMIT (\d+)/.exec(sql)?.[1]);
      return rows.filter(({ id }) => BigInt(String(id)) > BigInt(String(after))).slice(0, most);
    },
    transaction: async (_: unknown, decide: (rows: SqlRow[][]) => { result: unknown }) =>
      decide([now === undefined ? [] : [storedRow(accounts, { account: 'A1', ...now } as never)]]).result,
  };
  return readLinks(database as never, 'A1');
}

const link = 'Accounts.LinkAccount';
const unlink = 'Accounts.UnlinkAccount';
const shown = (links: readonly AccountLink[]) =>
  links.map(({ partnerId, from, until, application, linkedBy, unlinkedBy }) =>
    [partnerId, from, until, application, linkedBy, unlinkedBy].join(' '),
  );

it('the links of an account are those of the audit in their order, and the one that holds now', async () => {
  const was = JSON.stringify({ createdAt: new Date(5).toISOString(), application: 'app_a' });
  const histories: readonly (readonly [string, Parameters<typeof linksOf>, readonly string[]])[] = [
    ['nobody has it', [[]], []],
    ['an application opened it', [[], { partnerId: 'a', createdAt: 3, applicationId: 'app' }], ['a 3  app  ']],
    [
      'linked, and still so',
      [[[link, 'a', 3]], { partnerId: 'a', createdAt: 2, applicationId: null }],
      ['a 2   op-1 '],
    ],
    ['linked, and gone without an entry', [[[link, 'a', 3]]], ['a 3   op-1 ']],
    [
      'linked and unlinked',
      [
        [
          [link, 'a', 3],
          [unlink, 'a', 9, was],
        ],
      ],
      ['a 5 9 app_a op-1 op-2'],
    ],
    [
      'unlinked, as an earlier version says it',
      [
        [
          [link, 'a', 3],
          [unlink, 'a', 9],
        ],
      ],
      ['a 3 9  op-1 op-2'],
    ],
    ['unlinked, and the entry of its begin is missing', [[[unlink, 'a', 9]]], ['a  9   op-1']],
    [
      'the entry of an end is missing',
      [
        [
          [link, 'a', 3],
          [link, 'b', 6],
        ],
      ],
      ['a 3   op-1 ', 'b 6   op-2 '],
    ],
    [
      'another one was unlinked',
      [
        [
          [link, 'a', 3],
          [unlink, 'b', 9],
        ],
      ],
      ['a 3   op-1 ', 'b  9   op-2'],
    ],
    [
      'it went to another partner, and back',
      [
        [
          [link, 'a', 3],
          [unlink, 'a', 4],
          [link, 'b', 5],
          [unlink, 'b', 6],
          [link, 'a', 7],
        ],
        { partnerId: 'a', createdAt: 7, applicationId: null },
      ],
      ['a 3 4  op-1 op-2', 'b 5 6  op-3 op-4', 'a 7   op-5 '],
    ],
    [
      'the audit names another than has it',
      [[[link, 'a', 3]], { partnerId: 'b', createdAt: 8, applicationId: 'app' }],
      ['a 3   op-1 ', 'b 8  app  '],
    ],
    [
      'other entries about it',
      [
        [
          ['Accounts.LookUpAccount', null, 1],
          [link, null, 2],
          ['Accounts.LookUpAccount', 'a', 3],
        ],
      ],
      [],
    ],
  ];
  for (const [what, history, links] of histories) assert.deepEqual(shown(await linksOf(...history)), links, what);
});

it('all entries about an account are read, however many they are', async () => {
  const reads = (count: number): Entry[] => Array.from({ length: count }, () => ['Accounts.LookUpAccount', null, 1]);
  for (const count of [198, 199, 200, 399, 400]) {
    assert.deepEqual(shown(await linksOf([...reads(count), [link, 'a', 3]])), [`a 3   op-${count + 1} `], `${count}`);
  }
});

it('a partner had an account from the begin of a link on, and before its end', () => {
  const of = (from: number | null, until: number | null) => [
    { partnerId: 'a', from, until, application: null, linkedBy: null, unlinkedBy: null },
  ];
  for (const [links, from, until, had] of [
    [of(10, 20), 19, 30, true],
    [of(10, 20), 20, 30, false],
    [of(10, 20), 5, 10, false],
    [of(10, 20), 5, 11, true],
    [of(null, 20), 0, 1, true],
    [of(10, null), 500, 501, true],
  ] as const) {
    assert.equal(hadIt(links, 'a', from, until), had, `${from} to ${until}`);
    assert.equal(hadIt(links, 'b', from, until), false);
  }
  const [one] = of(null, 20);
  assert.ok(one);
  assert.deepEqual(linkLine(one), {
    ...{ line: 'partner', partner_id: 'a', from: null, until: new Date(20).toISOString() },
    ...{ application: null, linked_by: null, unlinked_by: null },
  });
});
