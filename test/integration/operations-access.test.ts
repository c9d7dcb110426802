import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { get, type RequestOptions } from 'node:https';
import { after, before, describe, it } from 'node:test';
import { CertificateFiles } from '../support/certificate-files.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

const [former, latter] = ['operations-token-number-one', 'operations-token-number-two'];

describe('an operations port with a token', () => {
  let files: CertificateFiles;
  let gateway: TestGateway;
  before(async () => {
    files = await CertificateFiles.make();
    gateway = await startGateway({ MARINA_OPS_TOKEN_FILE: files.put('token', `${former}\n`) });
  });
  after(() => gateway.stop());

  async function ask(path: string, token?: string): Promise<{ status: number; text: string }> {
    const headers = token === undefined ? undefined : { authorization: `Bearer ${token}` };
    const answer = await fetch(`http://127.0.0.1:${gateway.app.opsPort}${path}`, headers && { headers });
    return { status: answer.status, text: await answer.text() };
  }

  it('shows metrics and reasons with the token alone, and probes see whether it lives and is ready', async () => {
    for (const token of [undefined, latter, '']) {
      assert.equal((await ask('/metrics', token)).status, 401);
      assert.deepEqual(await ask('/readyz', token), { status: 200, text: '{"status":"ready"}' });
      assert.equal((await ask('/livez', token)).status, 200);
    }
    assert.match((await ask('/metrics', former)).text, /^marina_connections /m);
    assert.match((await ask('/readyz', former)).text, /"reasons":\[\]/);
  });

  it('takes a new token, and the former one no more, when the file changes', async () => {
    files.put('token', latter);
    await eventually(async () => assert.equal((await ask('/metrics', latter)).status, 200));
    assert.equal((await ask('/metrics', former)).status, 401);
    assert.doesNotMatch(gateway.logged.join(''), /operations-token-number/);
  });

  it('still asks for the token while the file is empty', async () => {
    files.put('token', '');
    await eventually(() => assert.match(gateway.logged.join(''), /a file of a secret is empty/));
    assert.equal((await ask('/metrics')).status, 401);
    assert.equal((await ask('/metrics', latter)).status, 200);
  });
});

describe("an operations port with clients' certificates", () => {
  let files: CertificateFiles;
  let gateway: TestGateway;
  before(async () => {
    files = await CertificateFiles.make();
    gateway = await startGateway({
      MARINA_OPS_TLS_CERT_FILE: files.server.certificate,
      MARINA_OPS_TLS_KEY_FILE: files.server.key,
      MARINA_OPS_TLS_CLIENT_CA_FILE: files.clientAuthority,
    });
  });
  after(() => gateway.stop());

  function ask(path: string, given: RequestOptions = {}): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const options = { port: gateway.app.opsPort, path, ca: files.servers.cert, agent: false, ...given };
      get({ host: 'localhost', ...options }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      }).once('error', reject);
    });
  }

  it('shows metrics to those who have one, and probes need none', async () => {
    const own = { cert: readFileSync(files.client.certificate), key: readFileSync(files.client.key) };
    assert.equal(await ask('/metrics', own), 200);
    assert.equal(await ask('/metrics'), 401);
    assert.equal(await ask('/metrics', await files.servers.issueClient('stranger')), 401);
    assert.equal(await ask('/livez'), 200);
    assert.equal(await ask('/readyz'), 200);
    await assert.rejects(ask('/livez', { ca: files.clients.cert }), /certificate/);
    await assert.rejects(fetch(`http://localhost:${gateway.app.opsPort}/livez`), 'plain text is not answered');
  });
});
