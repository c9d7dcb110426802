import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { createLogger } from '../../src/lib/log.ts';
import { WatchedFiles } from '../../src/lib/watched-files.ts';
import { Supervisor } from '../../src/lib/worker.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folders.ts';

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
    watched.onChange((value) => heard.push(value));
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

  /** Puts a text in the place of the former as Kubernetes does: the path is a link through a link to a new folder. */
  function point(text: string): void {
    const made = join(folder, `made-${Math.random()}`);
    mkdirSync(made);
    writeFileSync(join(made, 'secret'), text);
    symlinkSync(made, join(folder, 'data.new'));
    renameSync(join(folder, 'data.new'), join(folder, 'data'));
    rmSync(path, { force: true });
    symlinkSync(join('data', 'secret'), path);
  }

  it('are used once they have changed, through symbolic links too', async () => {
    assert.equal(watched.current, 'one');
    point('two');
    await eventually(() => assert.equal(watched.current, 'two'));
    assert.deepEqual(heard, ['two']);
    assert.match(logged.join(''), /"link":"a link","msg":"a new certificate or secret is used"/);
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
});
