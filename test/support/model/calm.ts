import { setTimeout as delay } from 'node:timers/promises';
import { type App, startApp } from '../../../src/gateway/app/app.ts';
import { readConfig } from '../../../src/gateway/app/config.ts';
import { createLogger } from '../../../src/kit/log.ts';
import {
  callTimeout,
  operatorToken,
  type RestAnswer,
  type RestRequest,
  restCaller,
  startGateway,
  type TestGateway,
} from '../gateway.ts';
import { patient } from '../patience.ts';
import { operatorTokens, TwoOperators } from '../two-operators.ts';
import { WebhookReceiver } from '../webhook-receiver.ts';
import { agreed, agreedLimits } from './partner-model.ts';
import { listStock } from './sells.ts';
import type { RecordPositions, Whole } from './surroundings.ts';

type Rest = TestGateway['rest'];

/** How often a request is made at most whose answer only says that this process gets no time. */
const maxAttempts = 30;
/** After these answers the same request is safe to make again: a gateway that got no time took the broker for slow or away. */
const passing = new Set(['exchange_unavailable', 'document_unconfirmed']);

/** Two replicas in this process, which nothing disturbs but the commands themselves. */
export class CalmReplicas {
  readonly #positions: RecordPositions = { orders: 0n, allocations: 0n, withdrawals: 0n };
  /** The requests that were answered so late that the gateway may have waited in vain for the broker. */
  #late = 0;

  private constructor(
    private readonly gateway: TestGateway,
    private readonly operators: TwoOperators,
    private readonly submitTimeoutMs: number,
    private readonly receiver: WebhookReceiver,
    private second: App,
  ) {}

  static async start(): Promise<CalmReplicas> {
    // An answer that is lost is waited for as long as this.
    const submitTimeoutMs = patient(400);
    const receiver = await WebhookReceiver.start();
    const variables = {
      ...receiver.variables,
      MARINA_SUBMIT_TIMEOUT_MS: String(submitTimeoutMs),
      MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
      MARINA_FOUR_EYES_ABOVE_KOBO: String(agreed.fourEyesAboveKobo),
    };
    const gateway = await startGateway(variables, {
      funds: { startCashKobo: agreed.startCashKobo, sharesElsewhere: 0n },
    });
    await listStock(gateway.controls);
    const operators = await TwoOperators.connect(gateway.app.adminPort);
    return new CalmReplicas(gateway, operators, submitTimeoutMs, receiver, await startSecond(gateway));
  }

  /** A partner of its own, before the first command. */
  async newWhole(): Promise<Whole> {
    const { gateway, operators, receiver } = this;
    const partner = await gateway.newPartner({ limits: agreedLimits, accounts: 2 });
    const second = { account: partner.accounts[1], cashKobo: BigInt(agreed.secondStartKobo) };
    await gateway.controls.setCash(second, callTimeout);
    return {
      ...{ partner, operators, receiver, controls: gateway.controls, positions: this.#positions },
      replicas: [gateway.rest, (...request: Parameters<Rest>) => restCaller(this.second)(...request)].map(
        (rest) => (method, path, request) => this.#ask(rest, method, path, request),
      ),
      opsPorts: () => [gateway.app.opsPort, this.second.opsPort],
      unclear: () => this.#late,
      restart: async () => {
        await this.second.stop();
        this.second = await startSecond(gateway);
      },
      settle: () => {},
      calm: async () => {},
    };
  }

  async #ask(rest: Rest, method: string, path: string, request?: RestRequest): Promise<RestAnswer> {
    for (let attempt = 1; ; attempt += 1) {
      const begunAt = performance.now();
      const answer = await rest(method, path, request);
      if (performance.now() - begunAt > this.submitTimeoutMs) this.#late += 1;
      // A process that gets no time for a second fills no bucket in that second.
      const isPassing = answer.status === 429 || passing.has(answer.body?.error?.code);
      if (!isPassing || attempt === maxAttempts) return answer;
      await delay(1_000);
    }
  }

  async stop(): Promise<void> {
    this.operators.close();
    await this.second.stop();
    try {
      await this.gateway.stop();
    } finally {
      await this.receiver.close();
    }
  }
}

function startSecond(gateway: TestGateway): Promise<App> {
  return startApp(readConfig(gateway.variables), createLogger({ name: 'test', level: 'silent' }));
}
