import assert from 'node:assert/strict';
import { walkLedger } from '../../../src/gateway/operators/calls/ledger.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import {
  allocations as allocationTable,
  type StoredAllocation,
} from '../../../src/gateway/trading/allocations/table.ts';
import type { StoredWithdrawal } from '../../../src/gateway/trading/withdrawals/table.ts';
import { AllocationOutcome } from '../../../src/gen/marina/broker/v1/allocations_pb.ts';
import { type BrokerAllocation, Call } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { brokerAllocations } from '../brokers-record.ts';
import { type Cluster, callTimeout, type GatewayProcess, type Partner } from '../cluster.ts';
import { eventually } from '../eventually.ts';
import {
  checkWithdrawalEvents,
  checkWithdrawals,
  isMigrated,
  type MoneyEvent,
  storedWithdrawals,
  withdrawalsAtRest,
  withdrawnFromAccount,
} from './withdrawals.ts';

interface Entry {
  readonly type: string;
  readonly amount_kobo: number;
  readonly available_change_kobo: number;
  readonly allocation: string | null;
  /** The release before withdrawals does not have it. */
  readonly withdrawal?: string | null;
  readonly account: string | null;
}

/**
 * Waits until no allocation or withdrawal is unclear and no event on its way, then holds the gateway's rows, its ledgers, the
 * broker's record and the feed against each other, to the kobo. Throws on anything that must never be.
 */
export async function checkMoney(
  cluster: Cluster,
  gateway: GatewayProcess,
  partners: readonly Partner[],
  boundMs = 40_000,
): Promise<void> {
  await eventually(() => atRest(cluster), boundMs);
  const atBroker = await brokerAllocations(cluster.controls);
  await checkSends(cluster);
  const stored = await cluster.database.read(statement('SELECT * FROM allocations ORDER BY id'));
  const allocations = stored.map(allocationTable.all.read);
  const known = new Set(allocations.map(({ id }) => id));
  for (const id of atBroker.keys()) assert.ok(known.has(id), `the broker has ${id}, which is not stored here`);
  for (const allocation of allocations) checkAgainstBroker(allocation, atBroker.get(allocation.id));
  const withdrawals = await storedWithdrawals(cluster);
  await checkWithdrawals(cluster, withdrawals);
  const cash = await cashAtBroker(cluster);
  for (const partner of partners) {
    const own = allocations.filter(({ partnerId }) => partnerId === partner.id);
    const booked = sum(own.filter(({ state }) => state === 'booked').map(({ amountKobo }) => amountKobo));
    const withdrawn = withdrawals.filter(({ partnerId }) => partnerId === partner.id);
    const left = booked - withdrawnFromAccount(withdrawn);
    assert.equal(cash.get(partner.account) ?? 0n, left, 'what was booked and not withdrawn is on the account');
    await checkLedger(cluster, gateway, partner, own, withdrawn);
    await checkEvents(gateway, partner, own, withdrawn);
    await checkUsage(cluster, partner, own);
  }
}

async function atRest(cluster: Cluster): Promise<void> {
  const { database } = cluster;
  const unclear = await database.read(
    statement(`SELECT id, state, evidence FROM allocations WHERE state IN ('sending', 'uncertain')`),
  );
  assert.deepEqual(unclear, [], 'allocations are still unclear');
  await withdrawalsAtRest(cluster);
  assert.deepEqual(await database.read(statement('SELECT partner_id, version FROM outbox')), [], 'events on their way');
}

/** Whatever happened, the broker was sent each allocation and each withdrawal at most once. */
async function checkSends(cluster: Cluster): Promise<void> {
  const seen = new Set<string>();
  for (let afterNumber = 0n; ; ) {
    const { messages, hasMore } = await cluster.controls.listMessages({ afterNumber }, callTimeout);
    for (const { call, clientOrderId } of messages) {
      if (call !== Call.SUBMIT_ALLOCATION && call !== Call.SUBMIT_WITHDRAWAL) continue;
      assert.ok(!seen.has(clientOrderId), `${clientOrderId} was received twice`);
      seen.add(clientOrderId);
    }
    afterNumber = messages.at(-1)?.number ?? afterNumber;
    if (!hasMore) return;
  }
}

function checkAgainstBroker(allocation: StoredAllocation, there: BrokerAllocation | undefined): void {
  const { id, state, account, amountKobo, brokerReference } = allocation;
  if (there === undefined) {
    assert.equal(state, 'refused', `${id} is ${state} and not at the broker`);
    return;
  }
  assert.equal(there.timesReceived, 1, `${id} was received once`);
  assert.deepEqual([there.account, there.amountKobo], [account, amountKobo]);
  const booked = there.record?.outcome === AllocationOutcome.BOOKED;
  assert.equal(state, booked ? 'booked' : 'rejected', `${id} and the broker's record of it`);
  assert.equal(brokerReference ?? '', there.record?.brokerReference);
}

/** The chain is proven, and its entries, added up from scratch, are what the wallet and its objects say. */
async function checkLedger(
  cluster: Cluster,
  gateway: GatewayProcess,
  partner: Partner,
  allocations: readonly StoredAllocation[],
  withdrawals: readonly StoredWithdrawal[],
): Promise<void> {
  if (await isMigrated(cluster)) {
    const walk = await walkLedger(cluster.database, partner.id, 0n);
    assert.deepEqual([walk?.complete, walk?.faults], [true, []]);
  }
  const entries = await readAll<Entry>(gateway, partner, '/v1/wallet/transfers');
  let available = 0;
  const entriesOf = new Map<string, string[]>();
  for (const entry of entries.reverse()) {
    available += entry.available_change_kobo;
    assert.ok(available >= 0, 'what is available is never negative');
    assert.ok(entry.amount_kobo > 0);
    const object = entry.allocation ?? entry.withdrawal ?? null;
    if (object === null) continue;
    const what = `${entry.type} ${entry.amount_kobo} ${entry.account}`;
    entriesOf.set(object, [...(entriesOf.get(object) ?? []), what]);
  }
  for (const { id, state, amountKobo, account } of allocations) {
    const settled = state === 'booked' ? `post ${amountKobo} ${account}` : `return ${amountKobo} null`;
    assert.deepEqual(entriesOf.get(id), [`reserve ${amountKobo} null`, settled], `the entries of ${id}`);
  }
  const paid = withdrawals.filter(({ state, destination }) => state === 'completed' && destination === 'wallet');
  for (const { id, amountKobo, account } of paid) {
    assert.deepEqual(entriesOf.get(id), [`withdrawal ${amountKobo} ${account}`], `the entries of ${id}`);
  }
  assert.equal(entriesOf.size, allocations.length + paid.length, 'no entry is without its object');
  const total = (...wanted: readonly string[]) =>
    entries.filter(({ type }) => wanted.includes(type)).reduce((sum, entry) => sum + entry.amount_kobo, 0);
  const { body: wallet } = await gateway.request('GET', '/v1/wallet', { key: partner.key });
  const { withdrawn_kobo: withdrawn = 0, ...sums } = wallet;
  assert.deepEqual(sums, {
    object: 'wallet',
    available_kobo: available,
    reserved_kobo: 0,
    posted_kobo: total('credit', 'withdrawal') - total('debit', 'credit_reversal') - available,
  });
  assert.equal(withdrawn, total('withdrawal'), 'the wallet has what was withdrawn; an earlier release does not say');
}

/** Versions 1..n without a gap, each change once, and the last one equal to what GET returns. */
async function checkEvents(
  gateway: GatewayProcess,
  partner: Partner,
  allocations: readonly StoredAllocation[],
  withdrawals: readonly StoredWithdrawal[],
): Promise<void> {
  const events = await readAll<MoneyEvent>(gateway, partner, '/v1/events');
  assert.deepEqual(
    events.map(({ version }) => version),
    events.map((_, index) => index + 1),
    'versions are dense',
  );
  for (const { id, state } of allocations) {
    const published = events.filter(({ data }) => data.id === id);
    const types = published.map(({ type }) => type);
    const last = `allocation.${state}`;
    assert.ok(
      types.join() === last || types.join() === `allocation.uncertain,${last}`,
      `${id} made the events ${types}`,
    );
    const { body } = await gateway.request('GET', `/v1/allocations/${id}`, { key: partner.key });
    assert.deepEqual(published.at(-1)?.data, body, `the last event of ${id} is what GET returns`);
  }
  for (const withdrawal of withdrawals) await checkWithdrawalEvents(gateway, partner, withdrawal, events);
}

/** Checks that the amount counted against each day is the sum of everything that is not refused or rejected. */
async function checkUsage(
  { database }: Cluster,
  { id }: Partner,
  allocations: readonly StoredAllocation[],
): Promise<void> {
  const expected = new Map<string, bigint>();
  for (const { countedDay, state, amountKobo } of allocations) {
    const counted = state === 'booked' ? amountKobo : 0n;
    expected.set(countedDay, (expected.get(countedDay) ?? 0n) + counted);
  }
  const rows = await database.read(
    statement(`SELECT day, used_kobo FROM usage_days WHERE partner_id = ? AND kind = 'allocations'`, id),
  );
  assert.deepEqual(new Map(rows.map((row) => [String(row.day), BigInt(String(row.used_kobo))])), expected);
}

async function readAll<Item>(gateway: GatewayProcess, partner: Partner, path: string): Promise<Item[]> {
  const items: Item[] = [];
  for (let cursor = ''; ; ) {
    const { status, body } = await gateway.request('GET', `${path}?limit=100${cursor}`, { key: partner.key });
    assert.equal(status, 200, JSON.stringify(body));
    items.push(...body.data);
    if (!body.has_more) return items;
    cursor = `&cursor=${body.next_cursor}`;
  }
}

/** The money on the broker's accounts, by their codes. */
async function cashAtBroker(cluster: Cluster): Promise<Map<string, bigint>> {
  const all = new Map<string, bigint>();
  for (let afterAccount = ''; ; ) {
    const { accounts, hasMore } = await cluster.controls.listAccounts({ afterAccount }, callTimeout);
    for (const { account, cashKobo } of accounts) all.set(account, cashKobo);
    afterAccount = accounts.at(-1)?.account ?? afterAccount;
    if (!hasMore) return all;
  }
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n);
}
