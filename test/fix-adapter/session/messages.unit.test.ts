import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { askedAgain, headerFault } from '../../../src/fix-adapter/session/messages.ts';
import { type Field, FixMessage } from '../../../src/fix-adapter/wire/message.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import { utcTimestamp } from '../../../src/fix-adapter/wire/times.ts';

const now = Date.UTC(2026, 2, 2, 9, 30);
const settings = { beginString: 'FIX.4.4' as const, senderCompId: 'US', targetCompId: 'THEM' };
const message = (number: string, sentAt: number) =>
  new FixMessage([
    [tags.MsgType, '0'],
    [tags.MsgSeqNum, number],
    [tags.SenderCompID, 'THEM'],
    [tags.TargetCompID, 'US'],
    [tags.SendingTime, utcTimestamp(sentAt)],
  ] as Field[]);

describe('the header of a message', () => {
  it('the header of a message has a time that is at most two minutes from our clock, before and ahead', () => {
    for (const [offMs, isRight] of [
      [119_999, true],
      [120_000, true],
      [120_001, false],
    ] as const) {
      for (const sentAt of [now - offMs, now + offMs]) {
        const fault = headerFault(message('1', sentAt), 'FIX.4.4', settings, now);
        assert.equal(fault?.text, isRight ? undefined : 'SendingTime accuracy problem', `${sentAt - now} ms`);
      }
    }
  });

  it('the header of a message has a number from 1', () => {
    assert.equal(headerFault(message('1', now), 'FIX.4.4', settings, now), undefined);
    assert.equal(headerFault(message('0', now), 'FIX.4.4', settings, now)?.text, 'MsgSeqNum is missing');
  });
});

describe('a ResendRequest', () => {
  it('a ResendRequest asks for numbers from 1 to an end that is no earlier, where 0 is no end', () => {
    const asked = (begin: string, end: string) =>
      askedAgain(
        new FixMessage([
          [tags.BeginSeqNo, begin],
          [tags.EndSeqNo, end],
        ] as Field[]),
      );
    assert.equal(asked('0', '0'), undefined);
    assert.equal(asked('0', '5'), undefined);
    assert.deepEqual(asked('1', '1'), { from: 1, to: 1 });
    assert.equal(asked('2', '1'), undefined);
    assert.deepEqual(asked('2', '2'), { from: 2, to: 2 });
    assert.deepEqual(asked('2', '0'), { from: 2, to: Number.MAX_SAFE_INTEGER });
  });
});
