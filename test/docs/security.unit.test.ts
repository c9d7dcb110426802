import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, it } from 'node:test';
import { chosenFiles } from '../support/test-files.ts';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'SECURITY.md'), 'utf8');

interface Row {
  readonly attack: string;
  readonly bound: string;
  readonly file: string;
  readonly title: string;
}

/** The rows of the table of attacks: the attack is the title of its test, unless another title stands behind the file. */
const rows: Row[] = [...page.matchAll(/^\| (.+) \| (.+) \| .+ \| `([\w-]+\.hostile\.test\.ts)`(?:: (.+))? \|$/gm)].map(
  ([, attack = '', bound = '', file = '', title = attack]) => ({ attack, bound, file, title }),
);
const texts = new Map(chosenFiles(['hostile']).map((path) => [basename(path), readFileSync(path, 'utf8')]));

/** The titles of a file's tests. */
function titles(text: string): string[] {
  return [...text.matchAll(/\b(?:attack|it)\(\s*(?:'([^']+)'|"([^"]+)")/g)].map(([, one, other]) => one ?? other ?? '');
}

/** The titles of a file's attacks, each of which has to have its row. */
function attacks(text: string): string[] {
  return [...text.matchAll(/\battack\(\s*(?:'([^']+)'|"([^"]+)")/g)].map(([, one, other]) => one ?? other ?? '');
}

describe('the table of attacks in SECURITY.md', () => {
  it('names for each attack a test there is, and what bounds it', () => {
    assert.ok(rows.length > 50, 'the table was found');
    for (const { attack, bound, file, title } of rows) {
      assert.ok(texts.has(file), `${attack}: there is no ${file}`);
      assert.ok(titles(texts.get(file) ?? '').includes(title), `${file} has no test "${title}"`);
      assert.ok(bound.length > 10, `${attack}: nothing bounds it`);
    }
  });

  it('has a row for each attack that is tried', () => {
    const described = new Set(rows.map(({ title, file }) => `${file}: ${title}`));
    const tried = [...texts].flatMap(([file, text]) => attacks(text).map((title) => `${file}: ${title}`));
    assert.deepEqual(
      tried.filter((each) => !described.has(each)),
      [],
    );
    assert.equal(new Set(tried).size, tried.length, 'two attacks of a file have one title');
  });

  it('names every file of attacks on the page', () => {
    assert.deepEqual(
      [...texts.keys()].filter((name) => !page.includes(`\`${name}\``)),
      [],
    );
  });
});
