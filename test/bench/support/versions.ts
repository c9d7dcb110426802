import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Server } from '../../../src/sandbox/servers.ts';
import { adminClient, newPartnerByOperator } from '../../support/admin.ts';
import type { Cluster, ClusterOptions, GatewayProcess, Partner } from '../../support/cluster.ts';
import { installRelease, migrateBy } from '../../support/release.ts';
import { type BenchClient, makeClient } from './operations.ts';
import { git, resultsFolder } from './results.ts';
import { type Setup, startSite } from './setups.ts';
import type { Processes } from './usage.ts';

const partnersAtOnce = 32;

/**
 * The servers below the gateways. Simulators have a database server of their own, so that what is counted is a
 * gateway's.
 */
export interface Servers {
  readonly database: Server;
  readonly nats: Server;
}

/** A gateway of one version in a setup, with a database of its own and a client. */
export interface Version {
  readonly gateway: GatewayProcess;
  readonly client: BenchClient;
  readonly processes: Processes;
  /** Starts a further gateway of this version, on the same database. */
  startGateway(): Promise<GatewayProcess>;
  stop(): Promise<void>;
}

/** Starts a version by its built `main.js`; absent: this version. */
export async function startVersion({ database, nats }: Servers, setup: Setup, main?: string): Promise<Version> {
  const site = await startSite(setup, startOptions(database.url, main));
  const gateway = await site.startGateway(main);
  const [one, ...many] = await makePartners(site.cluster, gateway, 1 + partnersAtOnce);
  if (one === undefined) throw new Error('there are partners');
  const client = await makeClient(gateway, one, many);
  const upstream = setup.isUpstreamInMemory ? 'upstream' : 'simulator';
  return {
    gateway,
    client,
    processes: { gateway: gateway.pid, database: database.pid, NATS: nats.pid, [upstream]: site.upstreamPid },
    startGateway: () => site.startGateway(main),
    async stop() {
      await client.rest.close();
      await site.stop();
    },
  };
}

/** A version's own tables, on the server of the gateways. */
export function startOptions(databaseServerUrl: string, main?: string): ClusterOptions {
  return { databaseServerUrl, ...(main !== undefined && { migrate: (url: string) => migrateBy([main], url) }) };
}

/** Makes partners with money by the operators' calls: an older version's tables are its own. */
async function makePartners(cluster: Cluster, { adminPort }: GatewayProcess, count: number): Promise<Partner[]> {
  const admin = adminClient(adminPort);
  try {
    const partners: Partner[] = [];
    for (let made = 0; made < count; made += 1) {
      const partner = await newPartnerByOperator(admin, cluster.controls, `Bench ${made}`);
      const credit = { partnerId: partner.id, amountKobo: 10n ** 13n, bankReference: `bench ${made}` };
      await admin.wallets.creditWallet(credit, admin.options);
      partners.push(partner);
    }
    return partners;
  } finally {
    admin.close();
  }
}

/** Builds a commit, unless an earlier run did, and returns its `main.js`. */
export async function builtMain(commit: string): Promise<string> {
  const full = git('rev-parse', '--verify', `${commit}^{commit}`);
  const folder = join(resultsFolder, 'builds', full);
  const main = join(folder, 'dist/src/main.js');
  // The last file that a build makes.
  if (existsSync(join(folder, 'dist/package.json'))) return main;
  console.log(`building ${full.slice(0, 12)}`);
  rmSync(folder, { recursive: true, force: true });
  return installRelease({ version: commit, commit: full }, folder);
}
