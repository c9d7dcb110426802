import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { KeptProcess } from '../../src/sandbox/keeper.ts';
import { lockFolder } from '../../src/sandbox/lock.ts';
import { type ServerProgram, startServer } from '../../src/sandbox/private-server.ts';
import { temporaryFolder } from '../support/folders.ts';

const program = { path: '/bin/sh', version: '1.0', base: '/', env: process.env };

/** A server that writes a line and waits; `launch` may do something else, and gets its number among the starts. */
function server(launch?: (run: () => Promise<KeptProcess>, start: number) => Promise<string>) {
  const ports: number[] = [];
  const processes: KeptProcess[] = [];
  const kind: ServerProgram = {
    name: 'Stand-in',
    pidFile: 'server.pid',
    prepare: async () => program,
    launch: async (_, port, __, run) => {
      ports.push(port);
      const begin = async () => {
        const process = await run(['-c', 'echo started; exec sleep 60']);
        processes.push(process);
        return process;
      };
      if (launch !== undefined) return launch(begin, ports.length);
      const { logPath } = await begin();
      while (!readFileSync(logPath, 'utf8').endsWith('started\n')) await new Promise(setImmediate);
      return `test://127.0.0.1:${port}`;
    },
  };
  return { kind, ports, processes };
}

const isFree = (folder: string): boolean => {
  try {
    lockFolder(folder, 'A test').release();
    return true;
  } catch {
    return false;
  }
};

describe('a private server of a sandbox', () => {
  it('a server keeps its folder to itself until it has stopped', async () => {
    const dataDir = temporaryFolder();
    const { kind, ports } = server();
    const started = await startServer(kind, { dataDir });
    assert.deepEqual([started.url, started.port], [`test://127.0.0.1:${ports[0]}`, ports[0]]);
    assert.deepEqual([started.pid, started.version], [started.process.pid, '1.0']);
    await assert.rejects(startServer(kind, { dataDir }), /Stand-in in .* is already running/);
    assert.equal(ports.length, 1, 'the second one was not begun');
    await started.stop();
    assert.deepEqual(await started.process.exited, { code: null, signal: 'SIGTERM' });
    assert.ok(isFree(dataDir));
  });

  it('a server that is started again has its port, and its log goes on', async () => {
    const dataDir = temporaryFolder();
    const { kind, ports } = server();
    const first = await startServer(kind, { dataDir });
    await first.kill();
    assert.deepEqual(await first.process.exited, { code: null, signal: 'SIGKILL' });
    const { port } = first;
    const second = await startServer(kind, { dataDir, port, appends: true });
    await second.kill();
    assert.deepEqual(ports, [port, port]);
    const log = join(dataDir, 'stand-in.log');
    assert.equal(readFileSync(log, 'utf8'), 'started\nstarted\n');
    const third = await startServer(kind, { dataDir });
    await third.kill();
    assert.equal(readFileSync(log, 'utf8'), 'started\n');
  });

  it('a server with data that are thrown away is stopped by killing it', async () => {
    const started = await startServer(server().kind, { dataDir: temporaryFolder(), disposable: true });
    await started.stop();
    assert.deepEqual(await started.process.exited, { code: null, signal: 'SIGKILL' });
  });

  it('a start that failed leaves no process, and its folder to the next start', async () => {
    const dataDir = temporaryFolder();
    const { kind } = server();
    const unprepared = { ...kind, prepare: () => Promise.reject(new Error('no program')) };
    await assert.rejects(startServer(unprepared, { dataDir }), /no program/);
    assert.ok(isFree(dataDir));

    const silent = server(async (run) => {
      await run();
      throw new Error('it did not answer');
    });
    await assert.rejects(startServer(silent.kind, { dataDir }), /it did not answer/);
    assert.deepEqual(await silent.processes[0]?.exited, { code: null, signal: 'SIGKILL' });
    assert.ok(isFree(dataDir));

    const idle = server(async () => 'test://nobody');
    await assert.rejects(startServer(idle.kind, { dataDir }), /Stand-in was not started/);
    const later = await startServer(kind, { dataDir });
    await later.kill();
  });

  it('a free port that another process took meanwhile is replaced by another free one, twice', async () => {
    for (const [failures, attempts, isStarted] of [
      [1, 2, true],
      [2, 3, true],
      [3, 3, false],
    ] as const) {
      const dataDir = temporaryFolder();
      const { kind, ports, processes } = server(async (run, start) => {
        await run();
        if (start <= failures) throw new Error('bind: Address already in use');
        return 'test://there';
      });
      const started = await startServer(kind, { dataDir }).catch((error: Error) => error);
      assert.equal(started instanceof Error, !isStarted);
      assert.equal(ports.length, attempts);
      for (const process of processes.slice(0, failures)) await process.exited;
      assert.equal(isFree(dataDir), !isStarted);
      if (!(started instanceof Error)) await started.kill();
    }
  });

  it('a port that was asked for is not replaced, and no other failure is tried again', async () => {
    for (const [asked, message] of [
      [{ port: 4_000 }, 'Address already in use'],
      [{}, 'the disk is full'],
    ] as const) {
      const { kind, ports } = server(async () => {
        throw new Error(message);
      });
      await assert.rejects(startServer(kind, { dataDir: temporaryFolder(), ...asked }), new RegExp(message));
      assert.equal(ports.length, 1);
    }
  });

  it('a server that an earlier start left behind is ended first, and a process of another folder is not', async () => {
    const [dataDir, other] = [temporaryFolder(), temporaryFolder()];
    const [left, foreign] = [dataDir, other].map((folder) => {
      const process = spawn('/bin/sh', ['-c', 'read line', `${folder}/data`], { stdio: ['pipe', 'ignore', 'ignore'] });
      writeFileSync(join(folder, 'server.pid'), `${process.pid}\n`);
      return process;
    });
    assert.ok(left !== undefined && foreign !== undefined);
    const ended = once(left, 'exit');
    const { kind } = server();
    await (await startServer(kind, { dataDir })).kill();
    assert.deepEqual(await ended, [null, 'SIGTERM']);
    assert.ok(!existsSync(join(dataDir, 'server.pid')));

    const third = temporaryFolder();
    writeFileSync(join(third, 'server.pid'), `${foreign.pid}\n`);
    await (await startServer(kind, { dataDir: third })).kill();
    assert.equal(foreign.exitCode ?? foreign.signalCode, null, 'its number was used again by another program');
    foreign.kill();
    await once(foreign, 'exit');
  });
});
