import { join } from 'node:path';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { type Server, startMariaDb } from '../../src/sandbox/servers.ts';
import { Cluster } from '../support/cluster.ts';
import { temporaryFolder } from '../support/folders.ts';
import type { Turns } from './run.ts';
import { compareInTurns } from './support/compare.ts';
import { startEndpoints } from './support/endpoints.ts';
import { creates, type Operation, otherCalls } from './support/operations.ts';
import { residentMiB } from './support/processes.ts';
import { comparedColumns, comparedRow, printRows, type Row } from './support/report.ts';
import { farFromDatabase, nameOf, type Setup, withMemoryUpstream, withSimulator } from './support/setups.ts';
import { UsageWatch } from './support/usage.ts';
import { benchVariables } from './support/variables.ts';
import { builtMain, type Servers, startOptions, startVersion, type Version } from './support/versions.ts';
import { type Drained, drain, registerBacklog } from './webhooks.ts';

/** Many enough for a steady figure, few enough for many rounds. */
const drainedAtOnce = 4_000;

const measuredIn: readonly (readonly [Setup, readonly Operation[]])[] = [
  [withSimulator, [...creates, ...otherCalls]],
  [withMemoryUpstream, creates],
  [farFromDatabase, creates],
];

/**
 * This version against another commit: both gateways on the same servers, in turns. Only what has one of the words in its
 * name is measured; without words, everything.
 */
export async function benchAgainst(
  commit: string,
  nats: Server,
  turns: Turns,
  words: readonly string[],
): Promise<Record<string, Row[]>> {
  const isWanted = (name: string) => words.length === 0 || words.some((word) => name.includes(word));
  const oldMain = await builtMain(commit);
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const servers = { database: await startMariaDb({ dataDir: join(folder, 'mariadb') }), nats };
  const watch = await UsageWatch.connect(servers.database.url);
  const sections: Record<string, Row[]> = {};
  const report = (section: string, rows: Row[]) => {
    printRows(section, rows);
    sections[section] = rows;
  };
  console.log(comparedColumns);
  for (const [setup, operations] of measuredIn) {
    const wanted = operations.filter(({ name }) => isWanted(name + nameOf(setup)));
    const isStart = setup === withSimulator && isWanted('start');
    if (wanted.length === 0 && !isStart) continue;
    const old = await startVersion(servers, setup, oldMain);
    const ours = await startVersion(servers, setup);
    if (isStart) report('start', await compareStarts(ours, old, turns));
    for (const { name, atOnce, call } of wanted) {
      const [left, right] = [ours, old].map(({ client, processes }) => ({ call: () => call(client), processes }));
      if (left === undefined || right === undefined) throw new Error('there are two sides');
      report(name + nameOf(setup), await compareInTurns(atOnce, left, right, turns, watch));
    }
    report(`memory after it${nameOf(setup)}`, [
      comparedRow('resident memory', 'MiB', [residentMiB(ours.gateway.pid)], [residentMiB(old.gateway.pid)]),
    ]);
    await ours.stop();
    await old.stop();
  }
  if (isWanted('webhooks'))
    report('webhooks that were due, each delivery recorded', await compareDrains(servers, oldMain, turns));
  await watch.close();
  await servers.database.stop();
  return sections;
}

/** How fast each version delivers webhooks that have gathered. */
async function compareDrains({ database }: Servers, oldMain: string, { rounds }: Turns): Promise<Row[]> {
  const start = async (main?: string) => {
    const cluster = await Cluster.start(benchVariables, startOptions(database.url, main));
    const endpoints = await startEndpoints(cluster, main);
    return { cluster, endpoints, partners: await registerBacklog(endpoints), drained: [] as Drained[] };
  };
  const [old, ours] = [await start(oldMain), await start()];
  for (let round = -1; round < rounds; round += 1) {
    for (const side of round % 2 === 0 ? [old, ours] : [ours, old]) {
      const drained = await drain(side.cluster, side.endpoints, side.partners, drainedAtOnce);
      if (round >= 0) side.drained.push(drained);
    }
  }
  for (const { cluster, endpoints } of [old, ours]) {
    await endpoints.stop();
    await cluster.stop();
  }
  const figures = (of: (drained: Drained) => number) => [ours.drained.map(of), old.drained.map(of)] as const;
  return [
    comparedRow('throughput', 'a second', ...figures(({ perSecond }) => perSecond)),
    comparedRow('CPU of gateway', 'µs', ...figures(({ cpuUs }) => cpuUs)),
  ];
}

/** How long each version takes to be ready, and how much memory it holds then. */
async function compareStarts(ours: Version, old: Version, { rounds }: Turns): Promise<Row[]> {
  const started = new Map<Version, { tookMs: number; heldMiB: number }[]>([ours, old].map((version) => [version, []]));
  for (let round = -1; round < rounds; round += 1) {
    for (const version of round % 2 === 0 ? [old, ours] : [ours, old]) {
      const startedAt = performance.now();
      const gateway = await version.startGateway();
      const tookMs = performance.now() - startedAt;
      if (round >= 0) started.get(version)?.push({ tookMs, heldMiB: residentMiB(gateway.pid) });
      await gateway.stop();
    }
  }
  const times = (version: Version) => (started.get(version) ?? []).map(({ tookMs }) => tookMs);
  const memory = (version: Version) => (started.get(version) ?? []).map(({ heldMiB }) => heldMiB);
  return [
    comparedRow('from start to ready', 'ms', times(ours), times(old)),
    comparedRow('resident memory when ready', 'MiB', memory(ours), memory(old)),
  ];
}
