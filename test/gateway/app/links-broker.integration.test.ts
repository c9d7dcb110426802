import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { credentials } from '@grpc/grpc-js';
import { grpcOrders } from '../../../src/gateway/trading/broker/grpc-orders.ts';
import type { LinkTls } from '../../../src/kit/link.ts';
import { fixed } from '../../../src/kit/watched-files.ts';
import { makeAuthority } from '../../../src/sandbox/certificates.ts';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { CertificateFiles } from '../../support/certificate-files.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../support/gateway.ts';
import { scrape } from '../../support/metrics.ts';
import { patient } from '../../support/patience.ts';
import { createTestDatabase } from '../../support/servers.ts';

const used = 'a new certificate or secret is used';
const refused = 'a new certificate or secret is refused; the former one stays in use';

describe('the link to a broker that speaks TLS', () => {
  let files: CertificateFiles;
  let gateway: TestGateway;
  let partner: TestPartner;
  before(async () => {
    files = await CertificateFiles.make();
    const own = await files.clients.issueClient('controls');
    gateway = await startGateway(
      { MARINA_BROKER_TLS: 'required', ...files.settings('BROKER') },
      {
        simulatorTls: { ...files.server, authorities: files.clientAuthority },
        controlsCredentials: credentials.createSsl(
          Buffer.from(files.servers.cert),
          Buffer.from(own.key),
          Buffer.from(own.cert),
        ),
      },
    );
    partner = await gateway.newPartner();
  });
  // The broker has an order that the test itself sent.
  after(() => gateway.stop(['exchange']));

  /** Makes a call and an order over a link of its own, and returns the outcomes of both. */
  async function over(tls: LinkTls | undefined, host = 'localhost'): Promise<string> {
    const options = { submitTimeoutMs: patient(1_000), readTimeoutMs: patient(1_000), access: fixed({ tls }) };
    const broker = grpcOrders({ ...options, address: `${host}:${gateway.simulatorPort}` });
    try {
      const answered = await broker.honoursNotAfter().catch(() => undefined);
      const order = {
        id: 'ord_1',
        account: partner.account,
        symbol: 'SIM-FILL',
        side: 'buy',
        quantity: 1n,
        type: 'limit',
        timeInForce: 'day',
        priceKobo: 1n,
        origin: { requestId: 'r', partnerId: partner.id, traceParent: null },
        note: Buffer.alloc(0),
      } as const;
      const sent = await broker.submitOrder(order, Date.now() + 60_000);
      return answered === undefined ? sent.outcome : 'answered';
    } finally {
      broker.close();
    }
  }

  const client = async (authority = files.clients) => {
    const { cert, key } = await authority.issueClient('another');
    return { ca: Buffer.from(files.servers.cert), cert: Buffer.from(cert), key: Buffer.from(key) };
  };

  it('works with the right authority, name and certificate', async () => {
    assert.equal(await over(await client()), 'answered');
    assert.equal(await over({ ...(await client()), serverName: 'localhost' }, '127.0.0.1'), 'answered');
    assert.equal((await gateway.place(partner, { symbol: 'SIM-FILL' })).status, 201);
  });

  it('sends nothing if the authority or the name is another, or a certificate is missing, or in plain text', async () => {
    const right = await client();
    const stranger = await (await makeAuthority('interop')).issueClient('gateway');
    const wrong: Record<string, LinkTls | undefined> = {
      'another authority': { ...right, ca: Buffer.from(files.clients.cert) },
      'another name': { ...right, serverName: 'broker.example.com' },
      'no certificate': { ca: right.ca },
      "a stranger's certificate": { ca: right.ca, cert: Buffer.from(stranger.cert), key: Buffer.from(stranger.key) },
      'plain text': undefined,
    };
    for (const [what, tls] of Object.entries(wrong)) assert.equal(await over(tls), 'never-left', what);
  });

  it('sends nothing to a broker whose certificate has expired', async () => {
    const late = await CertificateFiles.make();
    late.putIdentity(late.server, await late.expired());
    const database = await createTestDatabase();
    const simulator = await startSimulator({ databaseUrl: database.url, port: 0, tls: late.server });
    const tls = { ca: Buffer.from(late.servers.cert) };
    const options = { submitTimeoutMs: patient(1_000), readTimeoutMs: patient(1_000), access: fixed({ tls }) };
    const broker = grpcOrders({ ...options, address: `localhost:${simulator.port}` });
    await assert.rejects(broker.honoursNotAfter(), /expired|UNAVAILABLE/);
    broker.close();
    await simulator.close();
    await database.drop();
  });

  it('shows in how long its certificate expires', async () => {
    const metrics = await scrape(gateway.app.opsPort);
    const seconds = metrics.value('marina_certificate_expires_seconds', { link: 'broker' });
    assert.ok(seconds > 300 * 86_400 && seconds < 366 * 86_400, `${seconds}`);
  });

  it('takes a new certificate under load, also when the former one is revoked, and no order fails', async () => {
    const answers: string[] = [];
    let isLoaded = true;
    const load = Array.from({ length: 4 }, async () => {
      while (isLoaded) {
        const { status, body } = await gateway.place(partner, { symbol: 'SIM-FILL' });
        const isSure = status === 201 && body.state !== 'uncertain';
        answers.push(isSure ? 'sure' : JSON.stringify(body));
      }
    });
    const next = await makeAuthority('the next clients');
    const [former, latter] = [await client(), await client(next)];
    // The broker trusts both authorities, then the gateway changes, then the broker trusts the new one alone.
    files.put('client-ca.pem', `${files.clients.cert}\n${next.cert}\n`);
    await eventually(async () => assert.equal(await over(latter), 'answered'));
    const before = count(used);
    files.putIdentity(files.client, await next.issueClient('gateway'));
    await eventually(() => assert.ok(count(used) > before));
    files.put('client-ca.pem', next.cert);
    await eventually(async () => assert.equal(await over(former), 'never-left', 'the former one is revoked'));
    const enough = answers.length + 50;
    await eventually(() => assert.ok(answers.length > enough));
    isLoaded = false;
    await Promise.all(load);
    assert.deepEqual([...new Set(answers)], ['sure']);
  });

  it('keeps what it had while the broker does not accept a new certificate, and says so once', async () => {
    const before = count(refused);
    files.putIdentity(files.client, await (await makeAuthority('interop')).issueClient('gateway'));
    await eventually(() => assert.equal(count(refused), before + 1), 20_000);
    for (let order = 0; order < 10; order += 1) {
      assert.equal((await gateway.place(partner, { symbol: 'SIM-FILL' })).status, 201);
    }
    assert.equal(count(refused), before + 1);
  });

  it('keeps what it had while new files are no good, and says so once', async () => {
    const before = count(refused);
    files.put('client.pem', 'half a certif');
    await eventually(() => assert.equal(count(refused), before + 1));
    assert.equal((await gateway.place(partner, { symbol: 'SIM-FILL' })).status, 201);
    assert.equal(count(refused), before + 1);
    assert.doesNotMatch(gateway.logged.join(''), /PRIVATE KEY|half a certif/);
  });

  function count(message: string): number {
    return gateway.logged.filter((line) => line.includes(message) && line.includes('"broker"')).length;
  }
});
