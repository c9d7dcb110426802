import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { Advice } from '../../src/sandbox/advice.ts';
import { serverPackages } from '../../src/sandbox/packages.ts';
import { findInstalled, findProgram, findUnpacked, wantsPackages } from '../../src/sandbox/programs.ts';
import { writeProgram } from '../support/fake-programs.ts';
import { temporaryFolder } from '../support/folders.ts';

const folder = temporaryFolder();
const path = process.env.PATH;
const first = join(folder, 'first/bin');
const second = join(folder, 'second/bin');
const packagesFolder = join(folder, 'packages');
writeProgram(join(first, 'standin-two'), 'echo "  two of the first "');
writeProgram(join(second, 'standin-one'), 'echo one of the second');
writeProgram(join(second, 'standin-two'), 'echo two of the second');
writeProgram(join(first, 'standin-broken'), 'exit 1');
writeProgram(join(second, 'standin-broken'), 'echo works');
writeProgram(join(first, 'standin-text'), 'echo text');
chmodSync(join(first, 'standin-text'), 0o644);
writeProgram(join(packagesFolder, 'usr/bin/standin-one'), 'echo "unpacked $LD_LIBRARY_PATH"');
writeProgram(join(packagesFolder, 'usr/bin/standin-two'), 'echo in bin');
writeProgram(join(packagesFolder, 'usr/sbin/standin-two'), 'echo in sbin');
writeProgram(join(folder, 'packages-other/usr/bin/standin-one'), 'echo "other $LD_LIBRARY_PATH"');
mkdirSync(join(packagesFolder, 'usr/lib'));
symlinkSync(join(second, 'standin-one'), join(first, 'standin-link'));

describe('the program of a server', () => {
  process.env.PATH = `:${first}:${second}:${path}`;
  after(() => {
    process.env.PATH = path;
    rmSync(folder, { recursive: true });
  });

  it('an installed program is found by the first name that there is, then in the first folder', () => {
    const found = findInstalled(['standin-none', 'standin-one', 'standin-two']);
    assert.deepEqual([found?.path, found?.version], [join(second, 'standin-one'), 'one of the second']);
    const two = findInstalled(['standin-two', 'standin-one']);
    assert.deepEqual([two?.path, two?.version], [join(first, 'standin-two'), 'two of the first']);
    assert.equal(two?.env, process.env);
    assert.equal(findInstalled(['standin-none']), undefined);
  });

  it('a program that does not run, or may not be run, is passed over', () => {
    assert.equal(findInstalled(['standin-broken'])?.path, join(second, 'standin-broken'));
    assert.equal(findInstalled(['standin-text']), undefined);
  });

  it('the files of a program are looked for where it really lies, and not where a link to it lies', () => {
    assert.equal(findInstalled(['standin-link'])?.base, join(folder, 'second'));
  });

  it('an unpacked program is found by the first name, and runs with the libraries of its own packages', async () => {
    const one = await findUnpacked(['standin-none', 'standin-one', 'standin-two'], { packagesFolder });
    assert.equal(one.path, join(packagesFolder, 'usr/bin/standin-one'));
    assert.equal(one.version, `unpacked ${one.env.LD_LIBRARY_PATH}`);
    assert.ok(one.env.LD_LIBRARY_PATH?.split(':').includes(join(packagesFolder, 'usr/lib')));
    assert.equal(one.base, join(packagesFolder, 'usr'));
    assert.equal((await findUnpacked(['standin-two'], { packagesFolder })).version, 'in sbin');
  });

  it('packages of their own lie in a folder of their own, and those with a loader of their own need no path of libraries', async () => {
    const packages = { ...serverPackages, suffix: '-other' };
    const other = await findUnpacked(['standin-one'], { packagesFolder, packages });
    assert.equal(other.path, join(folder, 'packages-other/usr/bin/standin-one'));
    assert.notEqual(other.env.LD_LIBRARY_PATH, undefined);
    const loaded = await findUnpacked(['standin-one'], { packagesFolder, packages: { ...packages, ownLoader: true } });
    assert.equal(loaded.env.LD_LIBRARY_PATH, process.env.LD_LIBRARY_PATH);
  });

  it('packages without the program say so, with what to do', async () => {
    await assert.rejects(findUnpacked(['standin-none', 'standin-nil'], { packagesFolder }), (error: Advice) => {
      assert.match(error.message, /hold no standin-none that runs here/);
      return error instanceof Advice && error.advice === serverPackages.advice;
    });
  });

  it('an installed program is preferred, unless the packages are asked for', async () => {
    const names = ['standin-one'];
    assert.equal((await findProgram(names, { packagesFolder })).version, 'one of the second');
    assert.match((await findProgram(names, { packagesFolder, source: 'packages' })).version, /^unpacked/);
    rmSync(join(second, 'standin-one'));
    assert.match((await findProgram(names, { packagesFolder })).version, /^unpacked/);
  });

  it('the option says whether installed programs are passed over, and without it MARINA_SERVERS', () => {
    const given = process.env.MARINA_SERVERS;
    try {
      for (const [setting, source, wanted] of [
        ['packages', undefined, true],
        ['packages', 'any', false],
        ['any', undefined, false],
        ['any', 'packages', true],
      ] as const) {
        process.env.MARINA_SERVERS = setting;
        assert.equal(wantsPackages(source === undefined ? {} : { source }), wanted, `${setting} ${source}`);
      }
    } finally {
      if (given === undefined) delete process.env.MARINA_SERVERS;
      else process.env.MARINA_SERVERS = given;
    }
  });
});
