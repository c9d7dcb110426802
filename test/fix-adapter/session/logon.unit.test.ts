import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SessionAddresses } from '../../../src/fix-adapter/session/addresses.ts';
import { LogonTries, logonFields, readLogonAnswer } from '../../../src/fix-adapter/session/logon.ts';
import {
  askedAgain,
  headerFault,
  isAdministrative,
  withRefMsgType,
} from '../../../src/fix-adapter/session/messages.ts';
import { Readiness } from '../../../src/fix-adapter/session/readiness.ts';
import type { SessionSettings } from '../../../src/fix-adapter/session/types.ts';
import { type Field, FixMessage } from '../../../src/fix-adapter/wire/message.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import { utcTimestamp } from '../../../src/fix-adapter/wire/times.ts';
import { fc } from '../../support/properties.ts';

function message(type: string, number: number, ...fields: readonly Field[]): FixMessage {
  return new FixMessage([[tags.MsgType, type], [tags.MsgSeqNum, String(number)], ...fields]);
}

describe('a Logon', () => {
  const settings = {
    ...{ beginString: 'FIX.4.4', heartbeatMs: 30_000, username: undefined, sendsNextExpected: false },
    password: () => undefined,
  } as unknown as SessionSettings;

  it('has what the settings say, and nothing else', () => {
    const plain = logonFields(settings, { resets: false, nextIn: 7 });
    assert.deepEqual(plain, [
      [98, '0'],
      [108, '30'],
    ]);
    const all = {
      ...settings,
      beginString: 'FIXT.1.1',
      username: 'u',
      password: () => 'p',
      sendsNextExpected: true,
    } as const;
    assert.deepEqual(logonFields(all, { resets: true, nextIn: 7 }).slice(2), [
      [141, 'Y'],
      [789, '7'],
      [553, 'u'],
      [554, 'p'],
      [1137, '9'],
    ]);
  });

  const reset = [tags.ResetSeqNumFlag, 'Y'] as const;
  const expecting = (number: number) => [tags.NextExpectedMsgSeqNum, String(number)] as const;
  const accepted = (isEarly: boolean, fillFrom?: number) => ({ kind: 'accepted', isEarly, fillFrom });
  for (const [what, answer, context, expected] of [
    ['one with the expected number', message('A', 5), {}, accepted(false)],
    ['one with a higher number', message('A', 9), {}, accepted(true)],
    ['one with a lower number', message('A', 4), {}, { kind: 'wrong', trouble: 'number_too_low' }],
    ['a reset that was not asked for', message('A', 5, reset), {}, { kind: 'wrong', trouble: 'reset_not_asked_for' }],
    ['a reset that was asked for', message('A', 1, reset), { resets: true, nextIn: 1 }, accepted(false)],
    ['no reset although it was asked for', message('A', 1), { resets: true, nextIn: 1 }, accepted(false)],
    [
      'one that cannot be read',
      new FixMessage(message('A', 5).fields, false),
      {},
      { kind: 'wrong', trouble: 'garbage' },
    ],
    ['a Logout', message('5', 5, [58, 'bad password']), {}, { kind: 'refused', text: 'bad password' }],
    ['a Reject', message('3', 5, [373, '1'], [58, 'no']), {}, { kind: 'refused', text: 'no, reason 1' }],
    ['a Logout without a text', message('5', 5), {}, { kind: 'refused', text: 'no reason was given' }],
    ['anything else', message('0', 5), {}, { kind: 'unexpected' }],
    ['what it expects next, where that is not honoured', message('A', 5, expecting(2)), {}, accepted(false)],
    ['that it lacks nothing', message('A', 5, expecting(11)), { honoursNextExpected: true }, accepted(false)],
    ['that it lacks the Logon itself', message('A', 5, expecting(10)), { honoursNextExpected: true }, accepted(false)],
    ['that it lacks earlier ones', message('A', 5, expecting(9)), { honoursNextExpected: true }, accepted(false, 9)],
    ['that it lacks all', message('A', 5, expecting(1)), { honoursNextExpected: true }, accepted(false, 1)],
    [
      'that it expects more than was sent',
      message('A', 5, expecting(12)),
      { honoursNextExpected: true },
      { kind: 'wrong', trouble: 'number_too_low' },
    ],
  ] as const) {
    it(`may be answered by ${what}`, () => {
      const usual = { resets: false, nextIn: 5, ownNumber: 10, honoursNextExpected: false };
      const found = readLogonAnswer(answer, { ...usual, ...context });
      assert.deepEqual({ ...found, ...expected }, found);
    });
  }
});

describe('the tries of a Logon', () => {
  const occasion = { password: 'p', startedAt: 1 };

  it('are used up after so many refusals in a row', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10 }), fc.array(fc.boolean(), { maxLength: 40 }), (limit, answers) => {
        const tries = new LogonTries(limit);
        let inRow = 0;
        for (const isAccepted of answers) {
          if (!tries.mayTry(occasion)) break;
          if (isAccepted) tries.accepted();
          else tries.refused('no', occasion);
          inRow = isAccepted ? 0 : inRow + 1;
          assert.equal(tries.areUsedUp, inRow === limit);
        }
        assert.ok(tries.refusals <= limit);
      }),
    );
  });

  it('begin again with another password, on another session day, and when an operator says so', () => {
    const usedUp = () => {
      const tries = new LogonTries(1);
      tries.refused('locked', occasion);
      assert.deepEqual([tries.mayTry(occasion), tries.reason], [false, 'locked']);
      return tries;
    };
    assert.equal(usedUp().mayTry({ ...occasion, password: 'q' }), true);
    assert.equal(usedUp().mayTry({ ...occasion, startedAt: 2 }), true);
    const tries = usedUp();
    tries.resume();
    assert.equal(tries.mayTry(occasion), true);
  });
});

describe('the readiness of a session', () => {
  it('is proven by the answer to any test that is under way', () => {
    for (const answered of [1, 2]) {
      const readiness = new Readiness();
      const tests = [readiness.nextTest(), readiness.nextTest()];
      assert.equal(readiness.isProven, false);
      readiness.heartbeat(tests[answered - 1]);
      assert.equal(readiness.isProven, true);
    }
  });

  it('is not proven by another sign', () => {
    const readiness = new Readiness();
    readiness.nextTest();
    for (const id of [undefined, '', 'ready-0', 'ready-2', 'ready-', 'ready-1 ', 'quiet-1', '1'])
      readiness.heartbeat(id);
    assert.equal(readiness.isProven, false);
  });

  it('needs a new test after one was passed over by a gap fill', () => {
    const readiness = new Readiness();
    const first = readiness.nextTest();
    readiness.testsPassedOver();
    const second = readiness.nextTest();
    readiness.heartbeat(first);
    assert.equal(readiness.isProven, false);
    readiness.heartbeat(second);
    assert.equal(readiness.isProven, true);
    readiness.testsPassedOver();
    assert.equal(readiness.isProven, false);
  });
});

describe('the addresses of a session', () => {
  it('are tried in turn until one comes up, which is then tried again first', () => {
    const addresses = new SessionAddresses(['a', 'b', 'c']);
    const tried = [false, false, true, true, false, false, false].map((wasUp) => {
      const address = addresses.next(1);
      addresses.ended(wasUp);
      return address;
    });
    assert.deepEqual(tried, ['a', 'b', 'c', 'c', 'c', 'a', 'b']);
  });

  it('begin with the first one on each session day', () => {
    const addresses = new SessionAddresses(['a', 'b']);
    addresses.next(1);
    addresses.ended(false);
    assert.equal(addresses.next(1), 'b');
    addresses.ended(true);
    assert.equal(addresses.next(2), 'a');
  });
});

describe('a message of the session', () => {
  const settings = { beginString: 'FIX.4.4', senderCompId: 'US', targetCompId: 'THEM' } as const;
  const now = Date.UTC(2026, 10, 23);
  const header = (more: Readonly<Record<number, string | undefined>> = {}): FixMessage => {
    const all = { 35: '0', 34: '5', 49: 'THEM', 56: 'US', 52: utcTimestamp(now), ...more };
    const fields = Object.entries(all).flatMap(([tag, value]): Field[] =>
      value === undefined ? [] : [[Number(tag), value]],
    );
    return new FixMessage(fields);
  };

  it('has names, a number and a time that are right', () => {
    assert.equal(headerFault(header(), 'FIX.4.4', settings, now), undefined);
    for (const [what, fields, reject] of [
      ['another sender', { 49: 'SOMEBODY' }, '9'],
      ['no sender', { 49: undefined }, '9'],
      ['another target', { 56: 'THEM' }, '9'],
      ['no number', { 34: undefined }, undefined],
      ['number 0', { 34: '0000' }, undefined],
      ['no time', { 52: undefined }, '10'],
      ['a time that is too old', { 52: utcTimestamp(now - 120_001) }, '10'],
      ['a time that is to come', { 52: utcTimestamp(now + 120_001) }, '10'],
    ] as const) {
      const found = headerFault(header(fields), 'FIX.4.4', settings, now);
      assert.ok(found !== undefined, what);
      assert.equal(found.reject, reject, what);
    }
    for (const ms of [-120_000, 120_000]) {
      assert.equal(headerFault(header({ 52: utcTimestamp(now + ms) }), 'FIX.4.4', settings, now), undefined);
    }
    assert.match(headerFault(header(), 'FIXT.1.1', settings, now)?.text ?? '', /BeginString/);
  });

  it('asks for numbers again, with an end or without', () => {
    for (const [begin, end, expected] of [
      ['3', '5', { from: 3, to: 5 }],
      ['0003', '0000', { from: 3, to: Number.MAX_SAFE_INTEGER }],
      ['3', '3', { from: 3, to: 3 }],
      ['3', '2', undefined],
      ['0', '0', undefined],
      ['x', '0', undefined],
    ] as const) {
      assert.deepEqual(askedAgain(message('2', 1, [7, begin], [16, end])), expected, `${begin} to ${end}`);
    }
    assert.deepEqual(askedAgain(message('2', 1, [7, '3'])), { from: 3, to: Number.MAX_SAFE_INTEGER });
  });

  it('a Reject says of what type the rejected message was, if it was one of the session', () => {
    const typeOf = (number: number) => (number === 7 ? '4' : undefined);
    const typesOf = (...fields: readonly Field[]) => withRefMsgType(message('3', 1, ...fields), typeOf).get(372);
    assert.equal(typesOf([45, '7']), '4');
    assert.equal(typesOf([45, '0007']), '4');
    assert.equal(typesOf([45, '8']), undefined);
    assert.equal(typesOf(), undefined);
    assert.equal(typesOf([45, '7'], [372, 'D']), 'D', 'the other side knows better');
  });

  it('is administrative by its type', () => {
    assert.deepEqual(
      ['0', '1', '2', '3', '4', '5', '8', '9', 'A', 'AE', 'B', 'D', 'j', '', '00'].filter(isAdministrative),
      ['0', '1', '2', '4', '5', 'A'],
    );
  });
});
