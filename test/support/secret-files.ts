import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gatewayEntry } from '../../src/sandbox/processes.ts';
import { eventually } from './eventually.ts';
import { temporaryFolder } from './folders.ts';

export const secretUsed = 'a new certificate or secret is used';
export const secretRefused = 'a new certificate or secret is refused; the former one stays in use';

/** A file with a secret, which a gateway reads again when it changes. */
export class SecretFile {
  readonly path = join(temporaryFolder(), 'secret');

  constructor(...lines: readonly string[]) {
    this.put(...lines);
  }

  /** The file is whole whenever it is read. */
  put(...lines: readonly string[]): void {
    writeFileSync(`${this.path}.new`, `${lines.join('\n')}\n`, { mode: 0o600 });
    renameSync(`${this.path}.new`, this.path);
  }

  /** Changes the file, and waits until a gateway has used or refused it. */
  async change(lines: readonly string[], logged: readonly string[], said = secretUsed): Promise<void> {
    const count = () => logged.filter((line) => line.includes(said)).length;
    const before = count();
    this.put(...lines);
    await eventually(() => assert.ok(count() > before, `it is said: ${said}`));
  }
}

/** A command of the gateway as it runs, with what it has printed. */
export interface Running {
  readonly process: ChildProcess;
  readonly printed: () => string;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string | null>;
}

export function runCommand(args: readonly string[], variables: NodeJS.ProcessEnv): Running {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...variables };
  const child = spawn(process.execPath, ['--import', 'tsx', gatewayEntry, ...args], { env });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const ended = new Promise<number | string | null>((resolve) => {
    child.on('close', (code, signal) => resolve(code ?? signal));
  });
  return { process: child, printed: () => text, ended };
}
