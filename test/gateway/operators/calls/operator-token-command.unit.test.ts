import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { operatorTokenCommand } from '../../../../src/gateway/operators/calls/operator-token-command.ts';
import { identifyOperators, parseOperatorTokens } from '../../../../src/kit/operator-tokens.ts';
import { fixed } from '../../../../src/kit/watched-files.ts';

const dayMs = 86_400_000;
const now = Date.UTC(2026, 2, 2);

/** Runs the command, and reads what it printed. */
function run(t: TestContext, ...args: string[]) {
  const printed: string[] = [];
  const complaints: string[] = [];
  t.mock.method(console, 'log', (text: string) => void printed.push(text));
  t.mock.method(console, 'error', (text: string) => void complaints.push(text));
  t.mock.timers.enable({ apis: ['Date'], now });
  try {
    return { code: operatorTokenCommand(args), printed, complaints };
  } finally {
    t.mock.timers.reset();
    t.mock.restoreAll();
  }
}

describe('the command that makes an operator token', () => {
  it('the command prints a token and the line that admits it, for as long and for as much as it was asked', (t) => {
    for (const [args, name, days, roles] of [
      [['ada'], 'ada', 90, ['read']],
      [['ada.b_c-9', '--days', '1'], 'ada.b_c-9', 1, ['read']],
      [['ada', '--days', '3650'], 'ada', 3_650, ['read']],
      [['ada', '--role', 'treasury+support', '--days=0030'], 'ada', 30, ['support', 'treasury']],
      [['--role=admin', 'a'.repeat(64)], 'a'.repeat(64), 90, ['admin']],
    ] as const) {
      const { code, printed } = run(t, ...args);
      assert.equal(code, 0);
      const [, token = '', line = ''] = /^token: (\S+)\nline: {2}(.*)$/.exec(printed.join('\n')) ?? [];
      const [parsed] = parseOperatorTokens(line);
      assert.deepEqual([parsed?.name, parsed?.expiresAt, parsed?.roles], [name, now + days * dayMs, roles]);
      const identify = identifyOperators(fixed(parseOperatorTokens(line)), () => now);
      assert.equal(identify([`Bearer ${token}`])?.name, name, 'the line admits the token');
    }
  });

  it('the command says how it is called, makes no token and ends with 2 if it is called wrongly', (t) => {
    for (const args of [
      [],
      [''],
      ['ada b'],
      ['a'.repeat(65)],
      ['ada', 'eve'],
      ['ada', '--days', '0'],
      ['ada', '--days', '3651'],
      ['ada', '--days', '12345'],
      ['ada', '--days', '1.5'],
      ['ada', '--days', ''],
      ['ada', '--role', 'king'],
      ['ada', '--role', ''],
      ['ada', '--role', 'read,admin'],
      ['ada', '--nothing'],
    ]) {
      const { code, printed, complaints } = run(t, ...args);
      assert.deepEqual([code, printed], [2, []], args.join(' '));
      assert.match(complaints.join(), /^usage: node src\/main\.js operator-token NAME/);
    }
  });
});
