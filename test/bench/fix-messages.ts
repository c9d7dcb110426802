import type { Cluster } from '../support/cluster.ts';
import { ready } from '../support/eventually.ts';
import { createFixDatabase, order, startAdapterProcess } from '../support/fix/adapter.ts';
import { startAcceptor, whyNoAcceptor } from '../support/quickfix.ts';
import type { Turns } from './run.ts';
import { load, median } from './support/load.ts';
import type { Row } from './support/report.ts';

const call = { timeoutMs: 10_000 };
const variants = [
  { name: 'with', days: '35' },
  { name: 'without', days: '0' },
] as const;

/**
 * Measures the cost of the FIX adapter's message log: orders through an adapter that keeps it and one that does not, in
 * turns.
 */
export async function benchFixMessages(_cluster: Cluster, { rounds, durationMs }: Turns): Promise<Row[]> {
  const reason = await whyNoAcceptor();
  if (reason !== undefined) return [{ what: 'FIX', figure: reason }];
  const adapters = await Promise.all(variants.map(({ days }) => startVariant(days)));
  const [kept, bare] = adapters;
  if (kept === undefined || bare === undefined) throw new Error('there are two adapters');
  // Each is first as often as the other, because what else runs on the machine changes meanwhile.
  const pair = async (atOnce: number, keptFirst: boolean) => {
    const before = keptFirst ? undefined : await load(bare.place, atOnce, durationMs);
    const ours = await load(kept.place, atOnce, durationMs);
    return [ours, before ?? (await load(bare.place, atOnce, durationMs))] as const;
  };
  const ratios: number[] = [];
  const added: number[] = [];
  const rates: number[] = [];
  for (let round = -1; round < rounds; round += 1) {
    const [many, manyBare] = await pair(64, round % 2 === 0);
    const [one, oneBare] = await pair(1, round % 2 === 0);
    if (round < 0) continue;
    rates.push(many.perSecond);
    ratios.push(many.perSecond / manyBare.perSecond);
    added.push(one.medianMs - oneBare.medianMs);
  }
  for (const adapter of adapters) await adapter.stop();
  return [
    {
      what: 'orders through the FIX adapter with its message log, 64 at once',
      figure: `${median(rates).toFixed(0)} a second`,
    },
    { what: 'as many as without the log, median of pairs', figure: median(ratios).toFixed(3), bound: '≥ 0.9' },
    { what: 'what the log adds to one order, median of pairs', figure: `${median(added).toFixed(2)} ms` },
  ];
}

async function startVariant(days: string) {
  const database = await createFixDatabase();
  const acceptor = await startAcceptor({ sender: 'EXCHANGE', target: 'MARINA' });
  const adapter = await startAdapterProcess({
    MARINA_FIX_DATABASE_URL: database.url,
    MARINA_FIX_ADDRESS: `127.0.0.1:${acceptor.port}`,
    MARINA_FIX_MESSAGES_PER_SECOND: '10000',
    MARINA_FIX_MESSAGES_DAYS: days,
  });
  const { orders } = await adapter.active();
  const place = () => orders.submitOrder(order(), call);
  await ready(place, 20_000);
  return {
    place,
    stop: async () => {
      orders.close();
      await adapter.kept.stop();
      await acceptor.kill();
      await database.drop();
    },
  };
}
