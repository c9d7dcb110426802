import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { lengthOf } from '../../src/fix-adapter/wire/data-fields.ts';
import { type Framed, Framing } from '../../src/fix-adapter/wire/framing.ts';
import { checkSum, decode, encode, type Field } from '../../src/fix-adapter/wire/message.ts';
import { wholeNumber, wholeQuantity } from '../../src/fix-adapter/wire/numbers.ts';
import { isAverage, toKobo, toPrice } from '../../src/fix-adapter/wire/prices.ts';
import { readUtcTimestamp, utcTimestamp } from '../../src/fix-adapter/wire/times.ts';

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

  it('a message longer than those that are kept passes by, and its first fields are known', () => {
    const long = encode('FIX.4.4', [
      [35, '8'],
      [34, '7'],
      [58, 'x'.repeat(70_000)],
    ]);
    const bytes = Buffer.concat([long, encode('FIX.4.4', [[35, '0']])]);
    for (const size of [bytes.length, 1_000, 7]) {
      const framing = new Framing();
      const found: Framed[] = [];
      for (let at = 0; at < bytes.length; at += size) found.push(...framing.push(bytes.subarray(at, at + size)));
      const messages = found.flatMap((one) => ('message' in one ? [one.message] : []));
      assert.equal(found.length, 2);
      assert.deepEqual(
        messages.map(({ type, isWhole }) => [type, isWhole]),
        [
          ['8', false],
          ['0', true],
        ],
      );
      assert.equal(messages[0]?.number, 7);
      assert.deepEqual(messages[0]?.bytes, long.subarray(0, 4_096));
    }
  });

  it('a message of 8 MB passes by without being kept in memory', () => {
    const framing = new Framing();
    const some = Buffer.alloc(65_536, 'x');
    const body = 8_000_000;
    framing.push(Buffer.from(`8=FIX.4.4\x019=${body}\x0135=8\x0158=`, 'latin1'));
    assert.equal(framing.passingLength, body);
    const before = process.memoryUsage().arrayBuffers;
    for (let at = 0; at < body - 100_000; at += some.length) assert.deepEqual(framing.push(some), []);
    assert.ok(process.memoryUsage().arrayBuffers - before < 1_000_000);
  });

  it('a length that no message has makes all behind it worthless', () => {
    for (const length of ['8388609', '99999999', '9'.repeat(25)]) {
      const [found] = new Framing().push(
        Buffer.from(`8=FIX.4.4\x019=${length}\x0135=8\x01${'x'.repeat(60)}`, 'latin1'),
      );
      assert.ok(found !== undefined && 'tooLong' in found, length);
    }
    const [found] = new Framing().push(Buffer.from(`8=FIX.4.4\x019=${'0'.repeat(60)}`, 'latin1'));
    assert.ok(found !== undefined && 'garbage' in found);
  });

  it('a message of a long length with a wrong sum is none, and what follows is read', () => {
    const long = encode('FIX.4.4', [
      [35, '8'],
      [58, 'x'.repeat(70_000)],
    ]);
    long[40_000] = 0x79;
    const found = new Framing().push(Buffer.concat([long, encode('FIX.4.4', [[35, '0']])]));
    assert.deepEqual(
      found.map((one) => ('message' in one ? one.message.type : 'none')),
      ['none', 'none', '0'],
    );
  });

  it('may have zeros before its length', () => {
    const plain = encode('FIX.4.4', [[35, '0']]).toString('latin1');
    const padded = plain.replace('9=5', '9=0000005').slice(0, -7);
    const [found] = new Framing().push(Buffer.from(`${padded}10=${checkSum(Buffer.from(padded))}\x01`, 'latin1'));
    assert.ok(found !== undefined && 'message' in found);
    assert.equal(found.message.type, '0');
  });

  it('a message without MsgType in its place is none', () => {
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

  it('is not whole if it has what is no field, and the others are read', () => {
    for (const wrong of ['abc=1', '=1', '0=1', 'x', '', '\x01', '5000=a\x01b', '1234567890123456=1', '-1=2']) {
      const text = `35=B\x0158=one\x01${wrong}\x0111=two\x01`;
      const message = decode(Buffer.from(text, 'latin1'));
      assert.equal(message.isWhole, false, wrong);
      assert.deepEqual([message.get(35), message.get(58), message.get(11)], ['B', 'one', 'two'], wrong);
      assert.equal(message.bytes.toString('latin1'), text);
    }
    const cut = decode(Buffer.from('35=B\x0158=on', 'latin1'));
    assert.deepEqual([cut.isWhole, cut.get(35), cut.get(58)], [false, 'B', undefined]);
  });

  it('keeps at most 4,096 bytes of what it could not read', () => {
    const message = decode(Buffer.from(`35=B\x0158=${'x'.repeat(9_000)}\x01y\x01`, 'latin1'));
    assert.equal(message.bytes.length, 4_096);
    assert.equal(decode(Buffer.from('35=B\x01')).bytes.length, 0);
  });

  it('is read whole where the length of a field of bytes is stated wrongly, as in characters', () => {
    for (const length of ['1', '3', '6', '400', '0']) {
      const message = decode(Buffer.from(`35=8\x01354=${length}\x01355=caf\xc3\xa9\x0111=two\x01`, 'latin1'));
      assert.deepEqual([message.isWhole, message.get(355), message.get(11)], [true, 'caf\xc3\xa9', 'two'], length);
    }
  });

  it('may have separators in every field of bytes that FIX has', () => {
    for (const [length, data] of lengthOf) {
      const message = decode(Buffer.from(`35=8\x01${length}=3\x01${data}=a\x01b\x0111=two\x01`, 'latin1'));
      assert.deepEqual([message.isWhole, message.get(data), message.get(11)], [true, 'a\x01b', 'two'], String(data));
    }
    assert.equal(new Set(lengthOf.values()).size, lengthOf.size);
    for (const known of [89, 91, 96, 213, 355, 446, 622, 1185, 1281, 1402, 1469, 1527, 2112, 2716]) {
      assert.ok([...lengthOf.values()].includes(known), String(known));
    }
  });

  it('is read in time that grows with the bytes, if nothing in it is a field', () => {
    const began = performance.now();
    decode(Buffer.alloc(65_536, 1));
    decode(Buffer.from('1\x01'.repeat(30_000)));
    assert.ok(performance.now() - began < 1_000);
  });

  it('says nothing by a field without a value', () => {
    const message = decode(Buffer.from('35=B\x0158=\x01148=news\x01', 'latin1'));
    assert.deepEqual([message.isWhole, message.get(58), message.get(148)], [true, undefined, 'news']);
  });

  it('a message with a wrong sum or length is passed over', () => {
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

  it('is not written with a value that would end its field, or is no bytes', () => {
    for (const wrong of ['', 'a\x01b', '\u20a6']) assert.throws(() => encode('FIX.4.4', [[58, wrong]]));
  });

  it('echoes every byte that is no separator', () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => byte !== 1));
    const [found] = new Framing().push(
      encode('FIX.4.4', [
        [35, '0'],
        [112, bytes.toString('latin1')],
      ]),
    );
    assert.ok(found !== undefined && 'message' in found);
    assert.deepEqual(Buffer.from(found.message.get(112) ?? '', 'latin1'), bytes);
  });
});

const longest = 70_000;

describe('a whole number of a message', () => {
  it('is read exactly, with any zeros before it', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 999_999_999_999_999 }),
        fc.integer({ min: 0, max: 40 }),
        (number, zeros) => {
          assert.equal(wholeNumber('0'.repeat(zeros) + number), number);
        },
      ),
    );
    for (const wrong of ['', ' 1', '1.0', '-1', '+1', '1e3', '1000000000000000', '0'.repeat(65), undefined]) {
      assert.equal(wholeNumber(wrong), undefined, wrong);
    }
  });

  it('is a quantity also with zeros behind its point, and never loses a share', () => {
    const most = 999_999_999_999_999_999n;
    const point = fc.constantFrom('', '.', '.0', '.000000');
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: most }), fc.integer({ min: 0, max: 30 }), point, (quantity, zeros, end) => {
        assert.equal(wholeQuantity(`${'0'.repeat(zeros)}${quantity}${end}`), quantity);
      }),
    );
    for (const wrong of ['', '1.5', '1.01', '-1', '1e3', '.0', `${most}0`, 'x', undefined]) {
      assert.equal(wholeQuantity(wrong), undefined, wrong);
    }
  });

  it('is the number of a message', () => {
    assert.equal(decode(Buffer.from('35=0\x0134=00000000000000000042\x01')).number, 42);
  });
});

describe('a price of the session', () => {
  it('is exact in both directions', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 10_000_000_000n }), fc.constantFrom('naira', 'kobo'), (kobo, unit) => {
        assert.equal(toKobo(toPrice(kobo, unit), unit), kobo);
      }),
    );
  });

  it('a price that is no whole number of kobo is none', () => {
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

describe('the bounds of numbers and prices', () => {
  it('a number may have 64 characters with its zeros, and 15 digits without them', () => {
    const padded = (digits: string, length: number) => digits.padStart(length, '0');
    assert.equal(wholeNumber(padded('7', 64)), 7);
    assert.equal(wholeNumber(padded('7', 65)), undefined);
    assert.equal(wholeNumber('9'.repeat(15)), 999_999_999_999_999);
    assert.equal(wholeNumber('9'.repeat(16)), undefined);
    assert.equal(wholeQuantity(padded('7', 64)), 7n);
    assert.equal(wholeQuantity(padded('7', 65)), undefined);
    assert.equal(wholeQuantity('9'.repeat(18)), 10n ** 18n - 1n);
    assert.equal(wholeQuantity('9'.repeat(19)), undefined);
  });

  it('a price may be from 1 kobo to 100 million naira', () => {
    for (const [text, unit, kobo] of [
      ['0', 'kobo', undefined],
      ['1', 'kobo', 1n],
      ['10000000000', 'kobo', 10_000_000_000n],
      ['10000000001', 'kobo', undefined],
      ['0.00', 'naira', undefined],
      ['0.01', 'naira', 1n],
      ['100000000.00', 'naira', 10_000_000_000n],
      ['100000000.01', 'naira', undefined],
    ] as const) {
      assert.equal(toKobo(text, unit), kobo, `${text} ${unit}`);
    }
  });

  it('an average may be off by one kobo for each share, or by one of its last digit if that is coarser', () => {
    // 3 shares for 300 kobo.
    for (const [text, unit, isRight] of [
      ['0.99', 'naira', true],
      ['1.01', 'naira', true],
      ['0.989', 'naira', false],
      ['1.011', 'naira', false],
      ['0.990', 'naira', true],
      ['1.010', 'naira', true],
      ['1.1', 'naira', true],
      ['1.2', 'naira', false],
      ['0.9', 'naira', true],
      ['0.8', 'naira', false],
      ['2', 'naira', true],
      ['3', 'naira', false],
      ['101', 'kobo', true],
      ['102', 'kobo', false],
      ['99', 'kobo', true],
      ['98', 'kobo', false],
      ['100.9', 'kobo', true],
      ['101.1', 'kobo', false],
    ] as const) {
      assert.equal(isAverage(text, unit, 300n, 3n), isRight, `${text} ${unit}`);
    }
  });
});
