import type { Cluster, Partner } from '../support/cluster.ts';
import type { Turns } from './run.ts';
import { bothCpu, loadProcess } from './support/cpu.ts';
import { type Row, ratioRow } from './support/report.ts';
import { RestCalls } from './support/rest-calls.ts';
import { nameOf, type Setup, startSite, withMemoryUpstream, withSimulator } from './support/setups.ts';

/** CreateWithdrawal against CreateAllocation of the same gateway: both are two commits, one call of the broker and the ledger. */
export async function benchWithdrawals(_cluster: Cluster, turns: Turns): Promise<Row[]> {
  return [...(await inSetup(withSimulator, turns)), ...(await inSetup(withMemoryUpstream, turns))];
}

async function inSetup(setup: Setup, turns: Turns): Promise<Row[]> {
  const site = await startSite(setup);
  try {
    const { pid, restPort } = await site.startGateway();
    const rows: Row[] = [];
    for (const [count, atOnce] of [
      [1, 5],
      [32, 32],
    ] as const) {
      const partners = await Promise.all(Array.from({ length: count }, () => newPartner(site.cluster)));
      const rest = new RestCalls(restPort, atOnce);
      let turn = 0;
      const next = () => partners[turn++ % count] as Partner;
      const measured = await inTurns(
        pid,
        atOnce,
        () => rest.withdraw(next()),
        () => rest.allocate(next()),
        turns,
      );
      await rest.close();
      const by = count === 1 ? '1 partner' : `${count} partners`;
      rows.push(
        ratioRow(
          `CreateWithdrawal against CreateAllocation, ${by}${nameOf(setup)}`,
          measured.withdrawals.map(({ perSecond }) => perSecond),
          measured.allocations.map(({ perSecond }) => perSecond),
          '≥ 0.9×',
        ),
        {
          what: '  CPU of the gateway for one, its events and reports / for an allocation',
          figure: bothCpu(
            measured.withdrawals.map(({ cpuUs }) => cpuUs),
            measured.allocations.map(({ cpuUs }) => cpuUs),
          ),
        },
      );
    }
    return rows;
  } finally {
    await site.stop();
  }
}

async function newPartner(cluster: Cluster): Promise<Partner> {
  const partner = await cluster.newPartner();
  await cluster.fund(partner, 10n ** 15n);
  return partner;
}

/** Measures both calls in turns, after one turn of each that does not count. */
async function inTurns(
  pid: number,
  atOnce: number,
  withdraw: () => Promise<unknown>,
  allocate: () => Promise<unknown>,
  { rounds, durationMs }: Turns,
) {
  type Measured = Awaited<ReturnType<typeof loadProcess>>;
  const [withdrawals, allocations]: [Measured[], Measured[]] = [[], []];
  for (let round = -1; round < rounds; round += 1) {
    const left = await loadProcess(pid, withdraw, atOnce, durationMs);
    const right = await loadProcess(pid, allocate, atOnce, durationMs);
    if (round < 0) continue;
    withdrawals.push(left);
    allocations.push(right);
  }
  return { withdrawals, allocations };
}
