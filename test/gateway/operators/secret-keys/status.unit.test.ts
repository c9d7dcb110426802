/** The state of each secret of the ring, as operators see it, over rows that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { newEndpoint } from '../../../../src/gateway/delivery/webhooks/plan/endpoint-store.ts';
import { endpoints } from '../../../../src/gateway/delivery/webhooks/table.ts';
import { KeySeals, keySealUse } from '../../../../src/gateway/edge/auth/key-seals.ts';
import { apiKeys } from '../../../../src/gateway/edge/auth/store.ts';
import { AuditSeals, auditSealUse } from '../../../../src/gateway/operators/audit/seals.ts';
import { webhookSeal } from '../../../../src/gateway/operators/secret-keys/sealed-endpoints.ts';
import { countApiKeys, describeRing } from '../../../../src/gateway/operators/secret-keys/status.ts';
import type { SqlRow } from '../../../../src/gateway/store/statement.ts';
import { keyKeptMs } from '../../../../src/gateway/trading/submission/key-retention.ts';
import { type KeyRing, keysFor, parseKeyRing } from '../../../../src/kit/key-ring.ts';
import { fixed } from '../../../../src/kit/watched-files.ts';
import { auditRows } from '../../../support/audit-rows.ts';
import { RowsDatabase } from '../../../support/rows-database.ts';
import { storedRow } from '../../../support/stored-row.ts';

const [current, former, foreign] = ['11', '22', '33'].map((pair) => parseKeyRing(pair.repeat(32))) as [
  KeyRing,
  KeyRing,
  KeyRing,
];
const ring: KeyRing = [current[0], former[0]];
const environment = 'sandbox';
const now = Date.UTC(2026, 5, 2, 9);
/** A secret may have been current for so long after its last note. */
const unnotedMs = 120_000;

interface Stored {
  /** By secret: when its use was first and last noted. */
  readonly uses?: readonly (readonly [by: KeyRing, first: number, last: number])[];
  /** The secrets that webhook secrets are sealed with. */
  readonly webhooks?: readonly KeyRing[];
  /** The ids of the secrets of API keys, with how many each has. */
  readonly macs?: readonly (readonly [id: string | null, count: number])[];
  /** The secrets of the seals of API keys; null: it has none. */
  readonly keySeals?: readonly (KeyRing | null)[];
  readonly audit?: KeyRing;
  /** Objects that are open, and applications with documents, of each partner. */
  readonly open?: readonly (readonly [objects: number, applications: number])[];
}

async function described(stored: Stored, of: KeyRing = ring) {
  const { uses = [], webhooks = [], macs = [], keySeals = [], audit, open = [] } = stored;
  const endpointRows = webhooks.map((by, at) => {
    const partnerId = `par_${at}`;
    const secret = webhookSeal(by).seal(partnerId, 'word');
    return storedRow(endpoints, newEndpoint({ partnerId, url: 'u', secret, afterVersion: 0n, registeredAt: 1 }));
  });
  const keyRows = keySeals.map((by, at) => {
    const key = { partnerId: 'par_a', id: `key_${at}`, secretHash: Buffer.alloc(32), scopes: 'read', addresses: '[]' };
    const seal = by && new KeySeals(keysFor(fixed(by), keySealUse), environment, true).make(key);
    return storedRow(apiKeys, { ...key, createdAt: 1, revokedAt: null, hasMac: true, macKey: null, seal });
  });
  const seals = audit && new AuditSeals(keysFor(fixed(audit), auditSealUse), environment);
  const untils = new Set<number>();
  const tables = {
    secret_keys: uses.map(([[{ id }], first, last]) => ({
      ...{ id, first_used_at: new Date(first), last_used_at: new Date(last) },
    })),
    webhook_endpoints: endpointRows,
    api_keys: keyRows,
    audit_seals: auditRows(seals === undefined ? [] : [1], seals).batches,
    partners: open.map((_, at) => ({ id: `par_${at}` })),
    wallets: [],
  };
  const database = new RowsDatabase(tables, ({ sql, values }): SqlRow[] | undefined => {
    if (sql.includes('GROUP BY mac_key')) return macs.map(([id, found]) => ({ mac_key: id, found: String(found) }));
    if (!sql.includes('AS found')) return undefined;
    const [partnerId, until] = values as [string, Date];
    untils.add(until.getTime());
    const [objects, applications] = open[Number(partnerId.slice(4))] ?? [0, 0];
    const isOfOrders = sql.includes('FROM orders ');
    return [{ found: String(sql.includes('DISTINCT') ? applications : isOfOrders ? objects : 0) }];
  });
  const lines = await describeRing(Object.assign(database, { environment }) as never, of, now);
  /** The lines below the one of a secret. */
  const below = ([{ id }]: KeyRing) => {
    const at = lines.findIndex((line) => line.startsWith(`key ${id}:`));
    const rest = lines.slice(at + 1);
    const end = rest.findIndex((line) => !line.startsWith('  '));
    return { head: lines[at], lines: rest.slice(0, end).map((line) => line.trim()) };
  };
  return { lines, below, untils };
}

describe('the state of the secrets', () => {
  it('the current secret is never one to remove, and shows what is made with it', async () => {
    const { below } = await described({
      ...{ webhooks: [current, current], macs: [[current[0].id, 3]], keySeals: [current] },
      uses: [[current, 1, now]],
    });
    assert.deepEqual(below(current), {
      head: `key ${current[0].id}: current`,
      lines: ['has 2 webhook secrets', 'has 3 API keys', 'has 1 seals of rows'],
    });
  });

  it('a secret that is not current can be removed when everything that was digested with it is over', async () => {
    for (const [lastUsedAt, isNeeded] of [
      [now - keyKeptMs - unnotedMs + 1, true],
      [now - keyKeptMs - unnotedMs, false],
      [now - keyKeptMs - unnotedMs - 1, false],
    ] as const) {
      const { below } = await described({ uses: [[former, 1, lastUsedAt]] });
      const { head, lines } = below(former);
      assert.match(head ?? '', /: not current, current until 2026-/);
      if (isNeeded) assert.match(lines.join(), /^needed for cursors and Idempotency-Keys, until 2026-06-02T09:00:00Z$/);
      else assert.deepEqual(lines, ['can be removed']);
    }
  });

  it('a secret is needed for what is sealed with it, and for the objects that are open since its time', async () => {
    const lastUsedAt = now - keyKeptMs - unnotedMs;
    const { below, untils } = await described({
      ...{ uses: [[former, 1, lastUsedAt]], webhooks: [former], macs: [[former[0].id, 2]], keySeals: [former, former] },
      ...{
        audit: former,
        open: [
          [2, 0],
          [3, 1],
        ],
      },
    });
    assert.deepEqual(below(former).lines, [
      'needed for 1 webhook secrets, until keys reseal',
      'needed for 2 API keys, until keys reseal',
      'needed for 2 seals of rows, until keys reseal',
      'needed for the last seal of the audit, until a gateway renews it within two minutes',
      'needed for the Idempotency-Keys of 5 objects that are not final, until they are',
      'needed for the documents of 1 applications, until they are decided',
    ]);
    assert.deepEqual([...untils], [lastUsedAt + unnotedMs]);
  });

  it('a secret that was never noted may have been current until uses were noted, and until now without any note', async () => {
    const { below, untils } = await described({
      ...{ uses: [[current, now - 5_000, now]], open: [[1, 0]] },
    });
    assert.match(below(former).head ?? '', /: not current, never noted as current$/);
    assert.deepEqual([...untils], [now - 5_000 + unnotedMs]);
    assert.deepEqual([...(await described({ open: [[1, 0]] })).untils], [now + unnotedMs]);
  });

  it('a secret that is not in the ring is told to be missing for what it would be needed', async () => {
    const { below } = await described({ uses: [[foreign, 1, now]] });
    const { head, lines } = below(foreign);
    assert.match(head ?? '', /: not in the ring, current until/);
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /^would be needed for cursors/);
    const old = await described({ uses: [[foreign, 1, 1]] });
    assert.deepEqual(old.below(foreign).lines, [], 'it cannot be removed, because it is gone');
  });

  it('webhook secrets, API keys and seals that no secret of the ring made are told', async () => {
    const { lines, below } = await described({
      ...{
        uses: [[former, 1, 1]],
        webhooks: [foreign, foreign],
        macs: [[null, 4]],
        keySeals: [null, foreign, foreign],
      },
    });
    assert.ok(lines.some((line) => line.startsWith('2 webhook secrets open under no key of the ring')));
    assert.ok(lines.some((line) => line.startsWith('4 API keys were made by an earlier version')));
    assert.ok(lines.includes('1 API keys are not sealed: see keys seal'));
    assert.ok(lines.includes('2 API keys have a wrong seal and are refused: keys seal names them'));
    assert.deepEqual(below(former).lines, ['needed for perhaps API keys of an earlier version, until keys reseal']);
    assert.match(lines.at(-1) ?? '', /^not counted: notes at the broker, and backups/);
  });

  it('API keys are counted by their secret, those that are not revoked and have a MAC', async () => {
    const database = new RowsDatabase({}, ({ sql }) => {
      assert.match(sql, /WHERE has_mac = 1 AND revoked_at IS NULL GROUP BY mac_key$/);
      return [
        { mac_key: 'a', found: '2' },
        { mac_key: null, found: 1 },
      ];
    });
    assert.deepEqual(
      [...(await countApiKeys(database as never))],
      [
        ['a', 2],
        ['', 1],
      ],
    );
  });
});
