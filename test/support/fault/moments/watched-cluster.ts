import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { codeOf } from '../../../../src/kit/grpc-client.ts';
import { adminClient } from '../../admin.ts';
import { type Answer, Cluster, EndedEarly, type GatewayProcess, type Partner } from '../../cluster.ts';
import { patient } from '../../patience.ts';
import { WebhookReceiver } from '../../webhook-receiver.ts';
import type { Watching } from './inside/preload.ts';
import type { Armed, Moment } from './inside/watch.ts';
import { compileInside } from './load.ts';

/** How long a partner asks again before he gives up; less in runs that are expected to fail. */
const longestAskMs = Math.min(20_000, Number(process.env.MARINA_TEST_BOUND_MS ?? Number.POSITIVE_INFINITY));
const askAgainMs = 50;
/** Answers with 503 that the same key gets for ever. */
const finalCodes = /_not_sent$/;

/** The moments of a gateway since it was told to begin. */
export interface Seen {
  readonly moments: readonly Moment[];
  /** How many moments met the fate that was chosen for them. */
  readonly met: number;
}

/** A cluster with one gateway at a time, whose moments are watched. One that was killed is followed by the next. */
export class WatchedCluster {
  #gateway: { readonly process: GatewayProcess; readonly socket: string } | undefined;
  #next: Promise<GatewayProcess> | undefined;
  #mayDie = false;
  #hasDied = false;
  #started = 0;

  private constructor(
    readonly cluster: Cluster,
    readonly receiver: WebhookReceiver,
    private readonly preload: string,
  ) {}

  static async start(variables: Record<string, string> = {}): Promise<WatchedCluster> {
    const receiver = await WebhookReceiver.start();
    const cluster = await Cluster.start({ ...receiver.variables, ...variables });
    return new WatchedCluster(cluster, receiver, compileInside(join(cluster.folder, 'inside')));
  }

  /** The gateway that runs, or the next one if it was killed. Throws if it died of anything else. */
  gateway(): Promise<GatewayProcess> {
    // Several callers at once get the same one.
    this.#next ??= this.#running().finally(() => {
      this.#next = undefined;
    });
    return this.#next;
  }

  async #running(): Promise<GatewayProcess> {
    const before = this.#gateway;
    if (before !== undefined && !(await hasEnded(before.process))) return before.process;
    if (before !== undefined) {
      const { signal } = await before.process.exited;
      assert.ok(this.#mayDie && signal === 'SIGKILL', `a gateway ended by itself: see ${before.process.logPath}`);
      await this.#buried();
    }
    return this.#start();
  }

  /** Starts a gateway. One that ends of its fate before it is ready is followed by the next one, as by its supervisor. */
  async #start(armed?: Armed): Promise<GatewayProcess> {
    this.#started += 1;
    const socket = join(this.cluster.folder, `${this.#started}.sock`);
    const watching: Watching = { socket, ...(armed && { armed }) };
    const variables = { NODE_OPTIONS: this.preload, MARINA_MOMENTS: JSON.stringify(watching) };
    try {
      this.#gateway = { process: await this.cluster.startGateway(variables), socket };
    } catch (error) {
      if (!(error instanceof EndedEarly) || armed === undefined) throw error;
      const ended = error.exit?.signal ?? error.exit?.code;
      assert.equal(ended, this.#mayDie ? 'SIGKILL' : 1, error.message);
      await this.#buried();
      return this.#start();
    }
    return this.#gateway.process;
  }

  async #buried(): Promise<void> {
    this.#mayDie = false;
    this.#hasDied = true;
    // Its leases would keep the next one waiting for as long as a process may be frozen, and this one is dead.
    await this.cluster.database.write(statement('UPDATE leases SET expires_at = NOW(3)'));
  }

  /** Counts moments anew, and chooses the fate of one of them. If no gateway runs, one is started, and has its fate from then on. */
  async begin(armed?: Armed): Promise<void> {
    const isRunning = this.#gateway !== undefined;
    if (isRunning) await this.gateway();
    this.#mayDie = armed?.fate === 'before' || armed?.fate === 'after';
    this.#hasDied = false;
    if (isRunning) await this.#control('/begin', { armed });
    else await this.#start(armed);
  }

  /** Whether the gateway has died of its fate since it was told to begin. */
  get hasDied(): boolean {
    return this.#hasDied;
  }

  /** The gateway's moments. One that was killed has met its fate. */
  async seen(): Promise<Seen> {
    const { process } = this.#gateway ?? assert.fail('no gateway runs');
    const seen = await this.#control('/seen', {}).catch(() => undefined);
    if (seen !== undefined) return seen;
    await process.exited;
    return { moments: [], met: 1 };
  }

  /** Asks as a partner does: again, with the same key, while no answer comes or the gateway cannot serve. */
  async ask(
    { key }: Partner,
    method: string,
    path: string,
    { idempotencyKey, body }: { idempotencyKey?: string; body?: unknown } = {},
  ): Promise<Answer> {
    const end = performance.now() + patient(longestAskMs);
    for (;;) {
      const gateway = await this.gateway();
      const given = { ...(idempotencyKey && { idempotencyKey }), ...(body !== undefined && { body }) };
      const answer = await gateway.request(method, path, { key, ...given });
      const { status: answeredWith, body: answered } = answer;
      if (answeredWith === undefined) assert.ok(await endsSoon(gateway), `${method} ${path} had no answer`);
      else {
        assert.notEqual(answeredWith, 500, `${method} ${path}: ${JSON.stringify(answered)}`);
        if (answeredWith !== 503 || finalCodes.test(answered.error.code)) return answer;
      }
      assert.ok(performance.now() < end, `${method} ${path} is answered ${answeredWith} again and again`);
      await delay(askAgainMs);
    }
  }

  /** Makes an operator's call: again while no answer comes or the gateway cannot serve. */
  async operate<T>(call: (admin: ReturnType<typeof adminClient>) => Promise<T>): Promise<T> {
    const end = performance.now() + patient(longestAskMs);
    for (;;) {
      const admin = adminClient((await this.gateway()).adminPort);
      try {
        return await call(admin);
      } catch (error) {
        assert.notEqual(codeOf(error), status.INTERNAL, String(error));
        if (codeOf(error) !== status.UNAVAILABLE || performance.now() > end) throw error;
        await delay(askAgainMs);
      } finally {
        admin.close();
      }
    }
  }

  /** Ends the gateway. The next one has no memory of what failed. */
  async restart(): Promise<void> {
    await this.#gateway?.process.stop();
    this.#gateway = undefined;
  }

  async stop(): Promise<void> {
    await this.cluster.stop();
    await this.receiver.close();
  }

  #control(path: string, message: object): Promise<Seen> {
    const { socket } = this.#gateway ?? assert.fail('no gateway runs');
    return new Promise((resolve, reject) => {
      const request = httpRequest({ socketPath: socket, path, method: 'POST' }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('error', reject);
        response.on('end', () => resolve(JSON.parse(text) as Seen));
      });
      request.on('error', reject);
      request.end(JSON.stringify(message));
    });
  }
}

async function hasEnded({ exited }: GatewayProcess): Promise<boolean> {
  return Promise.race([exited.then(() => true), delay(0, false)]);
}

async function endsSoon({ exited }: GatewayProcess): Promise<boolean> {
  return Promise.race([exited.then(() => true), delay(patient(5_000), false)]);
}
