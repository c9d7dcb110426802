/** Compares the protos with those of the last release, for `make check`: a client of the release must go on working. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { extractRelease, lastRelease, whyNotHere } from './release.ts';

const root = process.cwd();
const buf = join(import.meta.dirname, '../../node_modules/.bin/buf');
const release = lastRelease(root);
const reason = await whyNotHere(root, release);
if (reason === undefined) {
  const folder = mkdtempSync(join(tmpdir(), 'marina-release-'));
  try {
    await extractRelease(root, release, folder, ['proto', 'buf.yaml']);
    const { status } = spawnSync(buf, ['breaking', '--against', folder], { stdio: 'inherit' });
    process.exitCode = status ?? 1;
    if (status !== 0) console.error(`buf breaking: the protos break clients of release ${release.version}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
} else {
  console.log(`buf breaking: skipped, ${reason}`);
}
