import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isLoggedOut } from '../../../src/fix-adapter/operations/changes.ts';

describe('a session whose numbers an operator may set', () => {
  it('a session is logged out once its process has ended it for the last request, or if no process has it', () => {
    const ended = { wish: 'out', state: 'logged_out', obeyed: 4n, request: 4n, fence: 7n } as const;
    const cases: readonly (readonly [Partial<Parameters<typeof isLoggedOut>[0]>, bigint | undefined, boolean])[] = [
      [{}, 7n, true],
      [{}, undefined, true],
      [{ state: 'up' as never, obeyed: 3n }, undefined, true],
      [{ wish: 'on' as never }, 7n, false],
      [{ wish: 'on' as never }, undefined, false],
      [{ state: 'up' as never }, 7n, false],
      // It logged out before, and has not heard yet that it was asked to be on and then out again.
      [{ obeyed: 3n }, 7n, false],
      [{ obeyed: 2n }, 7n, false],
      // A former process said so.
      [{ fence: 6n }, 7n, false],
      [{ fence: 8n }, 7n, false],
    ];
    for (const [more, holder, isIt] of cases) {
      const said = `${Object.entries(more).join(' ')}, held by ${holder}`;
      assert.equal(isLoggedOut({ ...ended, ...more }, holder), isIt, said);
    }
  });
});
