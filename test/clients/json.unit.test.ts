import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Marina, NoAnswerError, parseJson, UnsafeIntegerError, writeJson } from '@marina/client';
import { fc } from '../support/properties.ts';

const great = '9007199254740993';

/** A client whose every request is answered with these texts in turn, the last one again and again. */
function answering(...texts: string[]) {
  const sent: Request[] = [];
  const answer: typeof fetch = async (url, init) => {
    sent.push(new Request(url as string, init));
    return new Response(texts[Math.min(sent.length, texts.length) - 1] ?? '', { status: 200 });
  };
  return { sent, options: { baseUrl: 'http://127.0.0.1:1', key: 'marina_test_key', fetch: answer } };
}

describe('the JSON reader of the client for TypeScript', () => {
  const length = 240_000;
  const repeated = (text: string) => text.repeat(length / text.length);
  const hostile: Record<string, string> = {
    'escaped quotes': repeated('\\"'),
    'escaped quotes in a text without an end': `"${repeated('\\"')}`,
    'quotes and escaped line ends': repeated('"\\\n'),
    'escaped quotes before an escaped line end': `"${repeated('\\"')}\\\n`,
    quotes: repeated('"'),
    backslashes: `"${repeated('\\')}`,
    'texts and blanks': repeated('"a"      '),
    'marked texts and blanks': `[${repeated('"\ue0001" ')}`,
    'a text and blanks without a colon': `"\ue000"${repeated(' ')}1`,
    'one number of many digits': repeated('7'),
    'a negative number of many digits': `-${repeated('7')}`,
    'signs and points': repeated('-1.0e+'),
    'opening brackets': repeated('['),
    'opening and closing brackets': repeated('[') + repeated(']'),
    'nested objects': repeated('{"a":'),
    zeros: repeated('0'),
    commas: repeated('1,'),
  };
  for (const [what, text] of Object.entries(hostile)) {
    it(`refuses 240 kB of ${what} in linear time`, () => {
      const before = process.cpuUsage();
      assert.throws(() => parseJson(text), SyntaxError);
      const { user } = process.cpuUsage(before);
      assert.ok(user < 2_000_000, `it took ${user / 1_000} ms of the processor`);
    });
  }

  it('reads texts of some megabytes, also with what looks like numbers, marks and escapes', () => {
    for (const unit of ['\\', '"', '\ue000', '1', ' :', '\n']) {
      const value = { text: unit.repeat(2_000_000), version: 1n };
      assert.deepEqual(parseJson(writeJson(value)), value);
    }
  });

  it('reads the longest answer that the client takes within seconds, whatever is in it', () => {
    const numbers = ['1,', '12345,', '-7,', '9007199254740993,', '1.5,', '-0,'];
    for (const unit of [...numbers, '"a",', '[],', '{},', '"\ue000",', '{"a":1},']) {
      const before = process.cpuUsage();
      parseJson(`[${unit.repeat((8 * 2 ** 20) / unit.length)}0]`);
      const { user } = process.cpuUsage(before);
      const bound = unit === '1,' ? 3_000_000 : 6_000_000;
      assert.ok(user < bound, `${unit} took ${user / 1_000} ms of the processor`);
    }
  });

  it('gives what a reader of each number by itself gives, in every mode', () => {
    const digits = fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }).map(String);
    const fractions = fc.tuple(digits, fc.nat()).map(([whole, part]) => `${whole}.${part}`);
    const powers = fc.tuple(digits, fc.integer({ min: -30, max: 30 })).map(([whole, power]) => `${whole}e${power}`);
    const odd = fc.constantFrom('-0', '0', '-0.0', '1e400', '1E+2', '999999999999999', '1000000000000000');
    const texts = fc.constantFrom('\ue000', '\ue0001', '1', '-', 'e', '\\', '"').map((text) => JSON.stringify(text));
    const escapes = fc.constantFrom('"\\ue000"', '"\\uE0007"');
    const each = fc.oneof(digits, fractions, powers, odd, texts, escapes);
    fc.assert(
      fc.property(fc.array(each), fc.constantFrom('', ' ', '\n'), (items, blank) => {
        const expected = items.map((item) => (/^-?\d+$/.test(item) ? BigInt(item) : JSON.parse(item)));
        const list = `[${items.join(`${blank},${blank}`)}]`;
        assert.deepEqual(parseJson(list), expected);
        const named = `{${items.map((item, at) => `"\ue000${at}"${blank}:${blank}${item}`).join(',')}}`;
        assert.deepEqual(Object.values(parseJson(named) as object), expected);
        const asTexts = expected.map((value) => (typeof value === 'bigint' ? String(value) : value));
        assert.deepEqual(parseJson(list, { integers: 'string' }), asTexts);
        if (expected.every((value) => typeof value !== 'bigint' || Number.isSafeInteger(Number(value)))) {
          const asNumbers = expected.map((value) => (typeof value === 'bigint' ? Number(value) : value));
          assert.deepEqual(parseJson(list, { integers: 'number' }), asNumbers);
        } else assert.throws(() => parseJson(list, { integers: 'number' }), UnsafeIntegerError);
      }),
    );
  });

  it('refuses what is no number, and a number as a name', () => {
    const wrong = [
      '1.',
      '.5',
      '-',
      '+1',
      '1e',
      '1e+',
      '01',
      '-01',
      '0x1',
      '1-2',
      '1.0.0',
      '1e1e1',
      '12345678901234567.',
    ];
    for (const number of [...wrong, '012345678901234567', '-.5', '1_0', 'Infinity', '--1']) {
      assert.throws(() => parseJson(`[${number}]`), SyntaxError, number);
    }
    for (const name of ['1', '12345678901234567890', '-0', '1.0', '1.0 ']) {
      assert.throws(() => parseJson(`{${name}:1}`), SyntaxError, name);
    }
  });

  it('refuses an answer that is longer than any of the gateway', async () => {
    const { options } = answering(`["${'a'.repeat(9 * 2 ** 20)}"]`);
    const marina = new Marina({ ...options, maxAttempts: 1 });
    await assert.rejects(marina.getWallet(), (error) => /longer than/.test(String((error as Error).cause)));
  });

  it('changes no prototype', () => {
    const value = parseJson('{"__proto__":{"polluted":1},"constructor":2}') as Record<string, unknown>;
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
    assert.deepEqual(Object.getOwnPropertyDescriptor(value, '__proto__')?.value, { polluted: 1n });
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  });

  it('keeps the deadline of a call when the answer is hostile', async () => {
    for (const text of [hostile['escaped quotes'] ?? '', hostile['opening brackets'] ?? '']) {
      const { options } = answering(text);
      const marina = new Marina({ ...options, deadlineMs: 300 });
      const before = process.cpuUsage();
      await assert.rejects(marina.getWallet(), NoAnswerError);
      assert.ok(process.cpuUsage(before).user < 2_000_000);
    }
  });

  it('keeps the deadline of a call when the answer takes long to read', async (context) => {
    const { options } = answering(`{"has_more":false,"next_cursor":"c","data":[${'{"a":[1]},'.repeat(500_000)}{}]}`);
    let nowMs = 0;
    const clock = context.mock.method(performance, 'now', () => nowMs);
    const marina = new Marina({
      ...{ ...options, deadlineMs: 2_000, maxAttempts: 1 },
      onAnswer: () => clock.mock.mockImplementation(() => (nowMs += 500)),
    });
    await assert.rejects(marina.listOrders().page(), (error) => {
      return error instanceof NoAnswerError && (error.cause as Error).name === 'TimeoutError';
    });
    assert.ok(nowMs < 5_000, 'it is not read to its end');
  });

  it('ends an attempt at its deadline although the given fetch ignores its signal', async () => {
    const silent = () => new Promise<Response>(() => undefined);
    const marina = new Marina({ baseUrl: 'http://127.0.0.1:1', key: 'key', fetch: silent, deadlineMs: 50 });
    const alive = setInterval(() => undefined, 1_000);
    await assert.rejects(
      marina.getWallet(),
      (error) => error instanceof NoAnswerError && (error.cause as Error).name === 'TimeoutError',
    );
    clearInterval(alive);
  });
});

describe('the integers of the client for TypeScript', () => {
  const text = '{"least":-9007199254740991,"sum":9007199254740991,"none":-0,"list":[1,"2"]}';

  it('are bigints, numbers or texts, as the program asks', () => {
    const sums = { least: -9_007_199_254_740_991, sum: 9_007_199_254_740_991, none: 0, list: [1, '2'] };
    assert.deepEqual(parseJson(text, { integers: 'number' }), sums);
    const texts = { least: '-9007199254740991', sum: '9007199254740991', none: '0', list: ['1', '2'] };
    assert.deepEqual(parseJson(text, { integers: 'string' }), texts);
    const exact = { least: -9_007_199_254_740_991n, sum: 9_007_199_254_740_991n, none: 0n, list: [1n, '2'] };
    assert.deepEqual(parseJson(text), exact);
    assert.deepEqual(parseJson(text, { integers: 'bigint' }), exact);
  });

  it('are an error as numbers if a number cannot hold them exactly', () => {
    for (const digits of [great, '9007199254740992', `-${great}`, '9223372036854775807', '9'.repeat(400)]) {
      assert.throws(() => parseJson(`[${digits}]`, { integers: 'number' }), { name: 'UnsafeIntegerError', digits });
      assert.deepEqual(parseJson(`[${digits}]`, { integers: 'string' }), [digits]);
    }
  });

  it('refuse another word, also of a program without types', () => {
    const integers = 'float' as 'number';
    assert.throws(() => parseJson('1', { integers }), TypeError);
    assert.throws(() => new Marina({ baseUrl: 'http://127.0.0.1:1', key: 'key', integers }), TypeError);
  });

  it('have the type that was asked for in answers, lists and events', async () => {
    const event = `{"id":"evt_1","version":7,"data":{"object":"order","quantity":100}}`;
    const page = `{"has_more":false,"next_cursor":"c","data":[${event}]}`;
    const numbers = new Marina({ ...answering('{"available_kobo":5}').options, integers: 'number' });
    const available: number = (await numbers.getWallet()).available_kobo;
    assert.equal(available, 5);
    const strings = new Marina({ ...answering(page).options, integers: 'string' });
    for await (const each of strings.followEvents()) {
      const version: string = each.version;
      assert.equal(version, '7');
      break;
    }
    const [listed] = await strings.listEvents().toArray();
    assert.equal(listed?.version, '7');
    const bigints = new Marina(answering('{"available_kobo":5}').options);
    const exact: bigint = (await bigints.getWallet()).available_kobo;
    assert.equal(exact, 5n);
  });

  it('keep the Idempotency-Key of a call whose answer no number can hold, and are not asked for again', async () => {
    const { sent, options } = answering(`{"id":"alc_1","amount_kobo":${great}}`);
    const marina = new Marina({ ...options, integers: 'number' });
    const call = marina.createAllocation({ account: 'LAG0012345', amount_kobo: 5 }, { idempotencyKey: 'mine' });
    await assert.rejects(call, (error) => {
      assert.ok(error instanceof UnsafeIntegerError);
      assert.deepEqual([error.digits, error.call?.idempotencyKey], [great, 'mine']);
      assert.equal(error.call?.isOutcomeUnknown, true);
      return true;
    });
    assert.equal(sent.length, 1);
  });

  it('are sent as whole numbers, also if the program gave bigints a toJSON', () => {
    const prototype = BigInt.prototype as { toJSON?: () => string };
    prototype.toJSON = function (this: bigint) {
      return `${this}`;
    };
    try {
      assert.equal(writeJson({ amount_kobo: 10n ** 17n, list: [1n] }), '{"amount_kobo":100000000000000000,"list":[1]}');
    } finally {
      delete prototype.toJSON;
    }
  });
});
