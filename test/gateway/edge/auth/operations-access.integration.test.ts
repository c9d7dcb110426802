import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Agent, get, type RequestOptions } from 'node:https';
import { after, before, describe, it } from 'node:test';
import { CertificateFiles } from '../../../support/certificate-files.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';

const [former, latter] = ['operations-token-number-one', 'operations-token-number-two'];

describe('an operations port with a token', () => {
  let files: CertificateFiles;
  let gateway: TestGateway;
  before(async () => {
    files = await CertificateFiles.make();
    gateway = await startGateway({ MARINA_OPS_TOKEN_FILE: files.put('token', `${former}\n`) });
  });
  // The metrics of these gateways ask for a token.
  after(() => gateway.stop(['use']));

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
      MARINA_OPS_TLS_CLIENT_CRL_FILE: files.put('revoked.pem', await files.clients.revoke([])),
    });
  });
  // The metrics of these gateways ask for a token.
  after(() => gateway.stop(['use']));

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

  it('shows nothing to a revoked certificate, also over a connection that was open, and still answers probes', async () => {
    const [good, lost] = await Promise.all(['good', 'lost'].map((name) => files.clients.issueClient(name)));
    assert.ok(good !== undefined && lost !== undefined);
    const before = gateway.logged.length;
    const change = async (list: string, said: RegExp) => {
      files.put('revoked.pem', list);
      await eventually(() => assert.match(gateway.logged.slice(before).join(''), said), 20_000);
    };
    const open = new Agent({ keepAlive: true, maxSockets: 1 });
    const asked = async () => [await ask('/metrics', good), await ask('/metrics', lost), await ask('/livez', lost)];
    assert.deepEqual(await asked(), [200, 200, 200]);
    assert.equal(await ask('/metrics', { ...lost, agent: open }), 200);
    await change(await files.clients.revoke([lost.cert]), /"link":"operations".*a new certificate or secret is used/);
    assert.deepEqual(await asked(), [200, 401, 200]);
    assert.equal(await ask('/metrics', { ...lost, agent: open }), 401);
    await change('nonsense', /"wrong":"no lists of revoked certificates"/);
    assert.deepEqual(await asked(), [200, 401, 200], 'the former list holds');
    open.destroy();
  });

  it('shows nothing to anybody once the list has ended, and answers probes', async () => {
    const ended = await files.clients.revoke([], new Date(Date.now() - 1_000));
    const other = await startGateway({
      MARINA_OPS_TLS_CERT_FILE: files.server.certificate,
      MARINA_OPS_TLS_KEY_FILE: files.server.key,
      MARINA_OPS_TLS_CLIENT_CA_FILE: files.clientAuthority,
      MARINA_OPS_TLS_CLIENT_CRL_FILE: files.put('ended.pem', ended),
    });
    try {
      const port = other.app.opsPort;
      const own = { cert: readFileSync(files.client.certificate), key: readFileSync(files.client.key), port };
      assert.deepEqual([await ask('/metrics', own), await ask('/livez', own)], [401, 200]);
    } finally {
      await other.stop(['use']);
    }
  });
});
