import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { inOrder } from '../../src/gateway/app/app.ts';
import { makeKey, parseKey, sameHash } from '../../src/gateway/edge/auth/keys.ts';
import { ApiError, catalogue, invalidParam } from '../../src/gateway/edge/errors.ts';
import { IdMaker } from '../../src/gateway/edge/ids.ts';
import { CallerLimits } from '../../src/gateway/edge/limits/caller-limits.ts';
import { noFact } from '../../src/gateway/store/facts.ts';
import { PartnerQueue } from '../../src/gateway/store/group-commit.ts';
import { checkDayLimit } from '../../src/gateway/trading/submission/rules.ts';
import { isRegistered } from '../../src/kit/addresses.ts';
import { lagosDay, nextLagosMidnight, SystemClock, statedInstant } from '../../src/kit/clock.ts';
import { onlyKey } from '../../src/kit/key-ring.ts';
import { createLogger } from '../../src/kit/log.ts';
import { divideToKoboDecimal, isKoboDecimal, roundKoboDecimal } from '../../src/kit/money.ts';
import { forgedKey } from '../support/keys.ts';
import { fc } from '../support/properties.ts';
import { slotsOfOne } from '../support/slots.ts';

describe('ids', () => {
  it('have the form partners are promised, and sort in the order they were made', () => {
    let now = 1_700_000_000_000;
    const ids = new IdMaker({ now: () => now });
    const made: string[] = [];
    for (let count = 0; count < 2_000; count += 1) {
      if (count % 100 === 0) now += count % 200 === 0 ? 1 : -1; // A clock that goes back does no harm.
      made.push(ids.object('ord'));
    }
    for (const id of made) assert.match(id, /^ord_[a-z2-7]{20}$/);
    assert.equal(new Set(made).size, made.length);
    assert.deepEqual([...made].sort(), made);
    assert.match(ids.event(), /^msg_[0-9a-f]{24}$/);
  });
});

describe('the Lagos day', () => {
  it('changes at 23:00 UTC', () => {
    assert.equal(lagosDay(Date.UTC(2026, 0, 31, 22, 59, 59)), '2026-01-31');
    assert.equal(lagosDay(Date.UTC(2026, 0, 31, 23)), '2026-02-01');
    assert.equal(nextLagosMidnight(Date.UTC(2026, 0, 31, 22)), Date.UTC(2026, 0, 31, 23));
    assert.equal(nextLagosMidnight(Date.UTC(2026, 0, 31, 23)), Date.UTC(2026, 1, 1, 23));
  });

  it('the clock never goes back', () => {
    const clock = new SystemClock();
    clock.moveTo(5_000);
    clock.moveTo(1_000);
    assert.equal(clock.offsetMs, 5_000);
  });
});

describe('an instant that another system states', () => {
  it('is taken from the year 2000 until 2200, to the millisecond below', () => {
    const at = (seconds: bigint, nanos = 0) => statedInstant(create(TimestampSchema, { seconds, nanos }));
    assert.equal(at(946_684_799n, 999_999_999), undefined);
    assert.equal(at(946_684_800n), 946_684_800_000);
    assert.equal(at(1_772_442_000n, 999_999), 1_772_442_000_000);
    assert.equal(at(1_772_442_000n, 1_999_999), 1_772_442_000_001);
    assert.equal(at(7_258_118_400n), 7_258_118_400_000);
    assert.equal(at(7_258_118_401n), undefined);
    assert.equal(statedInstant(undefined), undefined);
  });
});

describe('money', () => {
  it('quotients are exact to 12 places and rounded half up', () => {
    assert.equal(divideToKoboDecimal(100_000n, 100n), '1000.0');
    assert.equal(divideToKoboDecimal(1n, 3n), '0.333333333333');
    assert.equal(divideToKoboDecimal(2n, 3n), '0.666666666667');
    assert.equal(divideToKoboDecimal(10n ** 17n, 10n ** 8n), '1000000000.0');
    assert.equal(divideToKoboDecimal(1n, 2n), '0.5');
  });

  it('an amount owed is rounded up and one received down, exactly', () => {
    fc.assert(
      fc.property(fc.bigInt(-(10n ** 17n), 10n ** 17n), fc.bigInt(0n, 999_999_999_999n), (whole, part) => {
        const digits = part.toString().padStart(12, '0').replace(/0+$/, '') || '0';
        const text = `${whole}.${digits}`;
        assert.ok(isKoboDecimal(text), text);
        const isExact = part === 0n;
        const negative = whole < 0n;
        const up = isExact || negative ? whole : whole + 1n;
        const down = isExact || !negative ? whole : whole - 1n;
        assert.equal(roundKoboDecimal(text, 'up'), up, text);
        assert.equal(roundKoboDecimal(text, 'down'), down, text);
      }),
    );
  });

  it('a kobo decimal has at most 18 digits before its point, so that what it is rounded to fits an int64', () => {
    for (const text of [`${'9'.repeat(18)}.9`, `-${'9'.repeat(18)}.9`]) {
      assert.ok(isKoboDecimal(text), text);
      for (const way of ['up', 'down'] as const) {
        const kobo = roundKoboDecimal(text, way);
        assert.equal(BigInt.asIntN(64, kobo), kobo);
      }
    }
    for (const text of [
      `1${'0'.repeat(18)}.0`,
      `-1${'0'.repeat(18)}.0`,
      `${'9'.repeat(30)}.0`,
      `${'9'.repeat(200)}.5`,
    ]) {
      assert.equal(isKoboDecimal(text), false, text);
    }
  });

  it('exponents, missing points and thirteen places are no kobo decimals', () => {
    for (const text of ['1e3', '1', '.5', '1.', '01.0', '1.1234567890123', '+1.0', '', 'NaN', '1.0 ']) {
      assert.equal(isKoboDecimal(text), false, text);
    }
  });
});

describe('API keys', () => {
  const mac = onlyKey(Buffer.alloc(32, 1));
  const { id, key, secretHash } = makeKey('sandbox', mac, 'abcdefghijklmn');

  it('are read back whole', () => {
    const parts = parseKey('sandbox', mac, key);
    assert.ok(typeof parts === 'object' && sameHash(parts.secretHash, secretHash));
    assert.deepEqual([parts.id, parts.hasMac()], [id, true]);
    assert.match(id, /^key_abcdefghijklmn[a-z2-7]{6}$/);
  });

  it('keys of the other environment, cut, or with any character changed are no keys', () => {
    assert.equal(parseKey('live', mac, key), 'other_environment');
    for (let place = 0; place < key.length; place += 1) {
      const changed = `${key.slice(0, place)}${key[place] === 'a' ? 'b' : 'a'}${key.slice(place + 1)}`;
      assert.equal(parseKey('sandbox', mac, changed), 'malformed', `character ${place}`);
      assert.equal(parseKey('sandbox', mac, key.slice(0, place)), 'malformed');
    }
    assert.equal(parseKey('sandbox', mac, `${key}a`), 'malformed');
  });

  it('keys that were made without our secret are told from ours, whatever is taken from one of ours', () => {
    const hasMac = (text: string, secret = mac) => {
      const parts = parseKey('sandbox', secret, text);
      assert.ok(typeof parts === 'object', 'its checksum is right');
      return parts.hasMac();
    };
    assert.equal(hasMac(key), true);
    assert.equal(hasMac(key, onlyKey(Buffer.alloc(32, 2))), false, 'by another secret');
    for (let count = 0; count < 1_000; count += 1) assert.equal(hasMac(forgedKey()), false, 'all of it made up');
    assert.equal(hasMac(forgedKey('sandbox', id)), false, 'the id of one of ours');
  });

  it('work from registered addresses and ranges of both families only', () => {
    const registered = ['192.0.2.7', '198.51.100.0/24', '2001:db8::/32'];
    for (const address of ['192.0.2.7', '::ffff:192.0.2.7', '198.51.100.255', '2001:db8:1::9']) {
      assert.equal(isRegistered(address, registered), true, address);
    }
    for (const address of ['192.0.2.8', '198.51.101.0', '2001:db9::', '', 'localhost', '::1']) {
      assert.equal(isRegistered(address, registered), false, address);
    }
  });
});

describe('local limits', () => {
  const limits = {
    requestsPerSecond: 20,
    requestsBurst: 40,
    requestsUnderWay: 5,
    ordersKoboPerDay: 0n,
    allocationsKoboPerDay: 0n,
  };
  const caller = { partnerId: 'p', keyId: 'k', scopes: new Set<never>(), features: new Set<never>(), limits };
  const isLimited = (error: unknown) => error instanceof ApiError && error.code === 'rate_limited';

  it('a sixth request under way is refused until one ends, and giving a slot back twice counts once', async () => {
    const shared = new CallerLimits(slotsOfOne(), { take: () => true });
    const slots = await Promise.all(Array.from({ length: 5 }, () => shared.acquireSlot(caller)));
    await assert.rejects(shared.acquireSlot(caller), isLimited);
    assert.equal(await shared.underWay(caller), 5);
    slots[0]?.();
    slots[0]?.();
    await shared.acquireSlot(caller);
    await assert.rejects(shared.acquireSlot(caller), isLimited);
    const none = { ...caller, partnerId: 'q', limits: { ...limits, requestsUnderWay: 0 } };
    await assert.rejects(shared.acquireSlot(none), isLimited);
  });

  it('exactly at the day limit passes, one kobo above does not and says what remains', () => {
    checkDayLimit('order value per day', 1_000n, 400n, 600n, 0);
    assert.throws(
      () => checkDayLimit('order value per day', 1_000n, 400n, 601n, 0),
      (error) =>
        error instanceof ApiError &&
        error.code === 'limit_exceeded' &&
        /400 kobo are used, 600 remain/.test(error.message),
    );
  });
});

describe('the queue of partners', () => {
  const work = (...touches: string[]) => ({
    touches,
    fact: noFact,
    decide: () => ({ writes: [], result: undefined }),
  });

  it('runs one transaction of a partner at a time, and together what waited and touches different things', async () => {
    const groups: string[][] = [];
    const gates: (() => void)[] = [];
    const queue = new PartnerQueue(async (partnerId, group) => {
      groups.push([partnerId, ...group.flatMap((entry) => entry.work.touches)]);
      await new Promise<void>((resolve) => gates.push(resolve));
      for (const entry of group) entry.resolve(undefined);
    });
    const all = [
      queue.run('p', work('a')),
      queue.run('p', work('b')),
      queue.run('p', work('c')),
      queue.run('p', work('b', 'd')),
      queue.run('p', work('d')),
      queue.run('p', work('e')),
      queue.run('q', work('a')),
    ];
    assert.deepEqual(groups, [
      ['p', 'a'],
      ['q', 'a'],
    ]);
    while (groups.length < 5) {
      gates.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (const open of gates) open();
    await Promise.all(all);
    // Work on d waits behind the work that waits for b, so that the order of arrival holds for each thing.
    assert.deepEqual(groups.slice(2), [
      ['p', 'b', 'c', 'e'],
      ['p', 'b', 'd'],
      ['p', 'd'],
    ]);
  });

  it('goes on after work that fails, and refuses work beyond its bound', async () => {
    const queue = new PartnerQueue(async (_partnerId, group) => {
      await new Promise((resolve) => setImmediate(resolve));
      for (const entry of group) entry.reject(new Error('x'));
    });
    const failed = Array.from({ length: 501 }, () => queue.run('p', work('a')));
    await assert.rejects(queue.run('p', work('a')), /not available/);
    for (const result of failed) await assert.rejects(result, /x/);
    await assert.rejects(queue.run('p', work('a')), /x/);
  });
});

describe('steps in order', () => {
  const failure = (text: string) => async () => {
    throw new Error(text);
  };

  it('are all taken, each after the one before, and one that failed is told at the end', async () => {
    const taken: string[] = [];
    const late = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      taken.push('late');
    };
    const steps = [late, failure('broken'), () => taken.push('last')];
    await assert.rejects(inOrder(steps), /^Error: broken$/);
    assert.deepEqual(taken, ['late', 'last']);
  });

  it('tell of all that failed', async () => {
    await assert.rejects(inOrder([failure('one'), failure('two')]), ({ errors }: AggregateError) => {
      assert.deepEqual(errors.map(String), ['Error: one', 'Error: two']);
      return true;
    });
  });
});

describe('logs', () => {
  it('carry no secret, personal field or statement of a database error', () => {
    const lines: string[] = [];
    const log = createLogger({ name: 't', level: 'info', destination: { write: (line) => void lines.push(line) } });
    const error = Object.assign(new Error("Duplicate entry 'canary-1' for key"), {
      sqlState: '23000',
      errno: 1062,
      sql: "INSERT 'canary-2'",
      parameters: ['canary-3'],
    });
    log.error({
      err: error,
      authorization: 'Bearer canary-4',
      request: { headers: { x: 'canary-5' }, body: 'canary-6' },
    });
    log.error({ err: new Error('outer', { cause: error }), customer: { bvn: 'canary-7', email: 'canary-8' } });
    log.error(error);
    assert.equal(lines.length, 3);
    assert.doesNotMatch(lines.join(''), /canary/);
  });
});

describe('the error catalogue', () => {
  it('names a field in whole characters, however its name was sent or cut', () => {
    for (const name of ['\ud800', `${'a'.repeat(199)}😀`]) {
      const { param, message } = invalidParam(name, 'is unknown.');
      assert.ok(param?.isWellFormed() && message.isWellFormed(), JSON.stringify(param));
    }
  });

  it('names a field without numbers and mail addresses that may be a customer’s', () => {
    for (const [name, shown] of [
      ['bvn_22212345678', 'bvn_…'],
      ['+234 803 123 4567', '+…'],
      ['\u0662\u0662\u0662\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668', '…'],
      ['a.ada@example.com', '…'],
      ['fees[0].amount_2026', 'fees[0].amount_2026'],
      ['9'.repeat(200), '…'],
    ] as const) {
      const { param, message } = invalidParam(name, 'is unknown.');
      assert.deepEqual([param, message], [shown, `\`${shown}\` is unknown.`]);
    }
  });

  it('tells of every code its status and type, and a wait for every answer that should be sent again', () => {
    for (const [code, entry] of Object.entries(catalogue)) {
      const error = new ApiError(code as keyof typeof catalogue);
      assert.ok(error.status >= 400 && error.status < 600, code);
      const notSent = code.endsWith('_not_sent');
      if (entry.status === 429 || (entry.status === 503 && !notSent)) assert.ok(error.retryAfterSeconds, code);
      if (notSent) assert.equal(error.retryAfterSeconds, undefined, code);
    }
  });
});
