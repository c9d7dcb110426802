import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls';
import { credentials, Metadata, status } from '@grpc/grpc-js';
import { Diagnostics } from '../../../src/gen/marina/admin/v1/diagnostics_pb.ts';
import { Trading } from '../../../src/gen/marina/admin/v1/trading_pb.ts';
import { Events } from '../../../src/gen/marina/gateway/v1/events_pb.ts';
import { OrderSide, Orders, OrderType } from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { createGrpcClient } from '../../../src/kit/grpc-client.ts';
import { type Authority, type Identity, makeAuthority } from '../../../src/sandbox/certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { callTimeout, operatorToken, startGateway, type TestGateway, type TestPartner } from '../../support/gateway.ts';
import { scrape } from '../../support/metrics.ts';

const refused = 'a new certificate or secret is refused; the former one stays in use';
const names = ['localhost', '127.0.0.1'];

describe('a gateway with certificates', () => {
  const folder = temporaryFolder();
  const certFile = join(folder, 'server.pem');
  const keyFile = join(folder, 'server.key');
  const revokedFile = join(folder, 'revoked.pem');
  let authority: Authority;
  let operators: Authority;
  let gateway: TestGateway;
  let partner: TestPartner;
  before(async () => {
    authority = await makeAuthority('Marina test');
    operators = await makeAuthority('Marina operators');
    put(await authority.issue(names));
    writeFileSync(join(folder, 'operators.pem'), operators.cert);
    writeFileSync(revokedFile, await operators.revoke([]));
    gateway = await startGateway({
      MARINA_TLS_CERT_FILE: certFile,
      MARINA_TLS_KEY_FILE: keyFile,
      MARINA_ADMIN_TLS_CERT_FILE: certFile,
      MARINA_ADMIN_TLS_KEY_FILE: keyFile,
      MARINA_ADMIN_TLS_CLIENT_CA_FILE: join(folder, 'operators.pem'),
      MARINA_ADMIN_TLS_CLIENT_CRL_FILE: revokedFile,
    });
    partner = await gateway.newPartner();
  });
  after(() => gateway.stop());

  /** Each file is whole whenever it is read; which of the two is read first, nobody knows. */
  function put({ cert, key }: Identity): void {
    for (const [file, text] of [
      [certFile, cert],
      [keyFile, key],
    ] as const) {
      writeFileSync(`${file}.new`, text);
      renameSync(`${file}.new`, file);
    }
  }

  /** The certificate a new connection to a port is shown. */
  function shown(port: number): Promise<PeerCertificate> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, ca: authority.cert, ALPNProtocols: ['h2', 'http/1.1'] }, () => {
        resolve(socket.getPeerCertificate());
        socket.destroy();
      });
      socket.once('error', reject);
    });
  }

  function get(agent: Agent, key = partner.key): Promise<{ status: number; text: string; socket: TLSSocket }> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}` };
      const asked = request(
        { host: '127.0.0.1', port: gateway.app.restPort, path: '/v1/limits', headers, agent },
        async (response) => {
          let text = '';
          for await (const chunk of response) text += chunk;
          resolve({ status: response.statusCode ?? 0, text, socket: response.socket as TLSSocket });
        },
      );
      asked.once('error', reject);
      asked.end();
    });
  }

  function authorized(token: string): Metadata {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${token}`);
    return metadata;
  }

  function grpc() {
    const trusted = credentials.createSsl(Buffer.from(authority.cert));
    return createGrpcClient(Orders, `127.0.0.1:${gateway.app.grpcPort}`, {}, trusted);
  }

  it('answers over TLS alone, by REST and by gRPC, and its links say https', async () => {
    const agent = new Agent({ ca: authority.cert });
    const answer = await get(agent);
    assert.equal(answer.status, 200, answer.text);
    const refusal = await get(agent, 'unknown');
    assert.match(JSON.parse(refusal.text).error.doc_url, /^https:/);
    const client = grpc();
    await client.listOrders({}, { ...callTimeout, metadata: authorized(partner.key) });
    client.close();
    agent.destroy();
    await assert.rejects(fetch(`http://127.0.0.1:${gateway.app.restPort}/v1/limits`), 'plain text is not answered');
  });

  /** The status that an operator's call ends with. */
  async function asOperator(own: Identity | undefined, token: Metadata): Promise<status> {
    const root = Buffer.from(authority.cert);
    const ssl = credentials.createSsl(root, own && Buffer.from(own.key), own && Buffer.from(own.cert));
    const client = createGrpcClient(Trading, `127.0.0.1:${gateway.app.adminPort}`, {}, ssl);
    try {
      await client.resumeTrading({ reason: 'a test' }, { ...callTimeout, metadata: token });
      return status.OK;
    } catch (error) {
      return (error as { code: status }).code;
    } finally {
      client.close();
    }
  }

  it("the operators' port asks for a certificate of their authority, and for a token too", async () => {
    const stranger = await authority.issue(['stranger']);
    const metadata = authorized(operatorToken);
    const operator = await operators.issueClient('ada');
    assert.equal(await asOperator(operator, metadata), status.OK);
    assert.equal(await asOperator(operator, new Metadata()), status.UNAUTHENTICATED, 'a certificate is no token');
    assert.equal(await asOperator(undefined, metadata), status.UNAVAILABLE, 'a token is no certificate');
    assert.equal(await asOperator(stranger, metadata), status.UNAVAILABLE, "somebody else's certificate");
  });

  it("the operators' port refuses a revoked certificate as soon as the list changes, and all once it has ended", async () => {
    const metadata = authorized(operatorToken);
    const [ada, lost] = [await operators.issueClient('ada'), await operators.issueClient('lost')];
    assert.equal(await asOperator(lost, metadata), status.OK);
    const ssl = credentials.createSsl(Buffer.from(authority.cert), Buffer.from(lost.key), Buffer.from(lost.cert));
    const open = createGrpcClient(Diagnostics, `127.0.0.1:${gateway.app.adminPort}`, {}, ssl);
    const stream = open.watchEvents({}, { metadata })[Symbol.asyncIterator]();
    const watched = (async () => {
      for (let done: boolean | undefined = false; !done; ) ({ done } = await stream.next());
    })();
    const publish = (list: string) => {
      writeFileSync(`${revokedFile}.new`, list);
      renameSync(`${revokedFile}.new`, revokedFile);
    };
    publish(await operators.revoke([lost.cert]));
    await eventually(async () => assert.equal(await asOperator(lost, metadata), status.UNAVAILABLE), 20_000);
    assert.equal(await asOperator(ada, metadata), status.OK);
    // Open connections end too, with the streams on them.
    await assert.rejects(watched);
    await assert.rejects(open.getStatus({}, { ...callTimeout, metadata }), { code: status.UNAVAILABLE });
    open.close();
    publish(await operators.revoke([], new Date(Date.now() - 1_000)));
    const wrong = /"wrong":"a revocation list ended on /;
    await eventually(() => assert.match(gateway.logged.filter((line) => line.includes(refused)).join(''), wrong));
    assert.equal(await asOperator(ada, metadata), status.OK, 'a list that has ended does not replace another');
    publish(await operators.revoke([], new Date(Date.now() + 6_000)));
    await eventually(async () => {
      const left = (await scrape(gateway.app.opsPort)).value('marina_revocation_list_expires_seconds', {
        link: 'operators',
      });
      assert.ok(left < 6, `${left} s`);
    });
    await eventually(async () => assert.equal(await asOperator(ada, metadata), status.UNAVAILABLE), 20_000);
    publish(await operators.revoke([]));
    await eventually(async () => assert.equal(await asOperator(ada, metadata), status.OK), 20_000);
  });

  it('a new certificate is shown to new connections, and those that are open go on', async () => {
    const first = await shown(gateway.app.restPort);
    const agent = new Agent({ ca: authority.cert, keepAlive: true, maxSockets: 1 });
    const { socket } = await get(agent);
    const client = createGrpcClient(
      Events,
      `127.0.0.1:${gateway.app.grpcPort}`,
      {},
      credentials.createSsl(Buffer.from(authority.cert)),
    );
    const stream = client.watchEvents({}, { metadata: authorized(partner.key) })[Symbol.asyncIterator]();
    await stream.next(); // Its first heartbeat.

    put(await authority.issue(names));
    for (const port of [gateway.app.restPort, gateway.app.grpcPort]) {
      await eventually(async () => {
        const { fingerprint256 } = await shown(port);
        assert.notEqual(fingerprint256, first.fingerprint256, `port ${port} shows the new certificate`);
      }, 20_000);
    }
    const orders = grpc();
    const metadata = authorized(partner.key);
    metadata.set('idempotency-key', 'an event for the open stream');
    const order = { account: partner.account, symbol: 'SIM-REST', side: OrderSide.BUY, type: OrderType.MARKET };
    await orders.createOrder({ ...order, quantity: 1n }, { ...callTimeout, metadata });
    orders.close();
    const again = await get(agent);
    assert.equal(again.status, 200);
    assert.equal(again.socket, socket, 'the open connection goes on');
    assert.equal((await stream.next()).done, false, 'the open stream goes on');
    await stream.return?.(undefined);
    client.close();
    agent.destroy();
  });

  it('files that are no good are refused with a line in the log, and what was good is served on', async () => {
    const good = await shown(gateway.app.restPort);
    const other = await authority.issue(names);
    const over = new Date(Date.now() - 60_000);
    const bad: [string, Identity][] = [
      ['no certificate', { cert: 'nonsense', key: other.key }],
      ['a key of another certificate', { cert: other.cert, key: (await authority.issue(names)).key }],
      [
        'a certificate whose time is over',
        await authority.issue(names, { notBefore: new Date(over.getTime() - 60_000), notAfter: over }),
      ],
    ];
    for (const [what, identity] of bad) {
      const before = refusals();
      put(identity);
      // Two ports watch the same files.
      await eventually(() => assert.ok(refusals() >= before + 2, `${what} is refused`), 20_000);
      assert.equal((await shown(gateway.app.restPort)).fingerprint256, good.fingerprint256, what);
    }
    assert.doesNotMatch(gateway.logged.join(''), /PRIVATE KEY/);
    put(other);
    await eventually(async () => {
      assert.notEqual(
        (await shown(gateway.app.restPort)).fingerprint256,
        good.fingerprint256,
        'the next good one is taken',
      );
    }, 20_000);
  });

  function refusals(): number {
    return gateway.logged.filter((line) => line.includes(refused)).length;
  }
});
