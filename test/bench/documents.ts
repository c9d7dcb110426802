import { readdirSync, readFileSync } from 'node:fs';
import type { Cluster } from '../support/cluster.ts';
import { apply, overRest } from '../support/documents.ts';
import { noiseJpeg, noisePng } from '../support/images.ts';
import type { Turns } from './run.ts';
import { median } from './support/load.ts';
import { residentMiB } from './support/processes.ts';
import { ms, type Row } from './support/report.ts';

const uploads = 100;

/**
 * 100 documents of just under 1,000,000 bytes at once, each from a partner of its own: what the gateway and its decoders
 * hold of memory meanwhile, and how long an order takes beside them against how long it takes alone.
 */
export async function benchDocuments(cluster: Cluster, { rounds, durationMs }: Turns): Promise<Row[]> {
  const gateway = await cluster.startGateway();
  const send = overRest(gateway.restPort);
  const trader = await cluster.newPartner();
  const files = [await noisePng(576, 577), await noiseJpeg(1_300, 1_000, { quality: 82 })];
  const order = async () => {
    const startedAt = performance.now();
    const { status } = await gateway.place(trader, { symbol: 'SIM-REST' });
    if (status !== 201) throw new Error(`an order was answered ${status}`);
    return performance.now() - startedAt;
  };
  const [alone, beside, took, memory]: number[][] = [[], [], [], []];
  for (let round = 0; round < rounds; round += 1) {
    const partners = await Promise.all(
      Array.from({ length: uploads }, async () => {
        const { key } = await cluster.newPartner();
        return { key, id: await apply(gateway.request, key) };
      }),
    );
    for (const endAt = performance.now() + durationMs; performance.now() < endAt; ) alone?.push(await order());
    let underWay = uploads;
    const startedAt = performance.now();
    const sent = partners.map(async ({ key, id }, index) => {
      const { outcome } = await send({ key, id, type: 'photo', file: files[index % files.length] ?? Buffer.alloc(0) });
      underWay -= 1;
      if (outcome !== 'delivered') throw new Error(`a document came to ${outcome}`);
    });
    while (underWay > 0) {
      beside?.push(await order());
      memory?.push(withChildrenMiB(gateway.pid));
    }
    await Promise.all(sent);
    took?.push(performance.now() - startedAt);
  }
  await gateway.stop();
  const ratio = median(beside ?? []) / median(alone ?? []);
  return [
    { what: `${uploads} documents at once, until the last is delivered`, figure: ms(median(took ?? [])) },
    { what: 'an order meanwhile, against one alone', figure: `${ratio.toFixed(2)}x`, bound: 'at most 1.5x' },
    {
      what: 'most resident memory, decoders included',
      figure: `${Math.max(...(memory ?? [])).toFixed(0)} MiB`,
      bound: 'under 600 MiB',
    },
  ];
}

/** What a process and those it started hold of memory. */
function withChildrenMiB(pid: number): number {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
  return children.reduce((sum, child) => sum + residentMiB(child), residentMiB(pid));
}
