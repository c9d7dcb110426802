import type { Cluster } from '../support/cluster.ts';
import type { Turns } from './run.ts';
import { load } from './support/load.ts';
import { residentMiB } from './support/processes.ts';
import type { Row } from './support/report.ts';
import { RestCalls } from './support/rest-calls.ts';
import { againstScript, type Created } from './support/scripts.ts';
import { farFromDatabase, withMemoryUpstream, withSimulator } from './support/setups.ts';

const orders: Created = {
  name: 'CreateOrder',
  script: 'create-orders',
  newPartner: (cluster) => cluster.newPartner(),
  create: (rest, partner) => rest.placeOrder(partner),
  bounds: ['≥ 1.2×', '≥ 1.0×'],
};

const allocations: Created = {
  name: 'CreateAllocation',
  script: 'create-allocations',
  async newPartner(cluster) {
    const partner = await cluster.newPartner();
    await cluster.fund(partner, 10n ** 15n);
    return partner;
  },
  create: (rest, partner) => rest.allocate(partner),
  bounds: ['≥ 0.8×', '≥ 0.8×'],
};

/** CreateOrder and CreateAllocation against bare scripts, with the simulator and with an upstream that costs nothing. */
export async function benchCreates(cluster: Cluster, turns: Turns): Promise<Row[]> {
  return [
    ...(await againstScript(orders, withSimulator, turns)),
    ...(await againstScript(orders, withMemoryUpstream, turns)),
    ...(await againstScript(allocations, withSimulator, turns)),
    ...(await againstScript(allocations, withMemoryUpstream, turns)),
    await benchMemory(cluster, turns),
  ];
}

/** The same where the database is not on the same machine. */
export async function benchFar(_cluster: Cluster, turns: Turns): Promise<Row[]> {
  return [
    ...(await againstScript(orders, farFromDatabase, turns)),
    ...(await againstScript(allocations, farFromDatabase, turns)),
  ];
}

async function benchMemory(cluster: Cluster, { rounds, durationMs }: Turns): Promise<Row> {
  const gateway = await cluster.startGateway();
  const rest = new RestCalls(gateway.restPort, 32);
  const partner = await cluster.newPartner();
  await load(() => rest.placeOrder(partner), 32, rounds * durationMs);
  await rest.close();
  return {
    what: 'resident memory after creates',
    figure: `${residentMiB(gateway.pid).toFixed(0)} MiB`,
    bound: '≤ 180 MiB',
  };
}
