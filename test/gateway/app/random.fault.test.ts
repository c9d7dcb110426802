import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { Cluster, type Partner } from '../../support/cluster.ts';
import { checkEverything } from '../../support/fault/checker.ts';
import { command, type Proxies, RandomRun } from '../../support/fault/commands.ts';
import { checkMoney } from '../../support/fault/money.ts';
import { FaultProxy } from '../../support/fault-proxy.ts';
import { operatorToken } from '../../support/gateway.ts';

/**
 * Random runs of everything that can happen at once. `FAULT_RUNS` says how many; a failure prints the seed, the path and
 * the trace, and `FAULT_SEED` with `FAULT_PATH` runs just that trace again.
 */
const runs = Number(process.env.FAULT_RUNS ?? 4);
const seed = process.env.FAULT_SEED === undefined ? Date.now() % 2 ** 31 : Number(process.env.FAULT_SEED);
const path = process.env.FAULT_PATH;

describe('whatever happens at once', { timeout: 600_000 + runs * 120_000 }, () => {
  let cluster: Cluster;
  let proxies: Proxies;
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

  it(`every order and withdrawal is sent once, settled, and told in full (seed ${seed})`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 15, maxLength: 40 }), async (commands) => {
        const { MARINA_DATABASE_URL = '', MARINA_NATS_URL = '' } = cluster.gatewayVariables;
        const partner = await cluster.newPartner();
        partners.push(partner);
        const run = new RandomRun(cluster, partner, proxies, {
          MARINA_DATABASE_URL: proxies.database.through(MARINA_DATABASE_URL),
          MARINA_NATS_URL: proxies.nats.through(MARINA_NATS_URL),
          MARINA_BROKER_ADDRESS: proxies.broker.address,
        });
        try {
          await run.start();
          await run.run(commands);
          const gateway = await run.settle();
          await checkEverything(cluster, gateway, partners, 60_000);
          await checkMoney(cluster, gateway, partners, 60_000);
        } finally {
          await run.stop();
        }
      }),
      // A failure is told as it was: to shrink it would run for hours.
      { numRuns: runs, seed, path, endOnFailure: true, verbose: 1 },
    );
  });
});
