/** Seals of API keys, wallets and webhook secrets that are made, made again and counted, over rows that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { newEndpoint } from '../../../../src/gateway/delivery/webhooks/plan/endpoint-store.ts';
import { endpoints } from '../../../../src/gateway/delivery/webhooks/table.ts';
import { KeySeals, keySealUse, type SealedKey } from '../../../../src/gateway/edge/auth/key-seals.ts';
import { apiKeys } from '../../../../src/gateway/edge/auth/store.ts';
import { readKeyOrigin } from '../../../../src/gateway/operators/secret-keys/key-origin.ts';
import { reseal } from '../../../../src/gateway/operators/secret-keys/reseal.ts';
import { webhookSeal } from '../../../../src/gateway/operators/secret-keys/sealed-endpoints.ts';
import { countKeySeals, sealKeys } from '../../../../src/gateway/operators/secret-keys/sealed-keys.ts';
import { countWalletSeals, sealWallets } from '../../../../src/gateway/operators/secret-keys/sealed-wallets.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import type { LedgerHead } from '../../../../src/gateway/trading/wallet/rules.ts';
import { transfers, WalletSeals, walletSealUse, wallets } from '../../../../src/gateway/trading/wallet/store.ts';
import { type KeyRing, keysFor, parseKeyRing } from '../../../../src/kit/key-ring.ts';
import { fixed } from '../../../../src/kit/watched-files.ts';
import { storedRow } from '../../../support/stored-row.ts';

const [current, former, foreign] = ['11', '22', '33'].map((pair) => parseKeyRing(pair.repeat(32))) as [
  KeyRing,
  KeyRing,
  KeyRing,
];
const ring: KeyRing = [current[0], former[0]];
const environment = 'sandbox';

const keyOf = (id: string): SealedKey => {
  return { partnerId: 'par_a', id, secretHash: Buffer.alloc(32, 5), scopes: 'trade', addresses: '[]' };
};
const keySeal = (by: KeyRing, key: SealedKey) =>
  new KeySeals(keysFor(fixed(by), keySealUse), environment as never, true).make(key);
const headOf = (partnerId: string, lastSequence: bigint): LedgerHead => ({
  ...{ partnerId, lastSequence, lastHash: Buffer.alloc(32, Number(lastSequence)) },
  ...{ availableKobo: lastSequence, reservedKobo: 0n, postedKobo: 0n },
});
const walletSeal = (by: KeyRing, head: LedgerHead) =>
  new WalletSeals(keysFor(fixed(by), walletSealUse), environment as never, true).make(head);

/** Tables in memory. An UPDATE changes the rows that fulfil all of its conditions. */
class Rows {
  readonly tables: Record<string, SqlRow[]> = {
    api_keys: [],
    wallets: [],
    wallet_transfers: [],
    webhook_endpoints: [],
  };
  uses: string[] = [];
  /** Entries of the audit about each key. */
  readonly entries: Record<string, SqlRow[]> = {};
  readonly changes: Record<string, SqlRow[]> = {};
  readonly printed: string[] = [];
  /** Called before a write, as something that changes rows meanwhile. */
  meanwhile = () => {};

  key(key: SealedKey, seal: Buffer | null): void {
    const more = { createdAt: 1, revokedAt: null, hasMac: true, macKey: null, seal };
    this.tables.api_keys?.push(storedRow(apiKeys, { ...key, ...more }));
  }

  wallet(head: LedgerHead, seal: Buffer | null): void {
    this.tables.wallets?.push(storedRow(wallets, { ...head, withdrawnKobo: 0n, seal }));
  }

  /** An entry of a ledger, which is all of its end then. */
  entry({ partnerId, lastSequence, lastHash, ...sums }: LedgerHead): void {
    const { availableKobo: availableAfterKobo, reservedKobo: reservedAfterKobo, postedKobo: postedAfterKobo } = sums;
    const nothing = Object.fromEntries(transfers.fields.map((field) => [field, null]));
    const after = { availableAfterKobo, reservedAfterKobo, postedAfterKobo };
    const row = {
      ...nothing,
      ...after,
      partnerId,
      sequence: lastSequence,
      hash: lastHash,
      type: 'credit',
      createdAt: 1,
    };
    this.tables.wallet_transfers?.push(storedRow(transfers, row as never));
  }

  endpoint(partnerId: string, secret: Buffer, oldSecret: Buffer | null): void {
    const made = newEndpoint({ partnerId, url: 'u', secret, afterVersion: 0n, registeredAt: 1 });
    this.tables.webhook_endpoints?.push(storedRow(endpoints, { ...made, oldSecret }));
  }

  #answer({ sql, values }: Statement): SqlRow[] {
    if (sql.includes('FROM secret_keys')) {
      return this.uses.map((id) => ({ id, first_used_at: new Date(1), last_used_at: new Date(2) }));
    }
    if (sql.includes('FROM audit_entries')) return this.entries[String(values[0])] ?? [];
    if (sql.includes('FROM key_changes')) return this.changes[String(values[1])] ?? [];
    const [, table = ''] = /FROM (\w+)/.exec(sql) ?? [];
    const rows = this.tables[table] ?? [];
    if (table === 'wallet_transfers') {
      return rows.filter((row) => row.partner_id === values[0] && String(row.sequence) === String(values[1]));
    }
    if (sql.includes('partner_id = ?')) return rows.filter((row) => row.partner_id === values[0]);
    const name = sql.includes('partner_id > ?') ? 'partner_id' : 'id';
    const hasMac = (row: SqlRow) => !sql.includes('has_mac = 1') || row.has_mac === true;
    return rows
      .filter((row) => String(row[name]) > String(values[0]) && hasMac(row))
      .toSorted((one, other) => (String(one[name]) < String(other[name]) ? -1 : 1))
      .slice(0, 200);
  }

  readonly database = {
    environment,
    read: async (query: Statement) => this.#answer(query).map((row) => ({ ...row })),
    readAll: async (queries: readonly Statement[]) => queries.map((query) => this.#answer(query)),
    write: async ({ sql, values }: Statement) => {
      this.meanwhile();
      if (sql.includes('SET has_mac = 0')) {
        const [ids, macKey] = [[values[0]].flat(), values[1]];
        const isOther = ({ mac_key: key }: SqlRow) => (key === null ? sql.includes('mac_key IS NULL') : key !== macKey);
        const found = (this.tables.api_keys ?? []).filter((row) => ids.includes(String(row.id)) && isOther(row));
        for (const row of found) row.has_mac = false;
        return found.length;
      }
      const [, table = '', sets = '', where = ''] = /^UPDATE (\w+) SET (.*) WHERE (.*)$/.exec(sql) ?? [];
      const given = [...values];
      const set = sets.split(', ').map((one) => [one.split(' ')[0] ?? '', given.shift()] as const);
      const conditions = where.split(' AND ').map((one) => {
        const [name = ''] = one.split(' ');
        return [name, one.endsWith('IS NULL') ? null : given.shift()] as const;
      });
      const isSame = (stored: unknown, value: unknown) =>
        stored instanceof Buffer && value instanceof Buffer ? stored.equals(value) : String(stored) === String(value);
      const found = (this.tables[table] ?? []).filter((row) =>
        conditions.every(([name, value]) => isSame(row[name], value)),
      );
      for (const row of found) for (const [name, value] of set) row[name] = value;
      return found.length;
    },
  };

  get options() {
    const print = (line: string) => void this.printed.push(line);
    return { database: this.database as never, ring, print, acceptsUnsealed: true };
  }

  /** The last printed line that begins so. */
  line(start: string): string | undefined {
    return this.printed.findLast((line) => line.startsWith(start));
  }

  sealOf(table: string, id: string, column = 'seal'): unknown {
    return this.tables[table]?.find((row) => row.id === id || row.partner_id === id)?.[column];
  }
}

const made = (became: unknown) => ({ operator: 'ada', became: became === null ? null : JSON.stringify(became) });

describe('the origin of an API key', () => {
  const originOf = (entries: SqlRow[], changes: SqlRow[] = [], key: Partial<SealedKey> = {}) => {
    const database = { readAll: async () => [entries, changes] };
    return readKeyOrigin(database as never, { ...keyOf('key_a'), ...key });
  };

  it('the origin of an API key is the operator of its one entry in the audit, or the key that made it', async () => {
    const other = [{ by_key_id: 'key_b' }];
    for (const [entries, changes, madeBy] of [
      [[], [], undefined],
      [[made(null)], [], 'ada'],
      [[made(null)], other, 'ada'],
      [[], other, 'key_b'],
      [[made(null), made(null)], [], undefined],
      [[made(null), made(null)], other, undefined],
    ] as const) {
      assert.equal((await originOf([...entries], [...changes])).madeBy, madeBy);
    }
  });

  it('the origin of an API key differs if an entry has other scopes or addresses than its row', async () => {
    for (const [became, key, differs] of [
      [{ scopes: ['trade'], addresses: [] }, {}, false],
      [{ scopes: ['trade'] }, {}, false],
      [{ name: 'another field' }, {}, false],
      [{ scopes: ['read'] }, {}, true],
      [{ scopes: ['trade', 'read'] }, { scopes: 'trade,read' }, false],
      [{ scopes: ['read', 'trade'] }, { scopes: 'trade,read' }, true],
      [{ scopes: [] }, { scopes: '' }, false],
      [{ addresses: ['1.2.3.4'] }, {}, true],
      [{ addresses: ['1.2.3.4'] }, { addresses: '["1.2.3.4"]' }, false],
      [{ addresses: [] }, { addresses: 'no JSON' }, true],
      ['a text', {}, true],
    ] as const) {
      assert.equal((await originOf([made(became)], [], key)).differs, differs, JSON.stringify([became, key]));
    }
    assert.equal((await originOf([{ operator: 'ada', became: 'no JSON' }])).differs, true);
    assert.equal((await originOf([made(null), made({ scopes: ['read'] })])).differs, true, 'also a second entry');
  });
});

describe('API keys', () => {
  it('API keys are sealed if an entry says who made them or they are named, and never if their row differs or its seal is wrong', async () => {
    for (const acceptsUnsealed of [true, false]) {
      const rows = new Rows();
      const ids = ['key_done', 'key_entry', 'key_named', 'key_none', 'key_other', 'key_wrong'];
      for (const id of ids) rows.key(keyOf(id), null);
      Object.assign(rows.tables.api_keys?.[0] ?? {}, { seal: keySeal(former, keyOf('key_done')) });
      Object.assign(rows.tables.api_keys?.[5] ?? {}, { seal: keySeal(foreign, keyOf('key_wrong')) });
      rows.entries.key_entry = [made({ scopes: ['trade'] })];
      rows.entries.key_other = [made({ scopes: ['read'] })];
      const named = ['key_named', 'key_other', 'key_wrong'];
      assert.equal(await sealKeys({ ...rows.options, acceptsUnsealed }, named), false);
      const isSealed = (id: string) =>
        (rows.sealOf('api_keys', id) as Buffer | null)?.equals(keySeal(current, keyOf(id))) ?? false;
      assert.deepEqual(ids.filter(isSealed), acceptsUnsealed ? ['key_entry', 'key_named'] : ['key_named']);
      const [sealed, left] = acceptsUnsealed ? [2, 3] : [1, 4];
      assert.equal(
        rows.printed.at(-1),
        `API keys: ${sealed} sealed, 1 were sealed, 0 were changed meanwhile, ${left} are not sealed`,
      );
    }
    const all = new Rows();
    all.key(keyOf('key_entry'), null);
    all.entries.key_entry = [made(null)];
    assert.equal(await sealKeys(all.options, []), true);
  });

  it('API keys are not sealed if they were changed meanwhile', async () => {
    const rows = new Rows();
    rows.key(keyOf('key_a'), null);
    rows.meanwhile = () => Object.assign(rows.tables.api_keys?.[0] ?? {}, { scopes: 'trade,read' });
    await sealKeys(rows.options, ['key_a']);
    assert.equal(rows.sealOf('api_keys', 'key_a'), null);
    assert.match(
      rows.printed.at(-1) ?? '',
      /^API keys: 0 sealed, 0 were sealed, 1 were changed meanwhile, 0 are not sealed/,
    );
  });

  it('cannot steer the terminal of who seals them', async () => {
    const rows = new Rows();
    rows.key({ ...keyOf('key_a'), scopes: 'x\u001b[2J\ny' }, null);
    await sealKeys(rows.options, ['key_a']);
    assert.ok(
      rows.printed.every((line) => !/\p{C}/u.test(line)),
      rows.printed.join(),
    );
  });
});

/** A database in which each kind of row has seals of each sort. */
function mixed(): Rows {
  const rows = new Rows();
  const seal = (by: KeyRing) => webhookSeal(by).seal.bind(webhookSeal(by));
  for (const [name, by] of [
    ['current', current],
    ['former', former],
    ['foreign', foreign],
  ] as const) {
    rows.key(keyOf(`key_${name}`), keySeal(by, keyOf(`key_${name}`)));
    rows.wallet(headOf(`par_${name}`, 3n), walletSeal(by, headOf(`par_${name}`, 3n)));
    rows.endpoint(`par_${name}`, seal(by)(`par_${name}`, 'one'), seal(former)(`par_${name}`, 'two'));
  }
  rows.key(keyOf('key_none'), null);
  rows.wallet(headOf('par_none', 3n), null);
  rows.endpoint('par_none', seal(current)('par_none', 'one'), null);
  rows.wallet(headOf('par_outrun', 5n), walletSeal(former, headOf('par_outrun', 3n)));
  rows.entry(headOf('par_outrun', 3n));
  rows.wallet(headOf('par_false', 5n), walletSeal(former, headOf('par_false', 3n)));
  rows.entry({ ...headOf('par_false', 3n), availableKobo: 99n });
  return rows;
}

describe('a change of the current secret', () => {
  it('a change of the current secret seals again what a former one sealed, and leaves what no secret of the ring did', async () => {
    const rows = mixed();
    await reseal(rows.options);
    const counts = (again: number, wrong: number) =>
      `${again} made again, 1 were current, 0 were changed meanwhile, ${wrong} are wrong under every key of the ring`;
    assert.equal(rows.line('seals of API keys'), `seals of API keys: ${counts(1, 1)}`);
    assert.equal(rows.line('seals of wallets'), `seals of wallets: ${counts(2, 2)}`);
    assert.equal(
      rows.line('webhook secrets'),
      'webhook secrets: 4 sealed again, 2 were current, 0 were changed meanwhile, 1 open under no key of the ring',
    );
    assert.deepEqual(rows.sealOf('api_keys', 'key_former'), keySeal(current, keyOf('key_former')));
    assert.deepEqual(rows.sealOf('wallets', 'par_former'), walletSeal(current, headOf('par_former', 3n)));
    const outrun = walletSeal(current, headOf('par_outrun', 3n));
    assert.deepEqual(rows.sealOf('wallets', 'par_outrun'), outrun, 'up to the entry that was sealed');
    assert.equal(rows.sealOf('wallets', 'par_none'), null);
    for (const [name, column, text] of [
      ['par_former', 'secret', 'one'],
      ['par_former', 'old_secret', 'two'],
      ['par_current', 'old_secret', 'two'],
    ] as const) {
      const bytes = rows.sealOf('webhook_endpoints', name, column) as Buffer;
      assert.deepEqual(webhookSeal(current).openNamed(name, bytes), { text, keyId: current[0].id });
    }
    rows.printed.length = 0;
    await reseal(rows.options);
    assert.match(rows.line('seals of wallets') ?? '', /: 0 made again, 3 were current/);
    assert.match(rows.line('webhook secrets') ?? '', /: 0 sealed again, 6 were current/);
  });

  it('a change of the current secret leaves what somebody else sealed meanwhile', async () => {
    const rows = mixed();
    rows.meanwhile = () => {
      for (const row of rows.tables.wallets ?? []) row.seal = Buffer.alloc(48, 9);
      for (const row of rows.tables.api_keys ?? []) row.seal = Buffer.alloc(40, 9);
      for (const row of rows.tables.webhook_endpoints ?? [])
        Object.assign(row, { secret: Buffer.alloc(9), old_secret: Buffer.alloc(9) });
    };
    await reseal(rows.options);
    for (const what of ['seals of wallets', 'seals of API keys', 'webhook secrets']) {
      assert.match(rows.line(what) ?? '', /: 0 (made|sealed) again/, what);
    }
    assert.ok(rows.tables.wallets?.every(({ seal }) => (seal as Buffer).every((byte) => byte === 9)));
  });

  it('a change of the current secret is counted by the secret of each seal, with those that are wrong and what is not sealed to its end', async () => {
    const rows = mixed();
    const shown = ({ bySecret, ...more }: Awaited<ReturnType<typeof countKeySeals>>) => {
      return { ...more, current: bySecret.get(current[0].id), former: bySecret.get(former[0].id), all: bySecret.size };
    };
    const database = rows.database as never;
    assert.deepEqual(shown(await countKeySeals(database, ring)), {
      unsealed: 1,
      wrong: 1,
      current: 1,
      former: 1,
      all: 2,
    });
    assert.deepEqual(shown(await countWalletSeals(database, ring)), {
      unsealed: 2,
      wrong: 2,
      current: 1,
      former: 2,
      all: 2,
    });
  });

  it('a change of the current secret lists the API keys whose MAC another secret made, or one that is not known if there ever was another', async () => {
    for (const [by, uses, listed] of [
      [ring, [], ['key_former', 'key_unknown']],
      [current, [], ['key_former']],
      [current, [former[0].id], ['key_former', 'key_unknown']],
      [current, [current[0].id], ['key_former']],
    ] as const) {
      const rows = new Rows();
      for (const [id, macKey] of [
        ['key_current', current[0].id],
        ['key_former', former[0].id],
        ['key_unknown', null],
      ] as const) {
        rows.key(keyOf(id), null);
        Object.assign(rows.tables.api_keys?.at(-1) ?? {}, { mac_key: macKey });
      }
      rows.uses = [...uses];
      await reseal({ ...rows.options, ring: by as KeyRing });
      const without = rows.tables.api_keys?.filter((row) => row.has_mac === false).map(({ id }) => id);
      assert.deepEqual(without, listed);
    }
  });
});

it('a wallet whose end is not sealed stays so while such rows are refused, and is named', async () => {
  const rows = new Rows();
  rows.wallet(headOf('par_done', 3n), walletSeal(former, headOf('par_done', 3n)));
  rows.wallet(headOf('par_none', 3n), null);
  rows.wallet(headOf('par_outrun', 5n), walletSeal(current, headOf('par_outrun', 3n)));
  rows.entry(headOf('par_outrun', 3n));
  assert.equal(await sealWallets({ ...rows.options, acceptsUnsealed: false }), false);
  assert.deepEqual(
    rows.printed.map((line) => line.split(':')[0]),
    ['the wallet of par_none is not sealed', 'the wallet of par_outrun is not sealed', 'wallets'],
  );
  assert.equal(rows.printed.at(-1), 'wallets: 0 sealed, 1 were sealed, 2 are not sealed');
  assert.equal(rows.sealOf('wallets', 'par_none'), null);
});
