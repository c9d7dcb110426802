import { Cluster, type ClusterOptions, type GatewayProcess } from '../../support/cluster.ts';
import { startBaseline } from './processes.ts';
import { benchVariables } from './variables.ts';

/** The conditions under which a gateway or a script is measured. */
export interface Setup {
  /** Orders, allocations and withdrawals are accepted from memory, instead of by the simulator. */
  readonly isUpstreamInMemory: boolean;
  /** How much longer a round trip to the database takes than on this machine. */
  readonly databaseRoundTripUs: number;
}

export const withSimulator: Setup = { isUpstreamInMemory: false, databaseRoundTripUs: 0 };
export const withMemoryUpstream: Setup = { isUpstreamInMemory: true, databaseRoundTripUs: 0 };
/** As far as a database in the next building. */
export const farFromDatabase: Setup = { isUpstreamInMemory: true, databaseRoundTripUs: 500 };

/** How a setup is named in the report. */
export function nameOf({ isUpstreamInMemory, databaseRoundTripUs }: Setup): string {
  const upstream = isUpstreamInMemory ? ', upstream in memory' : '';
  return databaseRoundTripUs === 0 ? upstream : `${upstream}, database ${databaseRoundTripUs / 1_000} ms away`;
}

/** A database of its own, with the broker and the way to the database that a setup has. */
export interface Site {
  readonly cluster: Cluster;
  readonly brokerAddress: string;
  readonly upstreamPid: number;
  /** For a script, with an administrator's rights. */
  readonly databaseUrl: string;
  startGateway(main?: string): Promise<GatewayProcess>;
  stop(): Promise<void>;
}

/** Makes a site: nobody but who is measured there works on what it stores. */
export async function startSite(setup: Setup, options?: ClusterOptions): Promise<Site> {
  const cluster = await Cluster.start(benchVariables, options);
  const { MARINA_BROKER_ADDRESS: simulator = '', MARINA_DATABASE_URL: ownUrl = '' } = cluster.gatewayVariables;
  const upstream = setup.isUpstreamInMemory ? await startBaseline('upstream', {}) : undefined;
  const brokerAddress = upstream === undefined ? simulator : `127.0.0.1:${upstream.port}`;
  const link =
    setup.databaseRoundTripUs === 0
      ? undefined
      : await startBaseline('slow-link', {
          BASELINE_PORT: new URL(ownUrl).port,
          BASELINE_ROUND_TRIP_US: String(setup.databaseRoundTripUs),
        });
  const through = (url: string) => {
    const led = new URL(url);
    if (link !== undefined) led.port = String(link.port);
    return led.href;
  };
  return {
    cluster,
    brokerAddress,
    upstreamPid: upstream?.process.pid ?? cluster.simulatorPid,
    databaseUrl: through(cluster.databaseUrl),
    startGateway: (main) =>
      cluster.startGateway({ MARINA_BROKER_ADDRESS: brokerAddress, MARINA_DATABASE_URL: through(ownUrl) }, main),
    async stop() {
      await cluster.stop();
      await upstream?.process.stop();
      await link?.process.stop();
    },
  };
}
