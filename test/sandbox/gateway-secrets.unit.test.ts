import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { operatorTokenLine, parseOperatorTokens } from '../../src/kit/operator-tokens.ts';
import { Advice } from '../../src/sandbox/advice.ts';
import { gatewaySecrets } from '../../src/sandbox/gateway-secrets.ts';
import { temporaryFolder } from '../support/folders.ts';

describe('the key ring and the operators of a sandbox', () => {
  const folder = temporaryFolder();
  const make = (given: Record<string, string> = {}) => gatewaySecrets({ dataDir: folder, given });
  const file = (name: string, content: string) => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };

  it('are the same at the next start', () => {
    const first = make();
    assert.match(first.secretKey, /^[0-9a-f]{64}$/);
    assert.deepEqual(Object.keys(first.roleTokens), ['read', 'support', 'trading', 'treasury', 'on_call', 'releases']);
    assert.deepEqual(make(), first);
  });

  it('are in files that keep the lines which somebody adds', () => {
    const { secretKey, variables } = make();
    const ring = `${'ab'.repeat(32)}\n${secretKey}`;
    writeFileSync(variables.MARINA_SECRET_KEY_FILE ?? '', `${ring}\n`);
    const line = operatorTokenLine('bola', 'a token of Bola with 24 characters', Date.UTC(2099, 0), ['trading']);
    const tokens = variables.MARINA_OPERATOR_TOKENS_FILE ?? '';
    writeFileSync(tokens, `${readFileSync(tokens, 'utf8')}${line}\n`);
    const again = make();
    assert.equal(again.secretKey, ring);
    assert.deepEqual(again.variables, variables);
    const names = parseOperatorTokens(readFileSync(tokens, 'utf8')).map(({ name }) => name);
    assert.deepEqual(names, [
      'operator',
      'second',
      'read',
      'support',
      'trading',
      'treasury',
      'on_call',
      'releases',
      'bola',
    ]);
  });

  it('are those of the variables or the files that are given', () => {
    const MARINA_SECRET_KEY = '42'.repeat(32);
    const MARINA_OPERATOR_TOKENS = 'ada:ada-operator-token-0123456789,bola:bola-operator-token-0123456789';
    const given = make({ MARINA_SECRET_KEY, MARINA_OPERATOR_TOKENS });
    assert.deepEqual(given, {
      secretKey: MARINA_SECRET_KEY,
      operatorToken: 'ada-operator-token-0123456789',
      secondToken: 'bola-operator-token-0123456789',
      roleTokens: {},
      variables: { MARINA_SECRET_KEY, MARINA_OPERATOR_TOKENS },
    });
    const files = {
      MARINA_SECRET_KEY_FILE: file('ring', `${MARINA_SECRET_KEY}\n`),
      MARINA_OPERATOR_TOKENS_FILE: file('tokens', `${MARINA_OPERATOR_TOKENS.replace(',', '\n')}\n`),
    };
    assert.deepEqual(make(files), { ...given, variables: files });
  });

  it('end the start if a given file of tokens has only hashes of them', () => {
    const line = operatorTokenLine('ada', 'a token of Ada with 24 characters', Date.UTC(2099, 0), ['admin']);
    assert.throws(() => make({ MARINA_OPERATOR_TOKENS_FILE: file('hashes', `${line}\n`) }), Advice);
  });
});
