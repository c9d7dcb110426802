import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { markDue } from '../../../src/gateway/delivery/webhooks/plan/endpoint-store.ts';
import { makeAuthority } from '../../../src/sandbox/certificates.ts';
import { sharedKeeper } from '../../../src/sandbox/keeper.ts';
import { adminClient, newPartnerByOperator } from '../../support/admin.ts';
import type { Cluster, GatewayProcess, Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { insertRows } from '../../support/insert-rows.ts';
import { startBaseline } from './processes.ts';

const loopAtOnce = 64;

/** The deliveries that arrived since the last question. */
export interface Arrived {
  readonly count: number;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly times: readonly (readonly [id: string, atMs: number])[];
  readonly hanging: number;
}

/** The result of one turn of the bare loop. */
export interface LoopTurn {
  readonly perSecond: number;
  readonly cpuUs: number;
}

/** A gateway and a bare https server with an endpoint for each partner. */
export interface Endpoints {
  readonly gateway: GatewayProcess;
  readonly admin: ReturnType<typeof adminClient>;
  /** Registers an endpoint of a new partner. */
  register(path: string): Promise<Partner>;
  /** Puts events into a partner's queue that are due now. */
  queue(partnerId: string, count: number): Promise<void>;
  /** Asks what has arrived since it was asked before. */
  ask(): Promise<Arrived>;
  /** Waits until so many have arrived since the last `ask`, without asking meanwhile. Call it before they are sent. */
  whenCame(count: number): Promise<void>;
  /** Lets the bare loop send the same bytes to the same server. */
  loop(count: number): Promise<LoopTurn>;
  stop(): Promise<void>;
}

/** Starts the gateway of a version, by its built `main.js`; absent: this version's. */
export async function startEndpoints(cluster: Cluster, main?: string): Promise<Endpoints> {
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const authority = await makeAuthority('Bench');
  const { cert, key } = await authority.issue(['127.0.0.1']);
  const authorityFile = join(folder, 'authority.pem');
  writeFileSync(authorityFile, authority.cert);
  const server = await startBaseline('webhook-endpoint', { BASELINE_CERT: cert, BASELINE_KEY: key });
  const url = `https://127.0.0.1:${server.port}`;
  const variables = { MARINA_WEBHOOK_ALLOW_LOOPBACK: 'true', MARINA_WEBHOOK_CA_FILE: authorityFile };
  const gateway = await cluster.startGateway(variables, main);
  const admin = adminClient(gateway.adminPort);
  let asked = 0;
  let answer: (Arrived & { ask?: number }) | undefined;
  let came = 0;
  server.process.onMessage((message) => {
    if ('came' in (message as object)) came = (message as { came: number }).came;
    else answer = message as Arrived;
  });
  const queued = new Map<string, number>();
  return {
    gateway,
    admin,
    async register(path) {
      const partner = await newPartnerByOperator(admin, cluster.controls, path);
      await admin.webhooks.registerEndpoint({ partnerId: partner.id, url: `${url}${path}` }, admin.options);
      return partner;
    },
    async queue(partnerId, count) {
      const after = queued.get(partnerId) ?? 0;
      queued.set(partnerId, after + count);
      await queueEvents(cluster, partnerId, after, count);
    },
    ask() {
      asked += 1;
      server.process.send({ ask: asked });
      return eventually(() => {
        if (answer?.ask !== asked) throw new Error('the endpoint does not say');
        return answer;
      });
    },
    async whenCame(count) {
      came = 0;
      server.process.send({ tellAfter: count });
      await eventually(() => {
        if (came !== count) throw new Error('not all have come');
      }, 300_000);
    },
    loop: (count) => bareLoop(`${url}/loop`, authority.cert, count),
    async stop() {
      admin.close();
      await server.process.stop();
    },
  };
}

/** Events that are due now, as if they had been taken from the outbox. */
async function queueEvents(cluster: Cluster, partnerId: string, after: number, count: number): Promise<void> {
  const now = new Date();
  for (let first = 1; first <= count; first += 1_000) {
    const versions = Array.from({ length: Math.min(1_000, count - first + 1) }, (_, index) => after + first + index);
    const ids = versions.map(() => `msg_${randomBytes(12).toString('hex')}`);
    const feed = versions.map((version, index) => [partnerId, version, ids[index] ?? '', bodyOf(), now]);
    const rows = versions.map((version, index) => {
      const id = ids[index] ?? '';
      return [partnerId, version, id, 'order.pending', now, now, now, 'waiting', 1];
    });
    await cluster.database.write(
      insertRows('feed_events', ['partner_id', 'version', 'id', 'body', 'occurred_at'], feed),
    );
    const columns = 'partner_id version event_id type occurred_at committed_at taken_at state queue'.split(' ');
    await cluster.database.write(insertRows('webhook_deliveries', columns, rows));
  }
  await cluster.database.write(markDue([partnerId], now.getTime()));
}

/** As long as an order's event is. */
function bodyOf(): Buffer {
  return Buffer.from(JSON.stringify({ object: 'event', data: { object: 'order', text: 'x'.repeat(520) } }));
}

async function bareLoop(url: string, ca: string, count: number): Promise<LoopTurn> {
  const { process: loop } = await startBaseline('webhook-loop', {
    BASELINE_URL: url,
    BASELINE_CA: ca,
    BASELINE_COUNT: String(count),
    BASELINE_AT_ONCE: String(loopAtOnce),
    BASELINE_BODY: bodyOf().toString(),
  });
  let turn: LoopTurn | undefined;
  loop.onMessage((message) => {
    if ('perSecond' in (message as object)) turn = message as LoopTurn;
  });
  const result = await eventually(() => {
    if (turn === undefined) throw new Error('the loop does not end');
    return turn;
  }, 120_000);
  await loop.stop();
  return result;
}
