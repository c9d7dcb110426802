import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { statement, toBigInt } from '../../../../src/gateway/store/statement.ts';
import { codeOf } from '../../../../src/kit/grpc-client.ts';
import { adminClient } from '../../admin.ts';
import { type Answer, Cluster, callTimeout, type GatewayProcess, type Partner } from '../../cluster.ts';
import { patient } from '../../patience.ts';
import { WebhookReceiver } from '../../webhook-receiver.ts';
import type { Armed } from './inside/watch.ts';
import type { Watched } from './scenario.ts';
import { type Seen, WatchedProcess } from './watched-process.ts';

/** How long a partner asks again before he gives up; less in runs that are expected to fail. */
const longestAskMs = Math.min(20_000, Number(process.env.MARINA_TEST_BOUND_MS ?? Number.POSITIVE_INFINITY));
const askAgainMs = 50;
/** The answer of a gateway that is killed or frozen. */
const none: Answer = { status: undefined, body: undefined, headers: undefined };
/** Answers with 503 that the same key gets for ever. */
const finalCodes = /_not_sent$/;

/** A cluster with one gateway at a time, whose moments are watched. One that was killed is followed by the next. */
export class WatchedCluster implements Watched {
  readonly #process: WatchedProcess<GatewayProcess>;

  private constructor(
    readonly cluster: Cluster,
    readonly receiver: WebhookReceiver,
    isBeside: boolean,
  ) {
    const { folder, database } = cluster;
    this.#process = new WatchedProcess({
      folder,
      start: (variables) => cluster.startGateway(variables),
      isBeside,
      // Its leases would keep the next one waiting for as long as a process may be frozen, and this one is dead.
      bury: async () => void (await database.write(statement('UPDATE leases SET expires_at = NOW(3)'))),
    });
  }

  /** `isBeside`: a second gateway runs, which goes on when the one that is watched ends. */
  static async start(variables: Record<string, string> = {}, isBeside = false): Promise<WatchedCluster> {
    const receiver = await WebhookReceiver.start();
    return new WatchedCluster(await Cluster.start({ ...receiver.variables, ...variables }), receiver, isBeside);
  }

  /** The gateway that runs, or the next one if it was killed. */
  gateway(): Promise<GatewayProcess> {
    return this.#process.current();
  }

  /** The last fate that was chosen. */
  armed: Armed | undefined;

  begin(armed?: Armed): Promise<void> {
    this.armed = armed ?? this.armed;
    return this.#process.begin(armed);
  }

  thaw(): boolean {
    return this.#process.thaw();
  }

  get hasDied(): boolean {
    return this.#process.hasDied;
  }

  seen(): Promise<Seen> {
    return this.#process.seen();
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
      const answer = (await this.unlessFrozen(gateway.request(method, path, { key, ...given }))) ?? none;
      const { status: answeredWith, body: answered } = answer;
      if (answeredWith === undefined) assert.ok(await this.#process.endsSoon(), `${method} ${path} had no answer`);
      else {
        assert.notEqual(answeredWith, 500, `${method} ${path}: ${JSON.stringify(answered)}`);
        if (answeredWith !== 503 || finalCodes.test(answered.error.code)) return answer;
      }
      assert.ok(performance.now() < end, `${method} ${path} is answered ${answeredWith} again and again`);
      await delay(askAgainMs);
    }
  }

  /** The answer of a gateway; undefined: it was frozen before. */
  async unlessFrozen<T>(answer: Promise<T>): Promise<T | undefined> {
    const done = new AbortController();
    try {
      return await Promise.race([answer, this.#process.untilFrozen(done.signal).then(() => undefined)]);
    } finally {
      done.abort();
    }
  }

  /** Makes an operator's call: again while no answer comes or the gateway cannot serve. */
  operate<T>(call: (admin: ReturnType<typeof adminClient>) => Promise<T>): Promise<T> {
    return this.again(async ({ adminPort }) => {
      const admin = adminClient(adminPort);
      try {
        return await call(admin);
      } finally {
        admin.close();
      }
    });
  }

  /** Calls the gateway over gRPC: again while no answer comes or the gateway cannot serve. */
  async again<T>(call: (gateway: GatewayProcess) => Promise<T>): Promise<T> {
    const end = performance.now() + patient(longestAskMs);
    for (;;) {
      try {
        return await call(await this.gateway());
      } catch (error) {
        assert.notEqual(codeOf(error), status.INTERNAL, String(error));
        if (codeOf(error) !== status.UNAVAILABLE || performance.now() > end) throw error;
        await delay(askAgainMs);
      }
    }
  }

  /** Lets business time go by while no gateway runs. */
  async letPass(ms: number): Promise<void> {
    const { database, controls } = this.cluster;
    await database.write(statement('UPDATE environment SET clock_offset_ms = clock_offset_ms + ? WHERE id = 1', ms));
    const [row] = await database.read(statement('SELECT clock_offset_ms FROM environment WHERE id = 1'));
    await controls.setClock({ offsetMs: toBigInt(row?.clock_offset_ms) }, callTimeout);
  }

  /** Ends the gateway. The next one has no memory of what failed. */
  async restart(): Promise<void> {
    await Promise.all(this.#process.release().map((gateway) => gateway.stop()));
  }

  async stop(): Promise<void> {
    try {
      await this.cluster.stop();
    } finally {
      await this.receiver.close();
    }
  }
}
