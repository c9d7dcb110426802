import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { brokenRules } from '../../src/tools/tidy-rules.ts';

describe('the rules of style that make check counts', () => {
  const broken = (path: string, text: string, subjects: string[] = []) =>
    brokenRules([{ path, text }], subjects)
      .filter(({ places }) => places.length > 0)
      .map(({ rule, places }) => [rule, places.length]);

  const cases: readonly [what: string, path: string, text: string, found: [string, number][]][] = [
    ['a good page', 'docs/a.md', 'A gateway keeps each order.\n', []],
    [
      'a headless sentence',
      'docs/a.md',
      'It runs. What stops leaves the run as it is.\n',
      [['headless sentences in pages', 1]],
    ],
    ['a question', 'docs/a.md', '## What is kept?\n', []],
    ['history', 'docs/a.md', 'A gateway no longer asks.\n', [['history in pages', 1]]],
    ['a headless comment', 'src/a.ts', '/** What a caller sees. */\n', [['headless sentences in comments', 1]]],
    ['a good comment', 'src/a.ts', '/** The fields that a caller sees. */\n', []],
    ['a bound named most', 'src/a.ts', 'const mostKeys = 3;\n', [['constants named most…', 1]]],
    [
      'a fragment',
      'test/a.unit.test.ts',
      "it('of each key goes once', () => {});\n",
      [['test names that are fragments', 1]],
    ],
    ['a sentence', 'test/a.unit.test.ts', "it('sends each key once', () => {});\n", []],
    [
      'a long function',
      'src/a.ts',
      `function long() {\n${'  run();\n'.repeat(60)}}\n`,
      [['functions longer than 60 lines', 1]],
    ],
    ['a function of 60 lines', 'src/a.ts', `function long() {\n${'  run();\n'.repeat(58)}}\n`, []],
  ];
  for (const [what, path, text, found] of cases) {
    it(`find ${found.length === 0 ? 'nothing wrong with' : ''} ${what}`, () => {
      assert.deepEqual(broken(path, text), found);
    });
  }

  it('find a type whose name another file has, too', () => {
    const text = 'export interface Part {}\n';
    const files = ['src/a.ts', 'src/b.ts'].map((path) => ({ path, text }));
    const [found] = brokenRules(files, []).filter(({ places }) => places.length > 0);
    assert.deepEqual(found?.places, ['src/a.ts Part', 'src/b.ts Part']);
  });

  it('find a commit subject of 73 characters, and none of 72', () => {
    assert.deepEqual(broken('src/a.ts', '', ['x'.repeat(72)]), []);
    assert.deepEqual(broken('src/a.ts', '', ['x'.repeat(73)]), [['commit subjects longer than 72 characters', 1]]);
  });
});
