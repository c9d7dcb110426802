import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { JsonObject } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import { Cluster, callTimeout, type GatewayProcess } from '../cluster.ts';
import { ready } from '../eventually.ts';
import { type Direction, FaultProxy } from '../fault-proxy.ts';
import { makePartner, operatorToken, type RestAnswer, type RestRequest, restCaller } from '../gateway.ts';
import type { Found } from '../operator.ts';
import { patient, slowness } from '../patience.ts';
import { type OperatorName, operatorTokens, TwoOperators } from '../two-operators.ts';
import { WebhookReceiver } from '../webhook-receiver.ts';
import { MortalServers, patientControls, type ServerDeath, type ServerName } from './mortal-servers.ts';
import { agreed, agreedLimits } from './partner-model.ts';
import { listStock } from './sells.ts';
import type { RecordPositions, Whole } from './surroundings.ts';

/** A death of a replica, or of the server at the other end of its link, that the bytes of a later command cause. */
export interface Death {
  readonly replica: number;
  /** The server that dies; absent: the replica does. */
  readonly server?: Omit<ServerDeath, 'server'>;
  /** It dies at the so manieth bytes on their way over this link. */
  readonly link: ServerName;
  readonly direction: Direction;
  readonly count: number;
  /** Whether these bytes still arrive. */
  readonly isDelivered: boolean;
}

/** A gateway of a sequence of its own database, broker and streams, whose replicas can die. */
export interface MortalWhole extends Whole {
  readonly faults: Faults;
}

/** The faults that a command can make. */
export interface Faults {
  /** Ends a replica as a crash does, and starts another one in its place. */
  kill(replica: number): void;
  /** Ends a server as a crash does, and starts it again. */
  killServer(death: ServerDeath): void;
  /** Lets a replica, or a server, die while the next command is under way. */
  killDuringNext(death: Death): void;
  /** Stops the process of a replica for a moment. */
  freeze(replica: number, forMs: number): void;
  /** Breaks the connections of a replica to a neighbour, and refuses new ones for a moment. */
  cut(replica: number, link: ServerName, forMs: number): Promise<void>;
}

/** After these errors a partner makes the same request again. */
const unclearCodes = new Set([
  'service_unavailable',
  'exchange_unavailable',
  'outcome_not_recorded',
  'cancel_unconfirmed',
  'rate_limited',
  'document_in_flight',
  'document_unconfirmed',
]);
const unclearStatuses = new Set([status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED]);
/** A partner waits for an answer as long as this, and then makes the request again. */
const patienceMs = 4_000;
/** After this time without a clear answer the test fails. */
const longestMs = 60_000;
const submitTimeoutMs = 600;

/** One replica, which is another process after each death. */
class Replica {
  #process: GatewayProcess | undefined;
  #operators: TwoOperators | undefined;
  /** Settles when it runs again after a death; undefined: it runs. */
  #starting: Promise<void> | undefined;
  /** The disturbances that are not over. */
  readonly #disturbances = new Set<Promise<void>>();

  private constructor(
    private readonly cluster: Cluster,
    readonly links: Readonly<Record<ServerName, FaultProxy>>,
  ) {}

  static async start(cluster: Cluster): Promise<Replica> {
    const { MARINA_DATABASE_URL = '', MARINA_NATS_URL = '', MARINA_BROKER_ADDRESS = '' } = cluster.gatewayVariables;
    const [database, nats, broker] = await Promise.all(
      [MARINA_DATABASE_URL, MARINA_NATS_URL, MARINA_BROKER_ADDRESS].map((target) => FaultProxy.start(target)),
    );
    assert.ok(database !== undefined && nats !== undefined && broker !== undefined);
    const replica = new Replica(cluster, { database, nats, broker });
    await replica.#startProcess();
    return replica;
  }

  get process(): GatewayProcess {
    assert.ok(this.#process !== undefined);
    return this.#process;
  }

  get operators(): TwoOperators {
    assert.ok(this.#operators !== undefined);
    return this.#operators;
  }

  get isDisturbed(): boolean {
    return this.#starting !== undefined || this.#disturbances.size > 0;
  }

  get isRunning(): boolean {
    return this.#starting === undefined;
  }

  /** It is dead when this returns. */
  kill(): void {
    if (this.#starting !== undefined) return;
    process.kill(this.process.pid, 'SIGKILL');
    this.#starting = this.process.exited
      .then(() => this.#startProcess())
      .finally(() => {
        this.#starting = undefined;
      });
    this.#disturb(this.#starting);
  }

  async restart(): Promise<void> {
    await this.#starting;
    this.#starting = this.process
      .stop()
      .then(() => this.#startProcess())
      .finally(() => {
        this.#starting = undefined;
      });
    this.#disturb(this.#starting);
    await this.#starting;
  }

  freeze(forMs: number): void {
    if (!this.isRunning) return;
    const { process: frozen } = this;
    frozen.freeze();
    this.#disturb(delay(forMs).then(() => frozen.thaw()));
  }

  async cut(name: ServerName, forMs: number): Promise<void> {
    const link = this.links[name];
    link.reset();
    if (forMs > 0) await link.refuse();
    this.#disturb(delay(forMs).then(() => link.accept()));
  }

  /** Waits until nothing disturbs it. */
  async calm(): Promise<void> {
    while (this.#disturbances.size > 0) await Promise.all(this.#disturbances);
  }

  async stop(): Promise<void> {
    await this.calm();
    this.#operators?.close();
  }

  async close(): Promise<void> {
    for (const link of Object.values(this.links)) await link.close();
  }

  /** A server that it needs is away until then. */
  miss(untilBack: Promise<void>): void {
    this.#disturb(untilBack);
  }

  /** A disturbance is over once the gateway says after it that it is ready. */
  #disturb(disturbance: Promise<void>): void {
    const whole = disturbance.then(() => this.#untilReady());
    this.#disturbances.add(whole);
    void whole.finally(() => this.#disturbances.delete(whole)).catch(() => undefined);
  }

  async #untilReady(): Promise<void> {
    await this.#starting;
    // It may not have noticed yet.
    await delay(200);
    await ready(async () => {
      if (!this.isRunning) return;
      const answer = await fetch(`http://127.0.0.1:${this.process.opsPort}/readyz`, {
        signal: AbortSignal.timeout(patienceMs),
      });
      assert.equal(answer.status, 200, await answer.text());
    }, longestMs);
  }

  async #startProcess(): Promise<void> {
    const { MARINA_DATABASE_URL = '', MARINA_NATS_URL = '' } = this.cluster.gatewayVariables;
    const { database, nats, broker } = this.links;
    const variables = {
      MARINA_DATABASE_URL: database.through(MARINA_DATABASE_URL),
      MARINA_NATS_URL: nats.through(MARINA_NATS_URL),
      MARINA_BROKER_ADDRESS: broker.address,
    };
    // One that finds no database at its start ends, and what runs it starts it again.
    this.#process = await ready(() => this.cluster.startGateway(variables), longestMs);
    const before = this.#operators;
    this.#operators = before?.at(this.#process.adminPort) ?? (await TwoOperators.connect(this.#process.adminPort));
    before?.close();
  }
}

/** Two operators who make a call again until it has an answer. */
class PatientOperators extends TwoOperators {
  constructor(
    usual: TwoOperators,
    private readonly untilAnswered: (call: (operators: TwoOperators) => Promise<Found>) => Promise<Found>,
  ) {
    super(usual.client);
  }

  override as(name: OperatorName, call: string, request: JsonObject = {}): Promise<Found> {
    return this.untilAnswered((operators) => operators.as(name, call, request));
  }
}

/** Two replicas of the built gateway, each a process of its own that reaches its neighbours through proxies. */
export class MortalReplicas {
  readonly #positions: RecordPositions = { orders: 0n, allocations: 0n, withdrawals: 0n };
  #unclear = 0;
  /** A death that waits for the next command. */
  #waiting: Death | undefined;
  /** The death that bytes of the present command cause. */
  #armed: Death | undefined;

  private constructor(
    private readonly cluster: Cluster,
    private readonly servers: MortalServers,
    private readonly receiver: WebhookReceiver,
    private readonly replicas: readonly Replica[],
  ) {}

  static async start(): Promise<MortalReplicas> {
    const [receiver, servers] = await Promise.all([WebhookReceiver.start(), MortalServers.start()]);
    const cluster = await Cluster.start(
      {
        ...receiver.variables,
        MARINA_SUBMIT_TIMEOUT_MS: String(patient(submitTimeoutMs)),
        MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
        MARINA_FOUR_EYES_ABOVE_KOBO: String(agreed.fourEyesAboveKobo),
      },
      {
        databaseServerUrl: servers.database.url,
        natsUrl: servers.nats.url,
        simulator: {
          MARINA_SIMULATOR_FUNDS: 'checked',
          MARINA_SIMULATOR_START_CASH_KOBO: String(agreed.startCashKobo),
          MARINA_SIMULATOR_SHARES_ELSEWHERE: '0',
        },
      },
    );
    await listStock(cluster.controls);
    const replicas = [await Replica.start(cluster), await Replica.start(cluster)];
    return new MortalReplicas(cluster, servers, receiver, replicas);
  }

  /** A partner of its own, before the first command. */
  async newWhole(): Promise<MortalWhole> {
    const { cluster, receiver } = this;
    const { controls } = cluster;
    const partner = await makePartner(cluster, { limits: agreedLimits, accounts: 2 });
    await controls.setCash({ account: partner.accounts[1], cashKobo: BigInt(agreed.secondStartKobo) }, callTimeout);
    return {
      ...{ partner, receiver, positions: this.#positions, faults: this.#faults() },
      controls: patientControls(controls, () => this.#untilBrokerStays()),
      operators: new PatientOperators(this.#replica(0).operators, (call) => this.#untilAnswered(call)),
      replicas: [0, 1].map((number) => (method, path, request) => this.#ask(number, method, path, request)),
      opsPorts: () => this.replicas.filter(({ isRunning }) => isRunning).map(({ process: { opsPort } }) => opsPort),
      unclear: () => this.#unclear,
      restart: () => this.#replica(1).restart(),
      settle: () => this.#disarm(),
      calm: () => this.#calm(),
    };
  }

  async stop(): Promise<void> {
    try {
      await this.#calm();
      for (const replica of this.replicas) await replica.stop();
      await this.cluster.stop();
    } finally {
      for (const replica of this.replicas) await replica.close();
      await this.servers.stop();
      await this.receiver.close();
    }
  }

  #replica(number: number): Replica {
    return this.replicas[number % this.replicas.length] as Replica;
  }

  get #isDisturbed(): boolean {
    return this.replicas.some(({ isDisturbed }) => isDisturbed);
  }

  #faults(): Faults {
    return {
      kill: (number) => this.#replica(number).kill(),
      killServer: (death) => this.#killServer(death),
      killDuringNext: (death) => {
        this.#waiting = death;
      },
      freeze: (number, forMs) => this.#replica(number).freeze(forMs),
      cut: (number, link, forMs) => this.#replica(number).cut(link, forMs),
    };
  }

  #killServer(death: ServerDeath): void {
    const untilBack = this.servers.kill(this.cluster, death);
    if (untilBack === undefined) return;
    for (const replica of this.replicas) replica.miss(untilBack);
  }

  /** The broker forgets at its death what a command has told it. So it does not die during that command any more. */
  async #untilBrokerStays(): Promise<void> {
    const isOfBroker = (death: Death | undefined) => death?.server !== undefined && death.link === 'broker';
    if (isOfBroker(this.#waiting)) this.#waiting = undefined;
    if (isOfBroker(this.#armed)) this.#disarm();
    await this.servers.running('broker');
  }

  /** Makes a request as a partner does: again, and of the other replica, until the answer is clear. */
  #ask(number: number, method: string, path: string, request?: RestRequest): Promise<RestAnswer> {
    return this.#repeat(number, async (replica) => {
      const answer = await restCaller(replica.process, patient(patienceMs))(method, path, request);
      return unclearCodes.has(answer.body?.error?.code) ? undefined : answer;
    });
  }

  #untilAnswered(call: (operators: TwoOperators) => Promise<Found>): Promise<Found> {
    return this.#repeat(0, async (replica) => {
      try {
        return { answer: await call(replica.operators) };
      } catch (error) {
        const { code = status.OK } = error as ServiceError;
        if (code === status.RESOURCE_EXHAUSTED) return undefined;
        if (unclearStatuses.has(code)) throw error;
        return { error };
      }
    }).then(({ answer, error }: { answer?: Found; error?: unknown }) => {
      if (error !== undefined) throw error;
      return answer;
    });
  }

  /** Tries until there is a result, each time with another replica that runs. Errors are those of a connection. */
  async #repeat<Result>(number: number, attempt: (replica: Replica) => Promise<Result | undefined>): Promise<Result> {
    const first = this.#arm() ?? number;
    const wasDisturbed = this.#isDisturbed;
    let last: unknown;
    for (let [at, leftMs, isFirst] = [first, longestMs, true]; leftMs > 0; at += 1, isFirst = false) {
      const replica = this.#replica(at);
      const begunAt = performance.now();
      if (replica.isRunning) {
        try {
          const result = await attempt(replica);
          if (result !== undefined) {
            const isLate = performance.now() - begunAt > submitTimeoutMs;
            if (!isFirst || isLate || wasDisturbed || this.#isDisturbed) this.#unclear += 1;
            return result;
          }
          last = undefined;
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error;
          last = error;
        }
      }
      await delay(50);
      leftMs -= (performance.now() - begunAt) / slowness();
    }
    throw new Error(`no clear answer in ${longestMs} ms`, { cause: last });
  }

  /** Arms the death that waits. Returns the replica that is to be asked. */
  #arm(): number | undefined {
    const death = this.#waiting;
    if (death === undefined) return undefined;
    this.#waiting = undefined;
    this.#armed = death;
    const replica = this.#replica(death.replica);
    let left = death.count;
    replica.links[death.link].onBytes = (link, direction) => {
      if (direction !== death.direction || !replica.isRunning) return;
      left -= 1;
      if (left !== 0) return;
      replica.links[death.link].onBytes = undefined;
      const { server } = death;
      if (server === undefined) replica.kill();
      else this.#killServer({ ...server, server: death.link });
      if (!death.isDelivered) link.reset();
    };
    return death.replica;
  }

  /** No death waits for a command any more, and nothing disturbs the replicas. */
  async #calm(): Promise<void> {
    this.#waiting = undefined;
    this.#disarm();
    for (const replica of this.replicas) await replica.calm();
  }

  #disarm(): void {
    if (this.#armed === undefined) return;
    this.#armed = undefined;
    for (const { links } of this.replicas) for (const link of Object.values(links)) link.onBytes = undefined;
  }
}
