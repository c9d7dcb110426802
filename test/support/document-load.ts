import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { median } from '../bench/support/load.ts';
import { residentMiB } from '../bench/support/processes.ts';
import type { Cluster } from './cluster.ts';
import { apply, overRest, type SendDocument } from './documents.ts';
import { noiseJpeg, noisePng } from './images.ts';

export const uploads = 100;

/** The figures of 100 documents at once. */
export interface DocumentLoad {
  /** Until the last was delivered, by round. */
  readonly tookMs: readonly number[];
  /** How long an order takes meanwhile, against one alone. */
  readonly orderRatio: number;
  /** The most memory the gateway held, with the processes that decode for it. */
  readonly mostMiB: number;
}

/**
 * Sends 100 documents of just under 1,000,000 bytes at once, each from a partner of its own, and orders at the same time. On a
 * machine with other load decoders may be too slow for all, so a document may need more than one try there.
 */
export async function loadDocuments(
  cluster: Cluster,
  rounds: number,
  aloneMs: number,
  mostTries = 1,
): Promise<DocumentLoad> {
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
  const alone: number[] = [];
  const together: number[] = [];
  const tookMs: number[] = [];
  let mostMiB = 0;
  for (let round = 0; round < rounds; round += 1) {
    const partners = await Promise.all(
      Array.from({ length: uploads }, async () => {
        const { key } = await cluster.newPartner();
        return { key, id: await apply(gateway.request, key) };
      }),
    );
    for (const endAt = performance.now() + aloneMs; performance.now() < endAt; ) alone.push(await order());
    let underWay = uploads;
    const startedAt = performance.now();
    const sent = Promise.all(
      partners.map(async ({ key, id }, index) => {
        const file = files[index % files.length] ?? Buffer.alloc(0);
        const outcome = await untilTaken(send, { key, id, type: 'photo', file }, mostTries);
        underWay -= 1;
        return outcome;
      }),
    );
    while (underWay > 0) {
      together.push(await order());
      mostMiB = Math.max(mostMiB, withChildrenMiB(gateway.pid));
    }
    const others = (await sent).filter((outcome) => outcome !== 'delivered');
    if (others.length > 0) throw new Error(`documents came to ${others.join(', ')}`);
    tookMs.push(performance.now() - startedAt);
  }
  await gateway.stop();
  return { tookMs, orderRatio: median(together) / median(alone), mostMiB };
}

/** Sends a document as a partner does: again after as long as the answer says if no decoder became free in time. */
async function untilTaken(
  send: SendDocument,
  document: Parameters<SendDocument>[0],
  mostTries: number,
): Promise<string | undefined> {
  for (let tries = 1; ; tries += 1) {
    const { outcome, retryAfter } = await send(document);
    if (outcome !== 'service_unavailable' || tries === mostTries) return outcome;
    await delay(Number(retryAfter ?? 1) * 1_000);
  }
}

/** Returns the memory of a process and of those it started, in MiB. */
function withChildrenMiB(pid: number): number {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
  return children.reduce((sum, child) => sum + residentMiB(child), residentMiB(pid));
}
