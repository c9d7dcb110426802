import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { walkLedger } from '../../../../src/gateway/operators/calls/ledger.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { adminClient } from '../../../support/admin.ts';
import { type Answer, Cluster, callTimeout, type GatewayProcess, type Partner } from '../../../support/cluster.ts';
import { type Withdraw, withdraw } from '../../../support/fault/commands.ts';
import { checkMoney } from '../../../support/fault/money.ts';
import { FaultProxy } from '../../../support/fault-proxy.ts';
import { operatorToken } from '../../../support/gateway.ts';

describe('the last kobo, raced for from several gateways', () => {
  let cluster: Cluster;
  const gateways: GatewayProcess[] = [];
  const partners: Partner[] = [];
  before(async () => {
    cluster = await Cluster.start({ MARINA_OPERATOR_TOKENS: `tester:${operatorToken}` });
    for (let count = 0; count < 3; count += 1) gateways.push(await cluster.startGateway());
  });
  after(() => cluster.stop());

  async function newPartner(kobo: bigint): Promise<Partner> {
    const made = await cluster.newPartner();
    if (kobo > 0n) await cluster.fund(made, kobo);
    partners.push(made);
    return made;
  }

  /** Thirty allocations of 1,000 kobo at once, ten from each gateway. */
  async function race(partner: Partner, key?: (count: number) => string): Promise<Answer[]> {
    return Promise.all(
      Array.from({ length: 30 }, async (_, count) => {
        const gateway = gateways[count % gateways.length];
        assert.ok(gateway);
        return gateway.allocate(partner, {}, key?.(count));
      }),
    );
  }

  async function check(): Promise<void> {
    const [gateway] = gateways;
    assert.ok(gateway);
    await checkMoney(cluster, gateway, partners);
  }

  it('the last kobo of the wallet goes to one allocation', async () => {
    const partner = await newPartner(10_999n);
    const answers = await race(partner);
    assert.equal(answers.filter(({ status }) => status === 201).length, 10);
    assert.equal(answers.filter(({ body }) => body.error?.code === 'wallet_too_low').length, 20);
    await check();
  });

  it("the last kobo of the day's limit goes to one order", async () => {
    const partner = await newPartner(1_000_000n);
    await cluster.database.write(
      statement('UPDATE partners SET allocations_kobo_per_day = 10000 WHERE id = ?', partner.id),
    );
    const answers = await race(partner);
    assert.equal(answers.filter(({ status }) => status === 201).length, 10);
    assert.equal(answers.filter(({ body }) => body.error?.code === 'limit_exceeded').length, 20);
    await check();
  });

  it('sends each Idempotency-Key once', async () => {
    const partner = await newPartner(1_000_000n);
    const key = randomUUID();
    const answers = await race(partner, (count) => `${key} ${Math.floor(count / 3)}`);
    assert.equal(answers.filter(({ status }) => status === 201).length, 10);
    assert.equal(answers.filter(({ status }) => status === 200).length, 20);
    assert.equal(new Set(answers.map(({ body }) => body.id)).size, 10);
    await check();
  });

  it('debits and reverses each once, and never more than there is, while allocations take from the same wallet', async () => {
    const partner = await newPartner(0n);
    const admins = gateways.map(({ adminPort }) => adminClient(adminPort));
    const [admin] = admins;
    assert.ok(admin);
    const credit = { partnerId: partner.id, amountKobo: 20_000n, bankReference: `${partner.id} paid` };
    await admin.wallets.creditWallet(credit, admin.options);
    const taking = Promise.allSettled(
      Array.from({ length: 60 }, (_, count) => {
        const { wallets, options } = admins[count % admins.length] ?? admin;
        // Each of ten debits and ten reversals three times, from each gateway.
        const bankReference = `${partner.id} taken ${Math.floor(count / 3)}`;
        const request = { partnerId: partner.id, amountKobo: 1_000n, bankReference };
        if (count < 30) return wallets.debitWallet(request, options);
        return wallets.reverseCredit({ ...request, creditBankReference: credit.bankReference }, options);
      }),
    );
    const [taken, answers] = await Promise.all([taking, race(partner)]);
    for (const one of admins) one.close();
    const recorded = taken.filter((each) => each.status === 'fulfilled' && each.value.recorded).length;
    const allocated = answers.filter(({ status }) => status === 201).length;
    assert.equal(recorded + allocated, 20, `${recorded} were taken out and ${allocated} allocated`);
    await check();
  });

  it('credits each payment once, while allocations take from the same wallet', async () => {
    const partner = await newPartner(0n);
    const other = await newPartner(0n);
    const admins = gateways.map(({ adminPort }) => adminClient(adminPort));
    const crediting = Promise.allSettled(
      Array.from({ length: 60 }, (_, count) => {
        const admin = admins[count % admins.length];
        assert.ok(admin);
        // Each of ten payments six times, from each gateway; one of the six for somebody else.
        const { id: partnerId } = count % 6 === 5 ? other : partner;
        const request = { partnerId, amountKobo: 1_000n, bankReference: `raced ${count % 10}` };
        return admin.wallets.creditWallet(request, admin.options);
      }),
    );
    const [credited, answers] = [await crediting, await race(partner)];
    for (const admin of admins) admin.close();
    const recorded = credited.filter((each) => each.status === 'fulfilled' && each.value.recorded);
    assert.equal(recorded.length, 10);
    const rows = await cluster.database.read(
      statement(`SELECT COUNT(*) AS count FROM wallet_transfers WHERE bank_reference LIKE 'raced %'`),
    );
    assert.equal(Number(rows[0]?.count), 10);
    for (const { status, body } of answers) {
      assert.ok(status === 201 || body.error.code === 'wallet_too_low', JSON.stringify(body));
    }
    await check();
  });
});

type Command =
  | { readonly do: 'allocate'; readonly amount: number; readonly key: number; readonly on: number }
  | Withdraw
  | { readonly do: 'credit'; readonly reference: number; readonly kobo: number; readonly on: number }
  | { readonly do: 'debit'; readonly reference: number; readonly kobo: number; readonly on: number }
  | {
      readonly do: 'reverse';
      readonly credit: number;
      readonly reference: number;
      readonly kobo: number;
      readonly on: number;
    }
  | { readonly do: 'fault'; readonly call: Call; readonly fault: WireFault; readonly delayMs: number }
  | { readonly do: 'kill'; readonly on: number }
  | { readonly do: 'freeze'; readonly on: number; readonly ms: number }
  | { readonly do: 'cut'; readonly what: 'database' | 'nats' | 'broker'; readonly ms: number }
  | { readonly do: 'advance'; readonly hours: number }
  | { readonly do: 'wait'; readonly ms: number };

const on = fc.nat({ max: 1 });
const faults = [
  WireFault.HANG,
  WireFault.LOSE_ANSWER,
  WireFault.LATE_ANSWER,
  WireFault.LATE_RECEIPT,
  WireFault.RESET_BEFORE,
  WireFault.RESET_AFTER,
  WireFault.UNAVAILABLE_AFTER,
  WireFault.NONSENSE,
];

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('allocate' as const),
      // Some amounts make the broker reject, hang, or lose its answer; what they come to is more than there is at first.
      amount: fc.oneof(
        { weight: 4, arbitrary: fc.integer({ min: 1, max: 400_000 }) },
        { weight: 2, arbitrary: fc.constantFrom(999_001, 999_002, 999_005, 999_006, 999_007, 999_008, 999_009) },
      ),
      key: fc.nat({ max: 20 }),
      on,
    }),
  },
  { weight: 8, arbitrary: withdraw },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('credit' as const),
      reference: fc.nat({ max: 5 }),
      kobo: fc.integer({ min: 1, max: 1_500_000 }),
      on,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('debit' as const),
      reference: fc.nat({ max: 5 }),
      kobo: fc.integer({ min: 1, max: 300_000 }),
      on,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('reverse' as const),
      credit: fc.nat({ max: 5 }),
      reference: fc.nat({ max: 5 }),
      kobo: fc.integer({ min: 1, max: 300_000 }),
      on,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('fault' as const),
      call: fc.constantFrom(
        ...[Call.SUBMIT_ALLOCATION, Call.SUBMIT_ALLOCATION, Call.LOOK_UP_ALLOCATION],
        ...[Call.SUBMIT_WITHDRAWAL, Call.SUBMIT_WITHDRAWAL, Call.LOOK_UP_WITHDRAWAL],
      ),
      fault: fc.constantFrom(...faults),
      delayMs: fc.integer({ min: 200, max: 1_600 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('kill' as const), on }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('freeze' as const), on, ms: fc.integer({ min: 300, max: 4_000 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('cut' as const),
      what: fc.constantFrom('database' as const, 'nats' as const, 'broker' as const),
      ms: fc.integer({ min: 50, max: 1_500 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('advance' as const), hours: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 10, max: 500 }) }) },
);

/**
 * Random runs of everything that can happen to one wallet at once. `FAULT_RUNS` says how many; a failure prints the seed,
 * the path and the trace, and `FAULT_SEED` with `FAULT_PATH` runs just that trace again.
 */
const runs = Number(process.env.FAULT_RUNS ?? 4);
const seed = process.env.FAULT_SEED === undefined ? Date.now() % 2 ** 31 : Number(process.env.FAULT_SEED);
const path = process.env.FAULT_PATH;

describe('whatever happens to a wallet at once', { timeout: 300_000 + runs * 120_000 }, () => {
  let cluster: Cluster;
  let proxies: Record<'database' | 'nats' | 'broker', FaultProxy>;
  const partners: Partner[] = [];
  before(async () => {
    cluster = await Cluster.start({ MARINA_OPERATOR_TOKENS: `tester:${operatorToken}` });
    const variables = cluster.gatewayVariables;
    proxies = {
      database: await FaultProxy.start(variables.MARINA_DATABASE_URL ?? ''),
      nats: await FaultProxy.start(variables.MARINA_NATS_URL ?? ''),
      broker: await FaultProxy.start(variables.MARINA_BROKER_ADDRESS ?? ''),
    };
  });
  after(async () => {
    await cluster.stop();
    await Promise.all(Object.values(proxies).map((proxy) => proxy.close()));
  });

  it(`every kobo is in one place, and the broker booked or paid each object once at most (seed ${seed})`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 20, maxLength: 45 }), async (commands) => {
        const partner = await cluster.newPartner();
        await cluster.fund(partner, 1_000_000n);
        partners.push(partner);
        await runAll(partner, commands);
      }),
      // A failure is told as it was: to shrink it would run for hours.
      { numRuns: runs, seed, path, endOnFailure: true, verbose: 1 },
    );
  });

  async function runAll(partner: Partner, commands: readonly Command[]): Promise<void> {
    const { MARINA_DATABASE_URL = '', MARINA_NATS_URL = '' } = cluster.gatewayVariables;
    const variables = {
      MARINA_DATABASE_URL: proxies.database.through(MARINA_DATABASE_URL),
      MARINA_NATS_URL: proxies.nats.through(MARINA_NATS_URL),
      MARINA_BROKER_ADDRESS: proxies.broker.address,
    };
    const start = () => cluster.startGateway(variables);
    const gateways = await Promise.all([start(), start()]);
    const asked: Promise<unknown>[] = [];
    const watch = new WalletWatch(cluster, partner);
    try {
      for (const next of commands) await perform(next);
      await Promise.all(asked);
      for (const proxy of Object.values(proxies)) {
        proxy.heal();
        await proxy.accept();
      }
      await cluster.controls.clearDirectives({}, callTimeout);
      await checkMoney(cluster, gateways[0] ?? (await start()), partners, 60_000);
    } finally {
      await watch.stop();
      await Promise.all(gateways.map((gateway) => gateway.kill()));
    }

    /** Starts a call without waiting for it, so that the next command meets it under way. */
    async function perform(next: Command): Promise<unknown> {
      switch (next.do) {
        case 'allocate': {
          // The same key always asks for the same, so that it may come again at any time and from anywhere.
          const key = `${partner.id} ${next.key} ${next.amount}`;
          asked.push(gateways[next.on]?.allocate(partner, { amount_kobo: next.amount }, key) ?? Promise.resolve());
          return delay(10);
        }
        case 'withdraw': {
          const { amount, destination } = next;
          const key = `${partner.id} ${next.key} ${amount} ${destination}`;
          const body = { amount_kobo: amount, destination };
          asked.push(gateways[next.on]?.withdraw(partner, body, key) ?? Promise.resolve());
          return delay(10);
        }
        case 'credit':
        case 'debit':
        case 'reverse': {
          const admin = adminClient(gateways[next.on]?.adminPort ?? 0);
          asked.push(ignored(callWallets(admin, partner, next)).finally(() => admin.close()));
          return delay(10);
        }
        case 'fault': {
          const { call, fault, delayMs } = next;
          const { account } = partner;
          return ignored(cluster.controls.injectFault({ call, account, fault, delayMs }, callTimeout));
        }
        case 'kill':
          await gateways[next.on]?.kill();
          gateways[next.on] = await start();
          return;
        case 'freeze': {
          const frozen = gateways[next.on];
          frozen?.freeze();
          asked.push(delay(next.ms).then(() => frozen?.thaw()));
          return;
        }
        case 'cut': {
          const proxy = proxies[next.what];
          await proxy.refuse();
          proxy.reset();
          await delay(next.ms);
          return proxy.accept();
        }
        case 'advance': {
          const admin = adminClient(gateways[0]?.adminPort ?? 0);
          const by = { seconds: BigInt(next.hours * 3_600) };
          return ignored(admin.clock.advanceClock({ by }, admin.options)).finally(() => admin.close());
        }
        case 'wait':
          return delay(next.ms);
      }
    }
  }
});

/** Records a payment or a correction. The same reference may come again with the same amount or another. */
function callWallets(
  { wallets, options }: ReturnType<typeof adminClient>,
  { id }: Partner,
  asked: Command & { do: 'credit' | 'debit' | 'reverse' },
): Promise<unknown> {
  const bankReference = asked.do === 'credit' ? `${id} ${asked.reference}` : `${id} ${asked.do} ${asked.reference}`;
  const request = { partnerId: id, amountKobo: BigInt(asked.kobo), bankReference };
  if (asked.do === 'credit') return wallets.creditWallet(request, options);
  if (asked.do === 'debit') return wallets.debitWallet(request, options);
  return wallets.reverseCredit({ ...request, creditBankReference: `${id} ${asked.credit}` }, options);
}

/** Proves a ledger again and again while it is written to. */
class WalletWatch {
  readonly #watching: Promise<void>;
  #stopping = false;

  constructor(
    private readonly cluster: Cluster,
    private readonly partner: Partner,
  ) {
    this.#watching = this.#watch();
    this.#watching.catch(() => undefined); // It is told when the run ends.
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#watching;
  }

  async #watch(): Promise<void> {
    while (!this.#stopping) {
      const walk = await walkLedger(this.cluster.database, this.partner.id, 0n);
      assert.deepEqual(walk?.faults, [], 'the ledger is proven at any moment');
      await delay(50);
    }
  }
}

/** Waits for a call that may be refused, or may meet a process that is gone. */
async function ignored(work: Promise<unknown>): Promise<void> {
  await work.catch(() => undefined);
}
