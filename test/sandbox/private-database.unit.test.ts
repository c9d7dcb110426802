import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { it } from 'node:test';
import { serverArguments } from '../../src/sandbox/mariadb-data.ts';

it('a private database server keeps its temporary tables apart: a server that starts removes all that it finds there', () => {
  const folder = mkdtempSync(join(tmpdir(), 'marina-private-'));
  try {
    const program = { path: '/usr/sbin/mariadbd', version: '10.11 MariaDB', base: '/usr', env: {} };
    const used = serverArguments(program, join(folder, 'data.new')).find((text) => text.startsWith('--tmpdir='));
    assert.equal(dirname(String(used?.slice('--tmpdir='.length))), folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
