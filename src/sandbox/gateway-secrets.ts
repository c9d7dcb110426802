import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { operatorRoles, operatorTokenLine } from '../kit/operator-tokens.ts';
import { Advice } from './advice.ts';
import { shownPath, writePrivately } from './files.ts';
import { keptSecret } from './secrets.ts';
import type { RunSettings } from './settings.ts';

/** The key ring and the operators of a sandbox. */
export interface GatewaySecrets {
  /** The key ring: one key in each line. */
  readonly secretKey: string;
  readonly operatorToken: string;
  /** Empty: there is no second operator. */
  readonly secondToken: string;
  /** A token of each role below `admin`, by its role, and by its job (`on_call`, `releases`); empty: the operators are yours. */
  readonly roleTokens: Readonly<Record<string, string>>;
  /** The gateway's settings for both. A file is named, so that a gateway reads its changes while it runs. */
  readonly variables: Readonly<Record<string, string>>;
}

type Given = Pick<RunSettings, 'dataDir' | 'given'>;

/** Makes the secrets of a sandbox, or reads those of its earlier starts. A given variable or file is used as it is. */
export function gatewaySecrets(settings: Given): GatewaySecrets {
  const ring = keyRing(settings);
  const { variables, ...operators } = operatorsOf(settings);
  return { ...ring, ...operators, variables: { ...ring.variables, ...variables } };
}

function keyRing({ dataDir, given }: Given): Pick<GatewaySecrets, 'secretKey' | 'variables'> {
  if (given.MARINA_SECRET_KEY !== undefined) {
    return { secretKey: given.MARINA_SECRET_KEY, variables: { MARINA_SECRET_KEY: given.MARINA_SECRET_KEY } };
  }
  const file = given.MARINA_SECRET_KEY_FILE ?? join(dataDir, 'secret-key');
  // A ring that somebody changed has several lines.
  if (given.MARINA_SECRET_KEY_FILE === undefined && textOf(file) === '') keptSecret(file, 32);
  return { secretKey: textOf(file), variables: { MARINA_SECRET_KEY_FILE: file } };
}

function operatorsOf({ dataDir, given }: Given): Omit<GatewaySecrets, 'secretKey'> {
  const { MARINA_OPERATOR_TOKENS: text, MARINA_OPERATOR_TOKENS_FILE: theirs } = given;
  if (text !== undefined) {
    return { ...plainTokens(text), roleTokens: {}, variables: { MARINA_OPERATOR_TOKENS: text } };
  }
  const own = join(dataDir, 'operator-tokens');
  if (theirs === undefined) {
    return { ...keptOperators(dataDir, own), variables: { MARINA_OPERATOR_TOKENS_FILE: own } };
  }
  const tokens = plainTokens(textOf(theirs));
  if (tokens.operatorToken === '') {
    throw new Advice(
      `${theirs} has no line name:token, so make run knows no token with which it can call.`,
      `Leave MARINA_OPERATOR_TOKENS_FILE out, and add your lines to ${shownPath(own)}: the gateway reads them within 3 s.`,
    );
  }
  return { ...tokens, roleTokens: {}, variables: { MARINA_OPERATOR_TOKENS_FILE: theirs } };
}

/** The tokens of the first two operators of the form `name:token`, in which the token can be read. */
function plainTokens(text: string): Pick<GatewaySecrets, 'operatorToken' | 'secondToken'> {
  const [operatorToken = '', secondToken = ''] = text
    .split(/[,\n]/)
    .map((entry) => /^\s*[\w.-]+:(\S+)\s*$/.exec(entry)?.[1] ?? '')
    .filter((token) => token !== '');
  return { operatorToken, secondToken };
}

/** Writes the sandbox's own lines into the file, and keeps every other line. */
function keptOperators(dataDir: string, file: string): Omit<GatewaySecrets, 'secretKey' | 'variables'> {
  const token = (name: string) => keptSecret(join(dataDir, name), 24);
  const operatorToken = token('operator-token');
  const secondToken = token('second-operator-token');
  const single = operatorRoles.filter((role) => role !== 'admin').map((role) => [role, [role]] as const);
  const byJob = [
    ['on_call', ['trading', 'support']],
    ['releases', ['treasury', 'support']],
  ] as const;
  const byRole = [...single, ...byJob].map(([name, roles]) => {
    const text = token(`${name}-operator-token`);
    return { name, text, line: operatorTokenLine(name, text, Date.UTC(2100, 0), roles) };
  });
  const lines = [`operator:${operatorToken}`, `second:${secondToken}`, ...byRole.map(({ line }) => line)];
  const kept = textOf(file).split('\n');
  const further = kept.filter((line) => line !== '' && !lines.includes(line));
  writePrivately(file, `${[...lines, ...further].join('\n')}\n`);
  return { operatorToken, secondToken, roleTokens: Object.fromEntries(byRole.map(({ name, text }) => [name, text])) };
}

/** The text of a file; empty if there is none, which the gateway refuses. */
function textOf(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
}
