import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createLogger } from '../../src/kit/log.ts';
import { LogOutput } from '../../src/kit/log-output.ts';
import { eventually } from '../support/eventually.ts';

describe('the output of a log', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'marina-log-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  const nothing = () => assert.fail('nothing was dropped');
  /** A line of a thousand characters, with its number. */
  const numbered = (number: number) => `${number} ${'ü'.repeat(998 - String(number).length)}\n`;

  it('writes lines in order, and everything before it is flushed', async () => {
    const path = join(folder, 'file');
    const fd = openSync(path, 'w');
    const output = new LogOutput(fd, nothing);
    const log = createLogger({ name: 'test', level: 'info', destination: output });
    for (let number = 0; number < 3_000; number += 1) log.info({ number }, 'a line');
    await output.flush(10_000);
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => (JSON.parse(line) as { number: number }).number),
      Array.from({ length: 3_000 }, (_, number) => number),
    );
    closeSync(fd);
  });

  it('keeps a bounded number of lines while the disk is full, counts the others, and ends in time', async () => {
    const fd = openSync('/dev/full', 'w');
    const output = new LogOutput(fd, nothing);
    for (let number = 0; number < 10_000; number += 1) output.write(numbered(number));
    assert.ok(output.dropped > 5_000 && output.dropped < 7_000, `${output.dropped} lines`);
    assert.equal(output.isStuck, false, 'a moment is no trouble');
    const startedAt = performance.now();
    await output.flush(100);
    assert.ok(performance.now() - startedAt < 1_000);
    // The file stays open: it is written to for as long as the process lives.
    await eventually(() => assert.equal(output.isStuck, true));
  });

  it('writes on when its reader is there again: whole lines, in order, and how many are missing', async () => {
    const path = join(folder, 'pipe');
    execFileSync('mkfifo', [path]);
    const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    const output: LogOutput = new LogOutput(fd, (dropped) => output.write(`dropped ${dropped}\n`));
    for (let number = 0; number < 10_000; number += 1) output.write(numbered(number));
    const { dropped } = output;
    assert.ok(dropped > 0);

    const bytes = Buffer.alloc(1024 * 1024);
    const parts: Buffer[] = [];
    await eventually(() => {
      parts.push(Buffer.from(bytes.subarray(0, readSync(fd, bytes))));
      assert.match(parts.at(-1)?.toString() ?? '', /dropped/);
    });
    const lines = Buffer.concat(parts).toString().trimEnd().split('\n');
    const written = lines.filter((line) => !line.startsWith('dropped'));
    for (const [number, line] of written.entries()) {
      assert.ok(`${line}\n` === numbered(number), `line ${number} is ${line.slice(0, 20)}… of ${line.length}`);
    }
    assert.equal(written.length, 10_000 - dropped);
    assert.ok(lines.includes(`dropped ${dropped}`));
    assert.equal(output.isStuck, false);
    closeSync(fd);
  });

  it('survives that its file may grow no further', async () => {
    const module = JSON.stringify(new URL('../../src/kit/log-output.ts', import.meta.url).href);
    const code = `import(${module}).then(async ({ standardOutput }) => {
      const output = standardOutput(() => {});
      for (let count = 0; count < 100; count += 1) output.write('x'.repeat(99) + '\\n');
      await output.flush(500);
      process.exit(7);
    })`;
    const file = join(folder, 'limited');
    // The limit is one block, of 512 or 1,024 bytes.
    const args = ['-c', `ulimit -f 1; exec "$0" "$@" > '${file}'`, process.execPath, '--import', 'tsx', '-e', code];
    const ended = await promisify(execFile)('/bin/sh', args).then(
      () => 0,
      (error: { code?: number; signal?: string }) => error.code ?? error.signal,
    );
    assert.equal(ended, 7, 'it ends as it wants to, and not by a signal');
    assert.match(readFileSync(file, 'utf8'), /^x{99}\n/);
  });
});
