/** The proofs in the answer to a Logon with a new password. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { outcomeOf, passwordNotices } from '../../../src/fix-adapter/password/outcome.ts';

describe('the answer to a Logon with a new password', () => {
  const cases: readonly [isAccepted: boolean, sessionStatus: string | undefined, outcome: string][] = [
    [true, '1', 'changed'],
    [true, '0', 'unknown'],
    [true, undefined, 'unknown'],
    [true, '2', 'unknown'],
    [true, '3', 'refused'],
    [false, '3', 'refused'],
    [false, '5', 'refused'],
    [false, '1', 'changed'],
    [false, '8', 'unknown'],
    [false, undefined, 'refused'],
  ];
  for (const [isAccepted, sessionStatus, outcome] of cases) {
    const what = `${isAccepted ? 'a Logon' : 'a Logout'} with SessionStatus ${sessionStatus ?? 'left out'}`;
    it(`means ${outcome} if it is ${what}`, () => assert.equal(outcomeOf({ isAccepted, sessionStatus }), outcome));
  }

  it('notifies an operator of what to do, and of nothing if there is nothing to do', () => {
    const lines = (sessionStatus: string | undefined, outcome?: 'changed' | 'refused' | 'unknown') =>
      passwordNotices({ isAccepted: true, sessionStatus }, outcome)
        .map(({ level, line }) => `${level}: ${line}`)
        .join();
    assert.match(lines('1', 'changed'), /^warn: .*set MARINA_FIX_PASSWORD to the new one/);
    assert.match(lines('3', 'refused'), /^error: .*does not comply/);
    assert.match(lines('0', 'unknown'), /^error: .*ask the broker/);
    assert.match(lines('2'), /^warn: .*due to expire/);
    assert.match(lines('8'), /^error: .*has expired/);
    assert.match(lines('5'), /^error: .*user name or the password/);
    assert.equal(lines(undefined), '');
    assert.equal(lines('0'), '');
  });
});
