import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { SeededBug } from './fault/seeded-bugs.ts';

const root = join(import.meta.dirname, '../..');
const folder = join(root, 'test/support/bugs');

describe('the bugs that tests are proved with', () => {
  for (const name of readdirSync(folder)) {
    it(`have their places in the code, and tests that look for them: ${name}`, async () => {
      const lists = Object.values(await import(join(folder, name))) as readonly (readonly SeededBug[])[];
      for (const bug of lists.flat()) {
        const text = readFileSync(join(root, bug.file), 'utf8');
        assert.equal(text.split(bug.find).length, 2, `${bug.name}: its place stands once in ${bug.file}`);
        assert.ok(existsSync(join(root, bug.test)), `${bug.name}: ${bug.test} is there`);
      }
    });
  }
});
