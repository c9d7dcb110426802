import type { Cluster, GatewayProcess, Partner } from '../../support/cluster.ts';
import type { Turns } from '../run.ts';
import { bothCpu, loadProcess } from './cpu.ts';
import type { LoadResult } from './load.ts';
import { cpuMs, startBaseline } from './processes.ts';
import { type Row, ratioRow } from './report.ts';
import { RestCalls } from './rest-calls.ts';
import { nameOf, type Setup, type Site, startSite } from './setups.ts';

/** An object that a gateway and a bare script both create. */
export interface Created {
  /** The call's name in the report. */
  readonly name: string;
  /** The script in `baselines`. */
  readonly script: string;
  readonly newPartner: (cluster: Cluster) => Promise<Partner>;
  readonly create: (rest: RestCalls, partner: Partner) => Promise<unknown>;
  /** How many times the script's throughput the gateway's should be: with one partner, and with 32. */
  readonly bounds: readonly [one: string, many: string];
}

/** Creates against a bare script that does the same two commits and one call of the upstream, by one partner and by 32. */
export async function againstScript(created: Created, setup: Setup, turns: Turns): Promise<Row[]> {
  // Each has a site of its own, so that nobody but the script works on what it places.
  const [ours, bare] = [await startSite(setup), await startSite(setup)];
  try {
    const gateway = await ours.startGateway();
    const [one, many] = created.bounds;
    return [
      ...(await byPartners(created, setup, { ours, bare, gateway }, { count: 1, atOnce: 5, bound: one }, turns)),
      ...(await byPartners(created, setup, { ours, bare, gateway }, { count: 32, atOnce: 32, bound: many }, turns)),
    ];
  } finally {
    await ours.stop();
    await bare.stop();
  }
}

interface Both {
  readonly ours: Site;
  readonly bare: Site;
  readonly gateway: GatewayProcess;
}

async function byPartners(
  { name, script, newPartner, create }: Created,
  setup: Setup,
  { ours, bare, gateway }: Both,
  { count, atOnce, bound }: { count: number; atOnce: number; bound: string },
  { rounds, durationMs }: Turns,
): Promise<Row[]> {
  const make = ({ cluster }: Site) => Promise.all(Array.from({ length: count }, () => newPartner(cluster)));
  const [partners, barePartners] = [await make(ours), await make(bare)];
  const { process: bareScript } = await startBaseline(script, {
    BASELINE_DATABASE_URL: bare.databaseUrl,
    BASELINE_BROKER: bare.brokerAddress,
    BASELINE_PARTNERS: barePartners.map(({ id, account }) => `${id}:${account}`).join(','),
  });
  let scriptIsDone: (result: LoadResult) => void = () => undefined;
  bareScript.onMessage((message) => scriptIsDone((message as { result: LoadResult }).result));
  const rest = new RestCalls(gateway.restPort, atOnce);
  let turn = 0;
  const call = () => create(rest, partners[turn++ % count] as Partner);
  const [gateways, scripts]: [Measured[], Measured[]] = [[], []];
  for (let round = -1; round < rounds; round += 1) {
    const left = await loadProcess(gateway.pid, call, atOnce, durationMs);
    const before = cpuMs(bareScript.pid);
    const result = await new Promise<LoadResult>((resolve) => {
      scriptIsDone = resolve;
      bareScript.send({ atOnce, durationMs });
    });
    if (round < 0) continue;
    gateways.push(left);
    scripts.push({ perSecond: result.perSecond, cpuUs: ((cpuMs(bareScript.pid) - before) * 1_000) / result.count });
  }
  await rest.close();
  await bareScript.stop();
  const by = count === 1 ? '1 partner' : `${count} partners`;
  const perSecond = (side: readonly Measured[]) => side.map((each) => each.perSecond);
  const cpuUs = (side: readonly Measured[]) => side.map((each) => each.cpuUs);
  return [
    ratioRow(`${name} against a script, ${by}${nameOf(setup)}`, perSecond(gateways), perSecond(scripts), bound),
    {
      what: '  CPU of the gateway for one, its events and reports / of the script',
      figure: bothCpu(cpuUs(gateways), cpuUs(scripts)),
    },
  ];
}

interface Measured {
  readonly perSecond: number;
  readonly cpuUs: number;
}
