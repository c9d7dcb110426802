import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { sessionStartAt } from '../../src/fix/session/schedule.ts';
import { Framing } from '../../src/fix/wire/framing.ts';
import { decode, encode, type Field } from '../../src/fix/wire/message.ts';
import { toKobo, toPrice } from '../../src/fix/wire/prices.ts';
import { readUtcTimestamp, utcTimestamp } from '../../src/fix/wire/times.ts';

const value = fc.stringMatching(/^[ -~]{1,20}$/);
const tag = fc.integer({ min: 11, max: 9_999 }).filter((each) => decodeKeepsTag(each));
const fields = fc.array(fc.tuple(tag, value), { maxLength: 20 });

/** A field that states a length has another meaning. */
function decodeKeepsTag(each: number): boolean {
  return decode(Buffer.from(`${each}=1\x01`)).fields.length === 1;
}

describe('a FIX message', () => {
  it('is read as it was written, however its bytes arrive', () => {
    fc.assert(
      fc.property(
        fc.array(fields, { minLength: 1, maxLength: 5 }),
        fc.array(fc.integer({ min: 1, max: 40 })),
        (all, cuts) => {
          const bytes = Buffer.concat(all.map((one) => encode('FIXT.1.1', [[35, 'D'], ...one])));
          const framing = new Framing();
          const found: (readonly Field[])[] = [];
          let at = 0;
          for (const size of [...cuts, bytes.length]) {
            for (const one of framing.push(bytes.subarray(at, at + size))) {
              assert.ok('message' in one, JSON.stringify(one));
              found.push(one.message.fields.slice(3));
            }
            at += size;
          }
          assert.deepEqual(found, all);
        },
      ),
    );
  });

  it('is found behind whatever is none', () => {
    const good = encode('FIX.4.4', [[35, '0']]);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (garbage) => {
        const framing = new Framing();
        // A begin that states a length would wait for its bytes.
        const found = [
          ...framing.push(Buffer.from(garbage)),
          ...framing.push(Buffer.concat([good, good, Buffer.alloc(longest)])),
        ];
        assert.ok(found.filter((one) => 'message' in one).length >= 1);
      }),
    );
  });

  it('is found between whatever is none, and nothing else is', () => {
    const noBegin = fc
      .array(fc.constantFrom(...Buffer.from('8=FIX.T19\x010\xff'), 0), { maxLength: 40 })
      .filter((bytes) => !Buffer.from([...bytes, ...Buffer.from('8=FI')]).includes('8=FIX'));
    const pieces = fc.array(fc.tuple(noBegin, fields), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(pieces, fc.integer({ min: 1, max: 50 }), (all, size) => {
        const bytes = Buffer.concat(
          all.flatMap(([garbage, one]) => [Buffer.from(garbage), encode('FIX.4.4', [[35, 'D'], ...one])]),
        );
        const framing = new Framing();
        const found: (readonly Field[])[] = [];
        for (let at = 0; at < bytes.length; at += size) {
          for (const one of framing.push(bytes.subarray(at, at + size))) {
            if ('message' in one) found.push(one.message.fields.slice(3));
          }
        }
        assert.deepEqual(
          found,
          all.map(([, one]) => one),
        );
      }),
    );
  });

  it('is found in time that grows with the bytes, whatever they are', () => {
    const msOf = (bytes: Buffer, size: number) => {
      const framing = new Framing();
      const began = performance.now();
      for (let at = 0; at < bytes.length; at += size) framing.push(bytes.subarray(at, at + size));
      return performance.now() - began;
    };
    // Each of these begins states a length that reaches over all the others.
    const begins = Buffer.from('8=FIX.4.4\x019=60000\x01'.repeat(60_000), 'latin1');
    assert.ok(msOf(begins, 65_536) < 5_000);
    const long = encode('FIX.4.4', [
      [35, 'B'],
      [58, 'x'.repeat(60_000)],
    ]);
    assert.ok(msOf(Buffer.concat(Array.from({ length: 20 }, () => long)), 16) < 5_000);
  });

  it('that is longer than any message is none', () => {
    const long = encode('FIX.4.4', [
      [35, 'B'],
      [58, 'x'.repeat(65_536)],
    ]);
    const found = new Framing().push(Buffer.concat([long, encode('FIX.4.4', [[35, '0']])]));
    assert.deepEqual(
      found.map((one) => ('message' in one ? one.message.type : one.garbage)),
      ['too long', 'bytes outside a message', '0'],
    );
  });

  it('without MsgType in its place is none', () => {
    const found = new Framing().push(
      Buffer.concat([
        encode('FIX.4.4', [
          [34, '1'],
          [35, '0'],
        ]),
        encode('FIX.4.4', []),
      ]),
    );
    assert.ok(found.every((one) => 'garbage' in one));
  });

  it('keeps all values of a repeated field, in their order', () => {
    const message = decode(Buffer.from('35=8\x01453=2\x01448=A\x01448=B\x01', 'latin1'));
    assert.deepEqual(
      message.fields.filter(([each]) => each === 448),
      [
        [448, 'A'],
        [448, 'B'],
      ],
    );
    assert.equal(message.get(448), 'A');
  });

  it('is read up to the first field that is none', () => {
    for (const wrong of ['abc=1', '=1', '0=1', 'x', '95=4\x0196=toolong', '95=400\x0196=short', '1234567890123456=1']) {
      const message = decode(Buffer.from(`35=B\x0158=one\x01${wrong}\x0158=two\x01`, 'latin1'));
      assert.equal(message.isWhole, false, wrong);
      assert.equal(message.get(58), 'one');
      assert.equal(message.fields.filter(([each]) => each === 58).length, 1, wrong);
    }
  });

  it('says nothing by a field without a value', () => {
    const message = decode(Buffer.from('35=B\x0158=\x01148=news\x01', 'latin1'));
    assert.deepEqual([message.isWhole, message.get(58), message.get(148)], [true, undefined, 'news']);
  });

  it('with a wrong sum or length is passed over', () => {
    const good = encode('FIX.4.4', [[35, '0']]).toString('latin1');
    for (const wrong of [
      good.replace('35=0', '35=1'),
      good.replace(/9=\d+/, '9=4'),
      good.replace(/10=\d+/, '10=abc'),
    ]) {
      const found = new Framing().push(Buffer.from(wrong + good, 'latin1'));
      assert.deepEqual(
        found.filter((one) => 'message' in one).map((one) => 'message' in one && one.message.type),
        ['0'],
      );
    }
  });

  it('keeps bytes in a field whose length is stated', () => {
    const bytes = Buffer.from('35=B\x0195=5\x0196=a\x01b=c\x0158=end\x01', 'latin1');
    assert.deepEqual(decode(bytes).fields, [
      [35, 'B'],
      [95, '5'],
      [96, 'a\x01b=c'],
      [58, 'end'],
    ]);
  });

  it('is not written with a value that would end its field', () => {
    for (const wrong of ['', 'a\x01b', 'é', '\n']) assert.throws(() => encode('FIX.4.4', [[58, wrong]]));
  });
});

const longest = 70_000;

describe('a price of the session', () => {
  it('is exact in both directions', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 10_000_000_000n }), fc.constantFrom('naira', 'kobo'), (kobo, unit) => {
        assert.equal(toKobo(toPrice(kobo, unit), unit), kobo);
      }),
    );
  });

  it('that is no whole number of kobo is none', () => {
    const read = (text: string) => toKobo(text, 'naira');
    assert.deepEqual(['12.3', '12.30000', '0012.34', '12', '12.'].map(read), [1_230n, 1_230n, 1_234n, 1_200n, 1_200n]);
    for (const wrong of ['12.345', '-1', '0', '0.00', '1e3', '', ' 1', '.5', '1,2', '100000000.01', 'NaN']) {
      assert.equal(read(wrong), undefined, wrong);
    }
  });
});

describe('a time of the session', () => {
  it('is read as it was written, with any decimals', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_102_444_800_000 }), (ms) => {
        assert.equal(readUtcTimestamp(utcTimestamp(ms)), ms);
      }),
    );
    assert.equal(readUtcTimestamp('20261123-09:30:00'), Date.UTC(2026, 10, 23, 9, 30));
    assert.equal(readUtcTimestamp('20261123-09:30:00.123456789'), Date.UTC(2026, 10, 23, 9, 30, 0, 123));
    for (const wrong of ['2026-11-23', '20261323-09:30:00', '20261123-25:30:00', '', undefined]) {
      assert.equal(readUtcTimestamp(wrong), undefined);
    }
  });
});

describe("the session's hours", () => {
  const schedule = { days: 'mon-fri', start: '08:30', end: '16:00' } as const;
  const at = (text: string) => sessionStartAt(schedule, Date.parse(text));

  it('are those of Lagos on its working days', () => {
    const start = Date.parse('2026-11-23T07:30:00Z');
    assert.equal(at('2026-11-23T07:29:59.999Z'), undefined);
    assert.equal(at('2026-11-23T07:30:00Z'), start);
    assert.equal(at('2026-11-23T15:00:00Z'), start);
    assert.equal(at('2026-11-23T15:00:01Z'), undefined);
    assert.equal(at('2026-11-22T10:00:00Z'), undefined, 'a Sunday');
    assert.equal(at('2026-11-28T10:00:00Z'), undefined, 'a Saturday');
  });

  it('begin on each of their days and at no other time', () => {
    const minute = 60_000;
    fc.assert(
      fc.property(
        fc.integer({ min: Date.parse('2026-01-01'), max: Date.parse('2030-01-01') }),
        fc.constantFrom('mon-fri', 'mon-sun'),
        fc.integer({ min: 0, max: 1_438 }),
        fc.integer({ min: 1, max: 1_439 }),
        (now, days, startMinute, length) => {
          const endMinute = Math.min(startMinute + length, 1_439);
          const clock = (at: number) => new Date(at * minute).toISOString().slice(11, 16);
          const found = sessionStartAt({ days, start: clock(startMinute), end: clock(endMinute) }, now);
          const lagos = new Intl.DateTimeFormat('en-GB', {
            ...{ timeZone: 'Africa/Lagos', weekday: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit' },
          });
          const part = Object.fromEntries(lagos.formatToParts(now).map(({ type, value }) => [type, value]));
          const second = (Number(part.hour) * 60 + Number(part.minute)) * 60 + Number(part.second);
          const isDay = days === 'mon-sun' || !['Sat', 'Sun'].includes(part.weekday ?? '');
          const isOpen = isDay && second >= startMinute * 60 && second <= endMinute * 60;
          assert.equal(found !== undefined, isOpen);
          if (found === undefined) return;
          assert.ok(found <= now && now - found < 24 * 60 * minute);
          assert.ok(lagos.format(found).endsWith(`${clock(startMinute)}:00`));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('can be whole days, each of which begins again at midnight in Lagos', () => {
    const always = { days: 'mon-sun', start: '00:00', end: '23:59:59' } as const;
    assert.equal(sessionStartAt(always, Date.parse('2026-11-22T22:59:59.999Z')), Date.parse('2026-11-21T23:00:00Z'));
    assert.equal(sessionStartAt(always, Date.parse('2026-11-22T23:00:00Z')), Date.parse('2026-11-22T23:00:00Z'));
  });
});
