import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { lstatSync, mkdirSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { createLogger } from '../../src/kit/log.ts';
import { WatchedFiles, waitMs } from '../../src/kit/watched-files.ts';
import { Supervisor } from '../../src/kit/worker.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folders.ts';

describe('the wait until refused files are tried again', () => {
  it('the wait doubles, and is a minute at most', () => {
    const waits = [1, 2, 5, 6, 7, 1_000].map((tries) => waitMs(tries, 1_000));
    assert.deepEqual(waits, [2_000, 4_000, 32_000, 60_000, 60_000, 60_000]);
  });
});

describe('files that are read again when they change', () => {
  const folder = temporaryFolder();
  const path = join(folder, 'secret');
  const logged: string[] = [];
  const log = createLogger({ name: 'test', level: 'info', destination: { write: (line) => void logged.push(line) } });
  const supervisor = new Supervisor(log);
  const heard: string[] = [];
  let works = true;
  /** When what was tried out, by `performance.now`. */
  const tried: { text: string; at: number }[] = [];
  let watched: WatchedFiles<'secret', string>;
  before(async () => {
    point('one');
    watched = await WatchedFiles.open({
      files: { secret: path },
      make: ({ secret }) => {
        const text = String(secret);
        if (text.startsWith('bad')) throw new Error('it is bad');
        return text;
      },
      prove: async (text) => {
        tried.push({ text, at: performance.now() });
        if (!works) throw Object.assign(new Error('canary'), { code: 'REFUSED' });
      },
      name: 'a link',
      log,
      everyMs: 20,
    });
    watched.onChange((value) => {
      heard.push(value);
      // Who hears of it reads what it is by now, as those do who connect anew.
      assert.equal(watched.current, value);
    });
    supervisor.start(watched.worker);
  });
  beforeEach(() => {
    logged.length = 0;
    heard.length = 0;
  });
  after(async () => {
    await supervisor.stop(1_000);
    rmSync(folder, { recursive: true });
  });

  /**
   * Puts a text in the place of the former as Kubernetes does: the path is a link through a link to a folder. The link
   * between them is replaced, and the former folder removed.
   */
  function point(text: string): void {
    const between = join(folder, '..data');
    const former = lstatSync(between, { throwIfNoEntry: false }) && readlinkSync(between);
    const made = `..made-${Math.random()}`;
    mkdirSync(join(folder, made));
    writeFileSync(join(folder, made, 'secret'), text);
    link(made, between);
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) link(join('..data', 'secret'), path);
    if (former !== undefined) rmSync(join(folder, former), { recursive: true });
  }

  /** Makes a link in one step, whatever is in its place. */
  function link(to: string, from: string): void {
    symlinkSync(to, `${from}.new`);
    renameSync(`${from}.new`, from);
  }

  /** Puts a file in the place of the former by renaming it. */
  function replace(text: string): void {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  }

  it('are used once they have changed, as a mounted secret of Kubernetes changes', async () => {
    assert.equal(watched.current, 'one');
    const inode = lstatSync(path).ino;
    point('two');
    await eventually(() => assert.equal(watched.current, 'two'));
    assert.equal(lstatSync(path).ino, inode, 'the path itself is the same link');
    assert.deepEqual(heard, ['two']);
    assert.match(logged.join(''), /"link":"a link","msg":"a new certificate or secret is used"/);
  });

  it('are used when another file was renamed over the former, or the former was rewritten', async () => {
    replace('renamed');
    await eventually(() => assert.equal(watched.current, 'renamed'));
    writeFileSync(path, 'rewritten');
    await eventually(() => assert.equal(watched.current, 'rewritten'));
    point('two');
    await eventually(() => assert.equal(watched.current, 'two'));
  });

  it('are refused while one is gone, and nobody is notified when the same comes back', async () => {
    rmSync(path);
    await eventually(() => assert.equal(watched.isRefused, true));
    point('two');
    await eventually(() => assert.equal(watched.isRefused, false));
    assert.deepEqual([watched.current, heard], ['two', []]);
    assert.equal(logged.length, 1, logged.join(''));
  });

  it('are refused while they are no good or gone, with one line, and the former value stays', async () => {
    point('bad');
    await eventually(() => assert.match(logged.join(''), /"wrong":"it is bad"/));
    rmSync(path);
    await eventually(() => assert.match(logged.join(''), /a file cannot be read: ENOENT/));
    assert.equal(watched.current, 'two');
    assert.equal(logged.length, 2, logged.join(''));
    point('three');
    await eventually(() => assert.equal(watched.current, 'three'));
  });

  it('are tried out until they work, and refused meanwhile with one line that says nothing of them', async () => {
    works = false;
    point('four');
    await eventually(() => assert.match(logged.join(''), /"wrong":"it does not work: REFUSED"/));
    assert.equal(watched.current, 'three');
    works = true;
    await eventually(() => assert.equal(watched.current, 'four'));
    assert.equal(logged.length, 2, logged.join(''));
    assert.doesNotMatch(logged.join(''), /canary/);
  });

  it('are tried again after a wait that grows, because a server locks an account, and at once when they change', async () => {
    const times = (text: string) => tried.filter((each) => each.text === text).map(({ at }) => at);
    works = false;
    point('five');
    await eventually(() => assert.equal(times('five').length, 5));
    const waits = times('five').map((at, index, all) => at - (all[index - 1] ?? at));
    for (const [index, waited] of waits.entries()) {
      if (index > 0) assert.ok(waited >= 20 * 2 ** index, `wait ${index} was ${waited} ms`);
    }
    point('six');
    await eventually(() => assert.equal(times('six').length, 1));
    assert.equal(times('five').length, 5, 'the new files did not wait for the others');
    works = true;
    await eventually(() => assert.equal(watched.current, 'six'));
  });

  const unreadable: Record<string, [make: (path: string) => void, wrong: RegExp]> = {
    'a pipe': [(made) => execFileSync('mkfifo', [made]), /a file cannot be read: it is no regular file/],
    'a folder': [(made) => mkdirSync(made), /a file cannot be read: it is no regular file/],
    'larger than 1 MiB': [(made) => writeFileSync(made, 'x'.repeat(1_048_577)), /a file cannot be read: EFBIG/],
    'a link to nothing': [(made) => symlinkSync('nothing', made), /a file cannot be read: ENOENT/],
    'a link to itself': [(made) => symlinkSync(made, made), /a file cannot be read: ELOOP/],
  };
  for (const [what, [make, wrong]] of Object.entries(unreadable)) {
    it(`are refused with one line while one is ${what}, and used again after that`, async () => {
      rmSync(path);
      make(path);
      await eventually(() => assert.match(logged.join(''), wrong));
      rmSync(path, { recursive: true });
      point(`after ${what}`);
      await eventually(() => assert.equal(watched.current, `after ${what}`));
      assert.deepEqual(heard, [`after ${what}`]);
      assert.equal(watched.isRefused, false);
    });
  }

  it('are refused with one line if they never keep still, and used once they do', async () => {
    const former = watched.current;
    let written = 0;
    const writing = setInterval(() => {
      written += 1;
      replace(`version ${written}`);
    }, 1);
    try {
      await eventually(() => assert.match(logged.join(''), /"wrong":"the files keep changing"/));
      assert.deepEqual([watched.isRefused, watched.current, logged.length], [true, former, 1], logged.join(''));
    } finally {
      clearInterval(writing);
    }
    await eventually(() => assert.equal(watched.current, `version ${written}`));
    assert.equal(watched.isRefused, false);
  });
});
