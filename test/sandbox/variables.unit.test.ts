import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { readConfig } from '../../src/gateway/app/config.ts';
import { gatewayVariables } from '../../src/sandbox/processes.ts';
import { readSettings } from '../../src/sandbox/settings.ts';

const root = join(import.meta.dirname, '../..');
const needed = {
  MARINA_DATABASE_URL: 'mysql://marina:secret@127.0.0.1/marina',
  MARINA_NATS_URL: 'nats://127.0.0.1:4222',
  MARINA_BROKER_ADDRESS: '127.0.0.1:50060',
  MARINA_SECRET_KEY: '42'.repeat(32),
};

const folders = [
  'src/site/guides',
  'src/site/snippets',
  'src/site/samples',
  'clients/typescript/examples',
  'clients/typescript/src/listen',
  'clients/python/examples',
];

/** Every variable that a guide exports, or that a program in the guides or a client library reads. */
function variablesOfClients(): string[] {
  const files = folders.flatMap((folder) => readdirSync(join(root, folder)).map((name) => join(root, folder, name)));
  const names = files
    .filter((file) => /\.\w+$/.test(file))
    .flatMap((file) => readFileSync(file, 'utf8').match(/MARINA_[A-Z_]+/g) ?? []);
  return [...new Set(names)].sort();
}

describe('the variables that make run passes on to the gateway', () => {
  it('leave out every variable that the guides and client libraries tell partners to export', () => {
    const names = variablesOfClients();
    for (const name of ['MARINA_KEY', 'MARINA_GRPC', 'MARINA_TLS', 'MARINA_BASE_URL', 'MARINA_WEBHOOK_SECRET']) {
      assert.ok(names.includes(name), `${name} is found in the guides`);
    }
    const exported = Object.fromEntries(names.map((name) => [name, 'off']));
    const { given } = readSettings(exported);
    assert.deepEqual(gatewayVariables(given), {});
    assert.equal(readConfig({ ...needed, ...gatewayVariables(given) }).restPort, 8080);
  });

  it('keep settings of the gateway, and misspelt ones, which stop its start', () => {
    const given = { MARINA_HOST: '0.0.0.0', MARINA_KEYS: '1', MARINA_TLS_REQUIRED: '1' };
    assert.deepEqual(gatewayVariables(given), given);
    assert.throws(() => readConfig({ ...needed, ...gatewayVariables(given) }), /MARINA_KEYS is no setting/);
  });
});
