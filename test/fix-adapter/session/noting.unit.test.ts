import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MessagePlace, MessageTap } from '../../../src/fix-adapter/messages/tap.ts';
import { Noting } from '../../../src/fix-adapter/session/noting.ts';
import { FixMessage } from '../../../src/fix-adapter/wire/message.ts';

/** A message log in memory: what became of each message, and its place. */
function begin() {
  const noted: string[] = [];
  let nth = 0n;
  const place = (): MessagePlace => {
    nth += 1n;
    return { nth, at: 0 };
  };
  const tap: MessageTap = {
    place,
    note: ({ number, outcome, problem }, at = place()) =>
      void noted.push(`${number} ${outcome} at ${at.nth}${problem === undefined ? '' : `: ${problem}`}`),
  };
  return { noting: new Noting(tap), noted };
}

const message = (number: number, type = '8', isWhole = true) =>
  new FixMessage(
    [
      [35, type],
      [34, String(number)],
    ],
    isWhole,
  );

describe('the notes of what became of messages', () => {
  it('a message is noted once, by the worst that was said of it while it was handled', () => {
    const { noting, noted } = begin();
    const cases: readonly ((noting: Noting) => void)[] = [
      () => {},
      (one) => one.isRejected(),
      (one) => one.is('gap'),
      (one) => {
        one.is('duplicate');
        one.isRejected();
      },
      (one) => {
        one.isRejected();
        one.is('refused');
      },
    ];
    for (const [at, say] of cases.entries()) {
      const one = message(at + 1);
      noting.begins(one);
      say(noting);
      noting.ends(one);
    }
    assert.deepEqual(noted, ['1 applied at 1', '2 refused at 2', '3 gap at 3', '4 duplicate at 4', '5 refused at 5']);
  });

  it('a message that waits for its commit is noted with it, at the place where it came, as far as it can be applied', () => {
    const { noting, noted } = begin();
    const [report, news, broken] = [message(1), message(2, 'B'), message(3, '8', false)];
    const given = message(4, '3');
    const rejected = message(4, '3');
    for (const one of [report, news, broken, rejected]) {
      noting.begins(one);
      noting.waits(one, one === rejected ? given : one);
      noting.ends(one);
    }
    assert.deepEqual(noted, []);
    const heartbeat = message(5, '0');
    noting.begins(heartbeat);
    noting.ends(heartbeat);
    noting.stored([report, news, broken, given]);
    assert.deepEqual(noted, [
      '5 applied at 5',
      '1 applied at 1',
      '2 refused at 2',
      '3 unreadable at 3: what follows cannot be read',
      '4 applied at 4',
    ]);
  });

  it('a message whose commit failed is noted as not applied, at the place where it came', () => {
    const { noting, noted } = begin();
    const one = message(1);
    noting.begins(one);
    noting.waits(one);
    noting.ends(one);
    noting.notStored([one]);
    assert.deepEqual(noted, ['1 not_applied at 1']);
  });
});
