import assert from 'node:assert/strict';
import { after, before, describe, it, mock } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Authenticator } from '../../../../src/gateway/edge/auth/authenticate.ts';
import { KeySeals, keySealUse } from '../../../../src/gateway/edge/auth/key-seals.ts';
import { keyMacKeys, makeKey } from '../../../../src/gateway/edge/auth/keys.ts';
import { KeysWithoutMac } from '../../../../src/gateway/edge/auth/keys-without-mac.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Partners } from '../../../../src/gen/marina/admin/v1/partners_pb.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { createGrpcClient } from '../../../../src/kit/grpc-client.ts';
import { type KeyRing, keysFor, parseKeyRing } from '../../../../src/kit/key-ring.ts';
import { fixed } from '../../../../src/kit/watched-files.ts';
import { createPartner } from '../../../../src/sandbox/provision.ts';
import { adminClient } from '../../../support/admin.ts';
import { openTestDatabase, withDatabase } from '../../../support/database.ts';
import { eventually } from '../../../support/eventually.ts';
import { FaultProxy } from '../../../support/fault-proxy.ts';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';
import { halfOverGrpc } from '../../../support/half-sent.ts';
import { createKey, createOldKey, forgedKey, secretKey } from '../../../support/keys.ts';
import { scrape } from '../../../support/metrics.ts';
import { patient } from '../../../support/patience.ts';

const ring = fixed(parseKeyRing(secretKey));
const macKeys = keyMacKeys(ring);
const seals = new KeySeals(keysFor(ring, keySealUse), 'sandbox', true);
const bearer = (key: string) => `Bearer ${key}`;

describe('what a key costs the database', () => {
  let database: Database;
  let partnerId: string;
  let reads: string[];
  /** Functions that the next reads wait for, after the database answered them. */
  const answersWait: ((rows: unknown) => Promise<void>)[] = [];
  withDatabase(
    async (opened) => {
      database = opened;
      const read = database.read.bind(database);
      database.read = async (query) => {
        reads.push(query.sql);
        const wait = answersWait.shift();
        const rows = await read(query);
        await wait?.(rows);
        return rows;
      };
      partnerId = await createPartner(database, { name: 'Partner' });
    },
    { poolSize: 2 },
  );

  function start(): Authenticator {
    reads = [];
    return new Authenticator({ database, environment: 'sandbox', macKeys, seals });
  }

  /** Whether each was accepted, or why not. */
  async function identify(authenticator: Authenticator, keys: readonly string[]): Promise<string[]> {
    const found = await Promise.all(keys.map((key) => authenticator.identify(bearer(key), '127.0.0.1')));
    return [...new Set(found.map(({ refusal = 'good' }) => refusal))];
  }

  it('a good key is read once, however often it is used', async () => {
    const { key } = await createKey(database, { partnerId, scopes: [Scope.READ] });
    const authenticator = start();
    assert.deepEqual(await identify(authenticator, Array(100).fill(key)), ['good']);
    assert.deepEqual(await identify(authenticator, Array(100).fill(key)), ['good']);
    assert.equal(reads.length, 1);
  });

  it('forged keys cost one read of the keys of earlier versions, and after that nothing', async () => {
    const { id } = await createKey(database, { partnerId, scopes: [Scope.READ] });
    const authenticator = start();
    const forged = () => Array.from({ length: 500 }, () => forgedKey());
    assert.deepEqual(await identify(authenticator, forged()), ['forged']);
    assert.equal(reads.length, 1);
    assert.deepEqual(await identify(authenticator, [...forged(), forgedKey('sandbox', id)]), ['forged']);
    assert.equal(reads.length, 1);
  });

  it('forged keys cost one more read when two seconds have passed, and not before', async () => {
    const authenticator = start();
    const began = Math.ceil(performance.now());
    let passedMs = 0;
    const now = mock.method(performance, 'now', () => began + passedMs);
    try {
      const counts: number[] = [];
      for (passedMs of [0, 1_999, 2_000, 3_999, 4_000]) {
        await identify(authenticator, [forgedKey(), forgedKey()]);
        counts.push(reads.length);
      }
      assert.deepEqual(counts, [1, 1, 2, 2, 3]);
    } finally {
      now.mock.restore();
    }
  });

  /** Runs its worker until the list of keys without a MAC was read, or could not be. */
  async function readList(authenticator: Authenticator): Promise<void> {
    const stopping = new AbortController();
    const before = reads.length;
    const ended = authenticator.worker.run(stopping.signal);
    await eventually(() => assert.equal(reads.length, before + 1));
    stopping.abort();
    await ended;
  }

  const away = () => Promise.reject(new Error('the database is away'));

  /** Runs the work ten minutes later. */
  async function tenMinutesLater(work: () => Promise<void>): Promise<void> {
    const later = Math.ceil(performance.now()) + 600_000;
    const now = mock.method(performance, 'now', () => later);
    try {
      await work();
    } finally {
      now.mock.restore();
    }
  }

  it('forged keys are refused within two seconds while the database does not answer', async () => {
    const authenticator = start();
    await readList(authenticator);
    await tenMinutesLater(async () => {
      const { release } = holdRead();
      const tooLate = delay(patient(2_000)).then(() => ['no answer']);
      const answer = await Promise.race([identify(authenticator, [forgedKey()]), tooLate]);
      release();
      assert.deepEqual([answer, reads.length], [['forged'], 2]);
    });
  });

  it('forged keys are refused while the database is away', async () => {
    const authenticator = start();
    await readList(authenticator);
    await tenMinutesLater(async () => {
      answersWait.push(away);
      assert.deepEqual(await identify(authenticator, [forgedKey()]), ['forged']);
      assert.equal(reads.length, 2);
    });
  });

  it('forged keys are answered service_unavailable if the database was away since the start', async () => {
    const authenticator = start();
    answersWait.push(away);
    await readList(authenticator);
    await assert.rejects(identify(authenticator, [forgedKey()]), { code: 'service_unavailable' });
  });

  /** An authenticator whose ring has two secrets, and a function that removes the one that API keys are made with here. */
  function startWithRing(): { authenticator: Authenticator; removeFormer: () => void } {
    const next = '43'.repeat(32);
    const listeners: ((ring: KeyRing) => void)[] = [];
    const ring = parseKeyRing(`${next}\n${secretKey}`);
    const both = keyMacKeys({ current: ring, onChange: (listener) => void listeners.push(listener) });
    reads = [];
    return {
      authenticator: new Authenticator({ database, environment: 'sandbox', macKeys: both, seals }),
      removeFormer: () => {
        for (const listener of listeners) listener(parseKeyRing(next));
      },
    };
  }

  /** Lists a key as one without a MAC, as `keys reseal` does. */
  const listKey = (id: string) => database.write(statement('UPDATE api_keys SET has_mac = 0 WHERE id = ?', id));

  it('a key that was listed after the last read works as soon as its secret leaves the ring', async () => {
    const { id, key } = await createKey(database, { partnerId, scopes: [Scope.READ] });
    const { authenticator, removeFormer } = startWithRing();
    assert.deepEqual(await identify(authenticator, [forgedKey()]), ['forged']);
    await listKey(id);
    removeFormer();
    assert.deepEqual(await identify(authenticator, [key]), ['good']);
  });

  it('a key that was listed after the last read is never refused while the database is away, only not answered', async () => {
    const { id, key } = await createKey(database, { partnerId, scopes: [Scope.READ] });
    const { authenticator, removeFormer } = startWithRing();
    await readList(authenticator);
    await listKey(id);
    removeFormer();
    answersWait.push(away);
    await assert.rejects(identify(authenticator, [key]), { code: 'service_unavailable' });
    await assert.rejects(identify(authenticator, [forgedKey()]), { code: 'service_unavailable' });
    await eventually(async () => assert.deepEqual(await identify(authenticator, [key]), ['good']));
  });

  it('a text that is no key, or a key of the other environment, costs nothing', async () => {
    const { key } = await createKey(database, { partnerId, scopes: [Scope.READ] });
    const authenticator = start();
    assert.deepEqual(await identify(authenticator, ['x', key.slice(0, -1), `${key.slice(0, -1)}!`]), ['malformed']);
    assert.deepEqual(await identify(authenticator, [forgedKey('live')]), ['other_environment']);
    assert.equal(reads.length, 0);
  });

  it('a key of ours that is not stored is looked for once', async () => {
    const { key } = makeKey('sandbox', macKeys, 'abcdefghijklmn');
    const authenticator = start();
    assert.deepEqual(await identify(authenticator, Array(100).fill(key)), ['unknown']);
    assert.deepEqual(await identify(authenticator, Array(100).fill(key)), ['unknown']);
    assert.equal(reads.length, 1);
  });

  /** Has the next read held up when the database has answered it. */
  function holdRead(): { answered: Promise<void>; release: () => void } {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const answered = new Promise<void>((resolve) => {
      answersWait.push(() => {
        resolve();
        return released;
      });
    });
    return { answered, release };
  }

  const forgets: Record<string, (authenticator: Authenticator, keyId: string) => void> = {
    'a key': (authenticator, keyId) => authenticator.forget(keyId),
    "a partner's keys": (authenticator) => authenticator.forgetPartner(partnerId),
  };
  for (const [what, forget] of Object.entries(forgets)) {
    it(`${what} is forgotten with what is being read of it: an answer from before a revocation is not kept`, async () => {
      for (const askedMeanwhile of [false, true]) {
        const { id, key } = await createKey(database, { partnerId, scopes: [Scope.READ] });
        const authenticator = start();
        const { answered, release } = holdRead();
        const before = identify(authenticator, [key]);
        await answered;
        await database.write(statement('UPDATE api_keys SET revoked_at = NOW(3) WHERE id = ?', id));
        forget(authenticator, id);
        const meanwhile = askedMeanwhile ? await identify(authenticator, [key]) : ['revoked'];
        release();
        assert.deepEqual(await before, ['good'], 'who asked before it was revoked');
        const answers = { meanwhile, later: await identify(authenticator, [key]) };
        const expected = { meanwhile: ['revoked'], later: ['revoked'] };
        assert.deepEqual(answers, expected, `after it was revoked and forgotten: ${JSON.stringify(answers)}`);
      }
    });
  }

  it('whoever was let in with a key is let in again without a read for 5 seconds, and then only as the key is by then', async () => {
    const { id, key } = await createKey(database, { partnerId, scopes: [Scope.READ] });
    const authenticator = start();
    const began = Math.ceil(performance.now());
    let passedMs = 0;
    const now = mock.method(performance, 'now', () => began + passedMs);
    try {
      const first = await authenticator.identify(bearer(key), '127.0.0.1');
      await database.write(statement('UPDATE api_keys SET revoked_at = NOW(3) WHERE id = ?', id));
      passedMs = 4_999;
      assert.equal(await first.again?.(), first);
      passedMs = 5_000;
      const again = await first.again?.();
      assert.deepEqual([again?.refusal, reads.length], ['revoked', 2]);
      assert.deepEqual([first.isLatest?.(), again?.isLatest?.()], [false, true]);
    } finally {
      now.mock.restore();
    }
  });

  it('a key that was read is believed for 5 seconds from when it was asked for, and so is its absence', async () => {
    const { id, key } = await createKey(database, { partnerId, scopes: [Scope.READ] });
    const { key: unknown } = makeKey('sandbox', macKeys, 'abcdefghijklmn');
    const authenticator = start();
    const began = Math.ceil(performance.now()); // Sums of whole numbers are exact.
    let passedMs = 0;
    const now = mock.method(performance, 'now', () => began + passedMs);
    try {
      const { answered, release } = holdRead();
      const first = identify(authenticator, [key]);
      await answered;
      passedMs = 4_000; // The answer took this long.
      release();
      assert.deepEqual([await first, await identify(authenticator, [unknown])], [['good'], ['unknown']]);
      await database.write(statement('UPDATE api_keys SET revoked_at = NOW(3) WHERE id = ?', id));
      passedMs = 4_999;
      const before = await identify(authenticator, [key]);
      passedMs = 5_000;
      const after = await identify(authenticator, [key]);
      assert.deepEqual(
        { before, after },
        { before: ['good'], after: ['revoked'] },
        'revoked, and this process not told',
      );
      const counts = [];
      for (passedMs of [8_999, 9_000]) {
        reads = [];
        await identify(authenticator, [unknown]);
        counts.push(reads.length);
      }
      assert.deepEqual(counts, [0, 1], 'reads of a key that is not there, 4,999 and 5,000 ms after the last');
    } finally {
      now.mock.restore();
    }
  });

  it('a key of an earlier version works, also one that such a version makes while this one runs', async () => {
    const { key } = await createOldKey(database, { partnerId, scopes: 'read' });
    const authenticator = start();
    assert.deepEqual(await identify(authenticator, [key, key]), ['good']);
    assert.equal(reads.length, 2);
    const later = await createOldKey(database, { partnerId, scopes: 'read' });
    await eventually(async () => assert.deepEqual(await identify(authenticator, [later.key]), ['good']));
    assert.deepEqual(await identify(authenticator, [forgedKey('sandbox', later.id)]), ['unknown'], 'another secret');
  });

  it('more keys of earlier versions than are kept all work', async () => {
    const { id } = await createOldKey(database, { partnerId, scopes: 'read' });
    const other = await createOldKey(database, { partnerId, scopes: 'read' });
    const few = new KeysWithoutMac(database, macKeys, 1);
    assert.deepEqual([await few.has(id), await few.has(other.id)], [true, true]);
  });
});

describe('refused credentials', () => {
  let gateway: TestGateway;
  let admin: ReturnType<typeof adminClient>;
  before(async () => {
    gateway = await startGateway();
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin.close();
    await gateway.stop();
  });

  const listOver: Record<string, (key: string) => Promise<number>> = {
    REST: async (key) => (await gateway.rest('GET', '/v1/orders', { key })).status,
    gRPC: async (key) => {
      const path = '/marina.gateway.v1.Orders/ListOrders';
      const headers = { authorization: bearer(key) };
      // Each on a connection of its own: one with nothing but refused calls is closed after some.
      const call = await halfOverGrpc(gateway.app.grpcPort, { method: 'POST', path, headers, body: Buffer.alloc(0) });
      return call.finish();
    },
    Connect: async (key) => {
      const response = await fetch(`http://127.0.0.1:${gateway.app.restPort}/marina.gateway.v1.Orders/ListOrders`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: bearer(key) },
        body: '{}',
      });
      await response.arrayBuffer();
      return response.status;
    },
  };

  for (const [protocol, list] of Object.entries(listOver)) {
    it(`${protocol}: 200 refused requests are answered 401 and leave the good key its whole burst`, async () => {
      const burst = 6;
      const partner = await gateway.newPartner({ limits: { requestsBurst: burst, requestsPerSecond: 0 } });
      const scopes = [Scope.READ];
      const elsewhere = await createKey(gateway.database, { partnerId: partner.id, scopes, addresses: ['192.0.2.1'] });
      const revoked = await createKey(gateway.database, { partnerId: partner.id, scopes });
      await admin.keys.revokeKey({ keyId: revoked.id }, admin.options);
      const refused = [elsewhere.key, revoked.key, forgedKey('sandbox', partner.keyId), forgedKey()];
      for (let round = 0; round < 10; round += 1) {
        const statuses = await Promise.all(Array.from({ length: 20 }, (_, at) => list(refused[at % 4] ?? '')));
        assert.deepEqual([...new Set(statuses)], [401]);
      }
      for (let used = 0; used < burst; used += 1) assert.equal(await list(partner.key), 200, `request ${used}`);
      assert.equal(await list(partner.key), 429, 'the burst was whole, and no more than that');
    });

    it(`${protocol}: a key this process has not seen works after 500 forged ones from its address`, async () => {
      for (let round = 0; round < 25; round += 1) {
        const statuses = await Promise.all(Array.from({ length: 20 }, () => list(forgedKey())));
        assert.deepEqual([...new Set(statuses)], [401]);
      }
      const partner = await gateway.newPartner();
      assert.equal(await list(partner.key), 200);
    });
  }

  it('credentials of a suspended partner take nothing of its rate either', async () => {
    const partner = await gateway.newPartner({ limits: { requestsBurst: 1, requestsPerSecond: 0 } });
    const operators = createGrpcClient(Partners, `127.0.0.1:${gateway.app.adminPort}`);
    await operators.suspendPartner({ partnerId: partner.id }, admin.options);
    for (let count = 0; count < 50; count += 1) assert.equal(await listOver.REST?.(partner.key), 401);
    await operators.resumePartner({ partnerId: partner.id }, admin.options);
    operators.close();
    assert.equal(await listOver.REST?.(partner.key), 200);
  });

  it('are counted by reason', async () => {
    const counts = async () => {
      const metrics = await scrape(gateway.app.opsPort);
      const reasons = ['missing', 'malformed', 'other_environment', 'forged', 'revoked', 'suspended', 'address'];
      return reasons.map((reason) => metrics.value('marina_credential_refusals_total', { reason }));
    };
    const [revoked, suspended, elsewhere] = await Promise.all([
      gateway.newPartner(),
      gateway.newPartner(),
      gateway.newPartner({ addresses: ['192.0.2.1'] }),
    ]);
    await admin.keys.revokeKey({ keyId: revoked.keyId }, admin.options);
    await gateway.database.write(statement("UPDATE partners SET state = 'suspended' WHERE id = ?", suspended.id));
    const before = await counts();
    await gateway.rest('GET', '/v1/orders');
    const keys = ['x', forgedKey('live'), forgedKey(), revoked.key, suspended.key, elsewhere.key];
    for (const key of keys) assert.equal(await listOver.REST?.(key), 401);
    assert.deepEqual(
      (await counts()).map((count, at) => count - (before[at] ?? 0)),
      [1, 1, 1, 1, 1, 1, 1],
    );
  });
});

describe('credentials while the database is away', () => {
  it('a good key is answered 503, a forged one 401, and neither ever 429', async () => {
    const { database, url, close } = await openTestDatabase({ poolSize: 2 });
    const proxy = await FaultProxy.start(url);
    const gateway = await startGateway({ MARINA_DATABASE_URL: proxy.through(url) });
    try {
      const partnerId = await createPartner(database, { name: 'Partner' });
      const make = () => createKey(database, { partnerId, scopes: [Scope.READ] });
      const keys = await Promise.all(Array.from({ length: 10 }, make));
      const list = async (key: string) => (await gateway.rest('GET', '/v1/orders', { key })).status;
      assert.equal(await list(keys[0]?.key ?? ''), 200);
      await proxy.refuse();
      proxy.reset();
      // More than any bucket ever held for one address.
      const statuses = await Promise.all(Array.from({ length: 140 }, (_, at) => list(keys[1 + (at % 9)]?.key ?? '')));
      assert.deepEqual([...new Set(statuses)], [503]);
      assert.equal(await list('marina_test_mistyped'), 401);
      assert.equal(await list(forgedKey()), 401);
      await proxy.accept();
      await eventually(async () => {
        for (const { key } of keys) {
          assert.equal(await list(key), 200);
          await delay(1);
        }
      });
    } finally {
      await gateway.stop();
      await proxy.close();
      await close();
    }
  });
});
