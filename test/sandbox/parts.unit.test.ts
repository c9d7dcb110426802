import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { KeptProcess } from '../../src/sandbox/keeper.ts';
import { downFolder, type Part, type PartName, SandboxParts } from '../../src/sandbox/parts.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folders.ts';

/** A process that dies when the test says so. */
function fakeProcess(pid: number) {
  let die = () => {};
  const exited = new Promise((resolve) => {
    die = () => resolve({ code: 1, signal: null });
  });
  const process = { name: 'NATS', pid, exited, lastLines: () => '', logPath: '/nowhere' } as unknown as KeptProcess;
  return { part: { process } satisfies Part, die: () => die() };
}

function start() {
  const dataDir = temporaryFolder();
  const notes: string[] = [];
  const restarts: [PartName, number][] = [];
  const failures: unknown[] = [];
  const progress = { note: (text: string) => void notes.push(text), step: <T>(_: string, work: Promise<T>) => work };
  const parts = new SandboxParts({
    ...{ dataDir, progress: progress as never, fail: (error) => void failures.push(error) },
    restarted: (name, pid) => void restarts.push([name, pid]),
  });
  let pid = 0;
  const given: (number | undefined)[] = [];
  const processes: ReturnType<typeof fakeProcess>[] = [];
  const begin = () =>
    parts.start<Part>('nats', async (before) => {
      given.push(before?.process.pid);
      pid += 1;
      const process = fakeProcess(pid);
      processes.push(process);
      return process.part;
    });
  return { dataDir, notes, restarts, failures, parts, begin, given, processes };
}

describe('the parts of a sandbox', () => {
  it('a part that dies once all run is started again, with what it was before, each time', async () => {
    const { parts, begin, given, processes, restarts, failures, notes } = start();
    await begin();
    parts.complete();
    for (let times = 0; times < 3; times += 1) {
      processes[times]?.die();
      await eventually(() => assert.equal(restarts.length, times + 1));
    }
    assert.deepEqual(given, [undefined, 1, 2, 3]);
    assert.deepEqual(restarts, [
      ['nats', 2],
      ['nats', 3],
      ['nats', 4],
    ]);
    assert.deepEqual([failures, notes.length], [[], 3]);
    assert.match(notes[0] ?? '', /^NATS .*, and is started again$/);
  });

  it('a part that dies before all run ends the sandbox', async () => {
    const { begin, processes, restarts, failures } = start();
    await begin();
    processes[0]?.die();
    await eventually(() => assert.equal(failures.length, 1));
    assert.deepEqual(restarts, []);
  });

  it('a part that dies five times in a minute is started again, and not the sixth time', async () => {
    const { parts, begin, processes, restarts, failures } = start();
    await begin();
    parts.complete();
    for (let times = 0; times < 5; times += 1) {
      processes[times]?.die();
      await eventually(() => assert.equal(restarts.length, times + 1));
    }
    processes[5]?.die();
    await eventually(() => assert.equal(failures.length, 1));
    assert.equal(restarts.length, 5);
  });

  it('a part that died more than a minute ago is not held against it', async (context) => {
    const { parts, begin, processes, restarts, failures } = start();
    let now = 0;
    context.mock.method(performance, 'now', () => now);
    await begin();
    parts.complete();
    for (let times = 0; times < 8; times += 1) {
      processes[times]?.die();
      for (let turns = 0; turns < 50 && restarts.length <= times; turns += 1) await new Promise(setImmediate);
      assert.equal(restarts.length, times + 1);
      now += 12_000;
    }
    assert.deepEqual(failures, []);
  });

  it('a part that ends while the sandbox stops was meant to', async () => {
    const { parts, begin, processes, restarts, failures } = start();
    await begin();
    parts.complete();
    parts.stop();
    processes[0]?.die();
    for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate);
    assert.deepEqual([restarts, failures], [[], []]);
  });

  it('a part that is held down is started when its file is gone', async () => {
    const { dataDir, parts, begin, processes, restarts } = start();
    const held = join(downFolder(dataDir), 'nats');
    writeFileSync(held, '');
    writeFileSync(join(downFolder(dataDir), 'gateway'), '');
    await begin();
    parts.complete();
    processes[0]?.die();
    for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate);
    assert.deepEqual(restarts, []);
    rmSync(held);
    await eventually(() => assert.deepEqual(restarts, [['nats', 2]]));
  });
});
