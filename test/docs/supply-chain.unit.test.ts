import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { unknownLicences } from '../../src/tools/packages-check.ts';

describe('the licences of deployed packages', () => {
  it('are all known to be good', () => {
    assert.deepEqual(unknownLicences(JSON.parse(readFileSync('package-lock.json', 'utf8'))), []);
  });

  it('are named with the package where one is not, unless it is for developing only', () => {
    const packages = {
      '': { license: 'none of ours' },
      'node_modules/good': { license: '(MIT AND Apache-2.0)' },
      'node_modules/bad': { license: 'AGPL-3.0-only' },
      'node_modules/both': { license: 'MIT AND SSPL-1.0' },
      'node_modules/none': {},
      'node_modules/tool': { license: 'GPL-3.0-only', dev: true },
    };
    assert.deepEqual(unknownLicences({ packages }), ['bad (AGPL-3.0-only)', 'both (MIT AND SSPL-1.0)', 'none (none)']);
  });
});

describe('the audit of deployed packages', () => {
  const hole = {
    id: 1,
    url: 'https://example.com/hole',
    title: 'A hole',
    severity: 'high',
    vulnerable_versions: '<99.0.0',
    cwe: [],
    cvss: { score: 8, vectorString: null },
  };

  /** Runs the check of `make check` against a registry that answers an audit so. */
  async function check(status: number, found: unknown): Promise<{ code: number; output: string }> {
    const registry = createServer((request, response) => {
      request.resume();
      const isAudit = request.url?.endsWith('/security/advisories/bulk') === true;
      response.writeHead(isAudit ? status : 404, { 'content-type': 'application/json' });
      response.end(JSON.stringify(isAudit ? found : {}));
    });
    await once(registry.listen(0, '127.0.0.1'), 'listening');
    const { port } = registry.address() as AddressInfo;
    const child = spawn(process.execPath, ['--import', 'tsx', join('src/tools/supply-chain.ts')], {
      env: { ...process.env, npm_config_registry: `http://127.0.0.1:${port}/` },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    registry.close();
    return { code, output };
  }

  it('fails on a known hole, and names the package', async () => {
    const { code, output } = await check(200, { mysql2: [hole] });
    assert.equal(code, 1, output);
    assert.match(output, /holes in deployed packages: .*mysql2 /);
  });

  it('passes where none is known', async () => {
    assert.deepEqual(await check(200, {}), {
      code: 0,
      output: 'The registry knows of no serious hole in the deployed packages\n',
    });
  });

  it('is passed over, with a line, where the registry cannot be asked', async () => {
    const { code, output } = await check(405, {});
    assert.equal(code, 0);
    assert.match(output, /^Known holes were not looked for: .*405/);
  });
});
