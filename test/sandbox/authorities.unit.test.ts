import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Advice } from '../../src/sandbox/advice.ts';
import { gatherAuthorities } from '../../src/sandbox/authorities.ts';
import { makeAuthority } from '../../src/sandbox/certificates.ts';
import { readSettings } from '../../src/sandbox/settings.ts';
import { temporaryFolder } from '../support/folders.ts';

describe('whom a sandbox trusts to have made the certificates of webhook receivers', () => {
  const folder = temporaryFolder();
  const file = (name: string, content: string) => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };

  it('is its own receiver and any that someone runs in addition', async () => {
    const [own, other, third] = await Promise.all(['own', 'other', 'third'].map((name) => makeAuthority(name)));
    const settings = readSettings({
      MARINA_WEBHOOK_CA_FILE: file('other.pem', other?.cert ?? ''),
      NODE_EXTRA_CA_CERTS: file('third.pem', third?.cert.trimEnd() ?? ''),
    });
    const gathered = gatherAuthorities(folder, file('own.pem', own?.cert ?? ''), settings.authorityFiles);
    const pem = readFileSync(gathered, 'utf8');
    for (const authority of [own, other, third]) assert.ok(pem.includes(authority?.cert.trim() ?? 'none'));
    assert.equal(pem.match(/^-----BEGIN CERTIFICATE-----$/gm)?.length, 3);
  });

  it('is its own receiver where nothing else is said', () => {
    const { authorityFiles } = readSettings({ NODE_EXTRA_CA_CERTS: join(folder, 'none.pem') });
    assert.equal(gatherAuthorities(folder, 'own.pem', authorityFiles), 'own.pem');
  });

  it('is not guessed where a file cannot be used', async () => {
    const own = file('own.pem', (await makeAuthority('own')).cert);
    for (const wrong of [join(folder, 'none.pem'), file('empty.pem', 'nothing')]) {
      assert.throws(() => gatherAuthorities(folder, own, [wrong]), Advice);
    }
  });
});
