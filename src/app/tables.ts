import type { EntitySchema } from 'typeorm';
import { accounts } from '../accounts/store.ts';
import { auditEntries } from '../admin/audit.ts';
import { allocations } from '../allocations/table.ts';
import { documents } from '../applications/documents/store.ts';
import { applications } from '../applications/table.ts';
import { apiKeys, keyUses, partners } from '../auth/store.ts';
import { leases } from '../db/lease.ts';
import type { Table } from '../db/table.ts';
import { feedEvents, feedPurges, feedSkips, outbox } from '../events/table.ts';
import { keyChanges } from '../keys/store.ts';
import { usageDays } from '../limits/usage.ts';
import { openCancels, orderSteps, orders } from '../orders/table.ts';
import { environments } from '../submission/environment.ts';
import { lookUps, objectSteps, positions } from '../submission/table.ts';
import { writeChecks } from '../telemetry/write-probe.ts';
import { transfers, wallets } from '../wallet/store.ts';
import { attempts, deliveries, endpoints } from '../webhooks/table.ts';

// biome-ignore lint/suspicious/noExplicitAny: tables of all rows stand in one list.
const described: readonly Table<any>[] = [
  orders,
  orderSteps,
  openCancels,
  applications,
  documents,
  allocations,
  objectSteps,
  lookUps,
  usageDays,
  wallets,
  transfers,
  environments,
  partners,
  apiKeys,
  keyUses,
  keyChanges,
  accounts,
  auditEntries,
  positions,
  leases,
  writeChecks,
  outbox,
  feedEvents,
  feedPurges,
  feedSkips,
  endpoints,
  deliveries,
  attempts,
];

/** Every table of the database. */
export const tables: readonly EntitySchema[] = described.map(({ schema }) => schema);
