import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { discardLock, isRunning, lockFolder } from '../../src/sandbox/lock.ts';
import { temporaryFolder } from '../support/folders.ts';

describe('a locked folder', () => {
  const folder = temporaryFolder();
  const path = join(folder, 'lock');
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('cannot be locked again until it is released', () => {
    const lock = lockFolder(folder, 'A test');
    assert.throws(() => lockFolder(folder, 'A test'), /already running \(process \d+\)/);
    lock.release();
    lockFolder(folder, 'A test').release();
  });

  it('is free when its process has ended', () => {
    const { pid } = spawnSync('true');
    lockFolder(folder, 'A test').release();
    writeFileSync(path, `${pid} 0\n`);
    const lock = lockFolder(folder, 'A test');
    assert.match(readFileSync(path, 'utf8'), new RegExp(`^${process.pid} `));
    assert.deepEqual(readdirSync(folder), ['lock']);
    lock.release();
  });

  it('is free when another process has the number of the one that held it', () => {
    lockFolder(folder, 'A test').release();
    writeFileSync(path, `${process.pid} 1\n`);
    lockFolder(folder, 'A test').release();
  });

  it('a dead lock is taken away, and one that another process has put in its place meanwhile is not', () => {
    lockFolder(folder, 'A test').release();
    writeFileSync(path, '1 7\n');
    discardLock(path, '1 7\n');
    assert.deepEqual(readdirSync(folder), []);
    const faster = lockFolder(folder, 'A test');
    discardLock(path, '1 7\n');
    assert.deepEqual(readdirSync(folder), ['lock']);
    assert.throws(() => lockFolder(folder, 'A test'), /already running/);
    faster.release();
  });

  it('is not released by one that no longer holds it', () => {
    const lock = lockFolder(folder, 'A test');
    writeFileSync(path, '1 0\n');
    lock.release();
    assert.equal(readFileSync(path, 'utf8'), '1 0\n');
  });

  it('tells processes that run from numbers that are none', () => {
    assert.equal(isRunning(process.pid), true);
    assert.equal(isRunning(0), false);
    assert.equal(isRunning(Number.NaN), false);
  });
});
