import type { Cluster } from '../support/cluster.ts';
import type { Turns } from './run.ts';
import { median } from './support/load.ts';
import { residentMiB } from './support/processes.ts';
import { ms, type Row } from './support/report.ts';

/** How long a gateway takes to be ready once its servers are. */
export async function benchStart(cluster: Cluster, { rounds }: Turns): Promise<Row[]> {
  const times: number[] = [];
  const memory: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const startedAt = performance.now();
    const gateway = await cluster.startGateway();
    times.push(performance.now() - startedAt);
    memory.push(residentMiB(gateway.pid));
    await gateway.stop();
  }
  return [
    { what: 'from start to ready', figure: ms(median(times)), bound: '≤ 600 ms' },
    { what: 'resident memory when ready', figure: `${median(memory).toFixed(0)} MiB` },
  ];
}
