/** The choice of test files by the arguments of a run. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chosenFiles } from './test-files.ts';

describe('the files of a run of tests', () => {
  for (const folder of ['clients', 'docs', 'kit', 'fix-adapter/orders']) {
    it(`the files are those of test/${folder} if ${folder} is named, whatever else has that name`, () => {
      const files = chosenFiles(['unit', folder]);
      assert.ok(files.length > 0);
      for (const file of files) assert.match(file, new RegExp(`^test/${folder}/.+\\.unit\\.test\\.ts$`));
      assert.deepEqual(chosenFiles(['unit', `test/${folder}`]), files);
    });
  }

  it('the files are one file if a file is named, with its folder in test/ or without', () => {
    const file = 'test/kit/worker.unit.test.ts';
    assert.deepEqual([chosenFiles(['kit/worker.unit.test.ts']), chosenFiles([file])], [[file], [file]]);
  });

  it('files are refused if nothing has the name', () => {
    assert.throws(() => chosenFiles(['unit', 'nowhere']), /There is no nowhere in test/);
  });
});
