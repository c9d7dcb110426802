import { ledgerCheck } from '../admin/ledger.ts';
import { feedRetention } from '../events/retention.ts';
import type { Worker } from '../lib/worker.ts';
import { keyRetention } from '../submission/key-retention.ts';
import { webhookRetention } from '../webhooks/delivery-store.ts';
import type { Base } from './base.ts';
import { removalTime } from './removal-time.ts';
import type { Submissions } from './submissions.ts';

/** What goes on beside all else: ledgers are proved, and what is old is removed. */
export function upkeepWorkers(base: Base, { allKinds, clocks, gate }: Submissions): Worker[] {
  const { log, database, clock, holder, metrics } = base;
  const timeOf = removalTime({ database, clock, log, gate, brokerClocks: clocks });
  const checked = (faultyLedgers: number) => metrics.faultyLedgers.set(faultyLedgers);
  return [
    ledgerCheck({ database, log, holder, checked }),
    feedRetention(database, timeOf, holder),
    webhookRetention(database, timeOf, holder),
    ...allKinds.all.map((keys) => keyRetention(database, timeOf, holder, keys)),
  ];
}
