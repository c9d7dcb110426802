import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type App, startApp } from '../../../src/gateway/app/app.ts';
import { readConfig } from '../../../src/gateway/app/config.ts';
import { nextLagosMidnight } from '../../../src/kit/clock.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { adminClient } from '../../support/admin.ts';
import { eventually } from '../../support/eventually.ts';
import { callTimeout, operatorToken, restCaller, startGateway, type TestGateway } from '../../support/gateway.ts';
import { scrape } from '../../support/metrics.ts';
import { PartnerModel } from '../../support/model/partner-model.ts';
import type { Whole } from '../../support/model/surroundings.ts';
import { runSequence, sequences } from '../../support/model/whole.ts';
import { fc } from '../../support/properties.ts';
import { operatorTokens, TwoOperators } from '../../support/two-operators.ts';

/** How many sequences are run. `MODEL_SEED` and `MODEL_PATH`, which a failure prints, run one of them again. */
const runs = Number(process.env.MODEL_SEQUENCES ?? 25);
const seed = process.env.MODEL_SEED === undefined ? Date.now() % 2 ** 31 : Number(process.env.MODEL_SEED);
const path = process.env.MODEL_PATH;

const ordersLimitKobo = 200_000;
const allocationsLimitKobo = 2_500_000;
/** The money that an account begins with: enough for all orders of a sequence. From the second one little can be withdrawn. */
const startCashKobo = 10n ** 12n;
const secondStartKobo = 2_000_000;

describe('whatever a partner, operators and the exchange do in turn', { timeout: 120_000 + runs * 20_000 }, () => {
  let gateway: TestGateway;
  let second: App;
  let admins: ReturnType<typeof adminClient>[];
  let operators: TwoOperators;
  before(async () => {
    const variables = {
      // An answer that is lost is waited for as long as this.
      MARINA_SUBMIT_TIMEOUT_MS: '500',
      MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
    };
    gateway = await startGateway(variables, { funds: { startCashKobo, sharesElsewhere: 0n } });
    operators = await TwoOperators.connect(gateway.app.adminPort);
    await startSecond();
  });
  after(async () => {
    operators.close();
    for (const admin of admins) admin.close();
    await second.stop();
    await gateway.stop();
  });

  async function startSecond(): Promise<void> {
    second = await startApp(readConfig(gateway.variables), createLogger({ name: 'test', level: 'silent' }));
    admins = [gateway.app, second].map(({ adminPort }) => adminClient(adminPort));
  }

  async function restart(): Promise<void> {
    for (const admin of admins) admin.close();
    await second.stop();
    await startSecond();
  }

  /** Just past the next midnight in Lagos. The replicas follow within half a second. */
  async function passMidnight(): Promise<void> {
    const [first] = admins as [(typeof admins)[number]];
    const timeOf = async ({ diagnostics, options }: (typeof admins)[number]) => {
      const { now } = await diagnostics.getStatus({}, options);
      return Number(now?.seconds) * 1_000;
    };
    const now = await timeOf(first);
    const midnight = nextLagosMidnight(now);
    const by = { seconds: BigInt(Math.ceil((midnight - now) / 1_000) + 1), nanos: 0 };
    await first.clock.advanceClock({ by }, first.options);
    for (const admin of admins) await eventually(async () => assert.ok((await timeOf(admin)) >= midnight));
  }

  async function start(): Promise<Whole> {
    const limits = {
      ordersKoboPerDay: BigInt(ordersLimitKobo),
      allocationsKoboPerDay: BigInt(allocationsLimitKobo),
    };
    let turn = 0;
    const partner = await gateway.newPartner({ limits, accounts: 2 });
    const its = { account: partner.accounts[1], cashKobo: BigInt(secondStartKobo) };
    await gateway.controls.setCash(its, callTimeout);
    return {
      ...{ gateway, partner, operators, restart, passMidnight },
      replicas: [gateway.rest, (...request) => restCaller(second)(...request)],
      limitOrders: async (kobo) => {
        const [{ partners, options }] = admins as [(typeof admins)[number]];
        const ordersKoboPerDay = BigInt(kobo);
        await partners.setLimits({ partnerId: partner.id, limits: { ordersKoboPerDay } }, options);
      },
      pause: async (isPaused) => {
        const admin = admins[turn++ % 2] as (typeof admins)[number];
        await (isPaused
          ? admin.trading.pauseTrading({}, admin.options)
          : admin.trading.resumeTrading({}, admin.options));
        // A pause holds everywhere at once. The other replica may refuse for a moment longer.
        for (const { opsPort } of isPaused ? [] : [gateway.app, second]) {
          await eventually(async () => assert.equal((await scrape(opsPort)).value('marina_trading_paused'), 0));
        }
      },
    };
  }

  it(`every answer, order, limit, wallet and event is what a few sums say (seed ${seed})`, () =>
    fc.assert(
      fc.asyncProperty(sequences, (commands) =>
        runSequence(commands, start, new PartnerModel(ordersLimitKobo, allocationsLimitKobo, secondStartKobo)),
      ),
      { numRuns: runs, seed, path, verbose: 1, interruptAfterTimeLimit: 60_000 + runs * 15_000 },
    ));
});
