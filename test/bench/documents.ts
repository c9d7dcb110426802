import type { Cluster } from '../support/cluster.ts';
import { loadDocuments, uploads } from '../support/document-load.ts';
import type { Turns } from './run.ts';
import { median } from './support/load.ts';
import { ms, type Row } from './support/report.ts';

/** Documents at once: what they take of memory, and what of the time of orders. */
export async function benchDocuments(cluster: Cluster, { rounds, durationMs }: Turns): Promise<Row[]> {
  const { tookMs, orderRatio, mostMiB } = await loadDocuments(cluster, rounds, durationMs);
  return [
    { what: `${uploads} documents at once, until the last is delivered`, figure: ms(median(tookMs)) },
    { what: 'an order meanwhile, against one alone', figure: `${orderRatio.toFixed(2)}x`, bound: 'at most 1.5x' },
    {
      what: 'most resident memory, decoders included',
      figure: `${mostMiB.toFixed(0)} MiB`,
      bound: 'under 600 MiB',
    },
  ];
}
