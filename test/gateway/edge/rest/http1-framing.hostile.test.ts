import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { makeAuthority } from '../../../../src/sandbox/certificates.ts';
import { eventually } from '../../../support/eventually.ts';
import { temporaryFolder } from '../../../support/folders.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { attacksByBody } from '../../../support/hostile/http1-bodies.ts';
import { type FramingCase, get, type Parts, post } from '../../../support/hostile/http1-cases.ts';
import { attacksByCoding } from '../../../support/hostile/http1-chunks.ts';
import { type Cut, RawClient, type Seen } from '../../../support/hostile/http1-client.ts';
import { attacksByHead } from '../../../support/hostile/http1-heads.ts';
import { HonestCalls } from '../../../support/hostile/http1-honest.ts';
import { scrape } from '../../../support/metrics.ts';

const cuts: readonly Cut[] = ['one packet', 'a packet each', 'byte by byte'];
/** How long an answer, or the end of a connection, may take. */
const boundMs = 5_000;
/** The gateway's own times: of a head, of a body, and of a request whose body nobody waits for. */
const headTimeMs = 10_000;
const bodyTimeMs = 30_000;
const requestTimeMs = 41_000;

/** A gateway under attack, by plain text or by TLS. */
interface Site {
  readonly name: string;
  readonly gateway: TestGateway;
  readonly partner: TestPartner;
  readonly honest: HonestCalls;
  readonly ca: string | undefined;
}

let sites: readonly Site[] = [];

before(async () => {
  const folder = temporaryFolder();
  const authority = await makeAuthority('Marina test');
  const { cert, key } = await authority.issue(['127.0.0.1']);
  const certFile = join(folder, 'cert.pem');
  const keyFile = join(folder, 'key.pem');
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  sites = [
    await openSite('plain text', {}, undefined),
    await openSite('TLS', { MARINA_TLS_CERT_FILE: certFile, MARINA_TLS_KEY_FILE: keyFile }, authority.cert),
  ];
});
after(() =>
  onEach(async ({ gateway, honest }) => {
    await honest.stop();
    await gateway.stop();
  }),
);

describe('a request hidden in another', () => {
  it('would be seen if it ran: one that stands behind a whole request does', () =>
    onEach(async (site) => {
      const client = connect(site);
      const { auth, canary } = parts(site, 'control');
      await client.send([get(auth), canary], 'one packet');
      const seen = await client.answers(3, boundMs);
      client.close();
      assert.deepEqual(seen.statuses, [200, 201, 201], seen.text);
      assert.deepEqual(await requestsThatRan(site), ['control', 'control']);
    }));

  for (const [group, cases] of [...attacksByHead, ...attacksByBody, ...attacksByCoding]) {
    describe(`among ${group}`, { concurrency: 8 }, () => {
      for (const each of cases) {
        it(each.name, () => onEach((site) => Promise.all(cuts.map((cut) => attack(site, each, cut)))));
      }
    });
  }

  describe('in place of a body that pauses', { concurrency: true }, () => {
    it('is dropped when the time of the body is over', () =>
      onEach(async (site) => {
        const { auth, canary } = parts(site, 'after the time of a body');
        const seen = await pause(site, [post(auth, `Content-Length: ${canary.length}`)], canary, bodyTimeMs);
        assert.deepEqual([seen.statuses, seen.isClosed], [[400], true], seen.text);
      }));

    it('is dropped when the answer came before the body', () =>
      onEach(async (site) => {
        const { auth, canary } = parts(site, 'after an early answer');
        const seen = await pause(site, [get(auth, `Content-Length: ${canary.length + 1}`)], canary, requestTimeMs);
        assert.deepEqual([seen.statuses, seen.isClosed], [[200], true], seen.text);
      }));

    it('is dropped when the time of the head is over', () =>
      onEach(async (site) => {
        const { auth, canary } = parts(site, 'after the time of a head');
        const seen = await pause(site, [get(auth).slice(0, -2)], canary, headTimeMs);
        assert.deepEqual([seen.statuses, seen.isClosed], [[400], true], seen.text);
      }));
  });

  it('never ran in any of these cases, and every honest call was answered meanwhile', () =>
    onEach(async (site) => {
      await eventually(async () => {
        const { value } = await scrape(site.gateway.app.opsPort);
        assert.ok(value('marina_requests_under_way') <= 1, 'only the honest call may be under way');
      });
      assert.deepEqual(await requestsThatRan(site), ['control', 'control']);
      await site.honest.stop();
      assert.deepEqual(site.honest.failures, []);
      assert.ok(site.honest.calls > 50, `${site.honest.calls} honest calls were made`);
      const logged = site.gateway.logged.filter((line) => /uncaught|unhandled|"level":"(?:error|fatal)"/.test(line));
      assert.deepEqual(logged, []);
    }));
});

async function attack(site: Site, each: FramingCase, cut: Cut): Promise<void> {
  const { auth, canary } = parts(site, `${each.name}, ${cut}`);
  const what = `${site.name}, ${cut}`;
  const client = connect(site);
  try {
    await client.send(each.packets({ auth, canary }), cut);
    const { answers, ends } = each;
    const seen = ends ? await client.closed(boundMs) : await client.answers(answers?.length ?? 1, boundMs);
    if (answers !== undefined) assert.deepEqual(seen.statuses, answers, `${what}: ${seen.text}`);
    assert.ok(seen.statuses.length > 0, `${what}: no answer`);
    if (ends) return assert.ok(seen.isClosed, `${what}: the connection stays open`);
    const count = seen.statuses.length;
    // The server then reads the next request, or nothing.
    await client.send([get(auth)], 'one packet');
    const then = await client.answers(count + 1, boundMs);
    const isServed = then.statuses[count] === 200 && then.statuses.length === count + 1;
    assert.ok(isServed || (ends === undefined && then.isClosed), `${what}: ${then.text.slice(seen.text.length)}`);
  } finally {
    client.close();
  }
}

/** Sends a part of a request, waits until the gateway gives it up, and sends the canary as soon as it answers. */
async function pause(site: Site, packets: readonly string[], canary: string, timeMs: number): Promise<Seen> {
  const client = connect(site);
  try {
    await client.send(packets, 'one packet');
    await client.answers(1, timeMs + boundMs);
    await client.send([canary], 'one packet');
    return await client.closed(timeMs + boundMs);
  } finally {
    client.close();
  }
}

/** An order and an allocation, in the names of the case. */
function parts({ partner }: Site, name: string): Parts {
  const auth = `Authorization: Bearer ${partner.key}`;
  const { account } = partner;
  const create = (path: string, content: unknown) => {
    const body = JSON.stringify(content);
    const lines = ['Host: gateway', auth, `Idempotency-Key: ${JSON.stringify(name).replace(/[^\x20-\x7e]/g, '?')}`];
    const type = ['Content-Type: application/json', `Content-Length: ${body.length}`];
    return `POST ${path} HTTP/1.1\r\n${[...lines, ...type].join('\r\n')}\r\n\r\n${body}`;
  };
  const order = { account, symbol: 'SIM-REST', side: 'buy', quantity: 1, type: 'limit', price_kobo: 1000 };
  const canary = create('/v1/orders', order) + create('/v1/allocations', { account, amount_kobo: 1000 });
  return { auth, canary };
}

/** The names of the cases whose canaries ran. */
async function requestsThatRan({ gateway, partner }: Site): Promise<string[]> {
  const found: string[] = [];
  for (const table of ['orders', 'allocations']) {
    const sql = `SELECT idempotency_key FROM ${table} WHERE partner_id = ?`;
    const rows = await gateway.database.read(statement(sql, partner.id));
    found.push(...rows.map(({ idempotency_key: key }) => JSON.parse(String(key)) as string));
  }
  return found;
}

async function openSite(name: string, settings: Record<string, string>, ca: string | undefined): Promise<Site> {
  const gateway = await startGateway(settings);
  const partner = await gateway.newPartner();
  await gateway.fund(partner, 1_000_000n);
  const honest = new HonestCalls({ port: gateway.app.restPort, ca }, (await gateway.newPartner()).key);
  return { name, gateway, partner, honest, ca };
}

async function onEach(test: (site: Site) => Promise<unknown>): Promise<void> {
  await Promise.all(sites.map(test));
}

function connect({ gateway, ca }: Site): RawClient {
  return new RawClient({ port: gateway.app.restPort, ca });
}
