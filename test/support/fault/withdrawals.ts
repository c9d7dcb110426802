import assert from 'node:assert/strict';
import { statement } from '../../../src/gateway/store/statement.ts';
import {
  type StoredWithdrawal,
  withdrawals as withdrawalTable,
} from '../../../src/gateway/trading/withdrawals/table.ts';
import { WithdrawalDestination, WithdrawalReportKind } from '../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { brokerWithdrawals } from '../brokers-record.ts';
import type { Cluster, GatewayProcess, Partner } from '../cluster.ts';

/** An event of the feed. */
export interface MoneyEvent {
  readonly version: number;
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: compared whole with what the object's GET returns.
  readonly data: any;
}

/** The state that each of the broker's reports leads to, as its enumeration numbers them. */
const stateOf: Readonly<Record<WithdrawalReportKind, string>> = {
  [WithdrawalReportKind.UNSPECIFIED]: '',
  [WithdrawalReportKind.ACCEPTED]: 'processing',
  [WithdrawalReportKind.PAID]: 'completed',
  [WithdrawalReportKind.REJECTED]: 'rejected',
  [WithdrawalReportKind.RETURNED]: 'returned',
};

/** Amounts that end so stay `processing` until the broker's operators decide. */
const held = new Set([998_010n, 998_020n]);

/** The ways of a withdrawal as its events tell them, each state once. */
const ways = /^(uncertain )?(refused|processing|(processing )?(rejected|completed( returned)?))$/;

/** Whether the tables are this version's: a ledger of the last release is walked once they are. */
export async function isMigrated({ database }: Cluster): Promise<boolean> {
  const rows = await database.read(statement("SHOW COLUMNS FROM wallets LIKE 'withdrawn_kobo'"));
  return rows.length > 0;
}

/** All withdrawals that are stored; none before the tables are this version's. */
export async function storedWithdrawals(cluster: Cluster): Promise<StoredWithdrawal[]> {
  if (!(await isMigrated(cluster))) return [];
  const rows = await cluster.database.read(statement('SELECT * FROM withdrawals ORDER BY id'));
  return rows.map(withdrawalTable.all.read);
}

/** Each withdrawal is settled, has each report of the broker, and is paid unless it waits for the broker's operators. */
export async function withdrawalsAtRest(cluster: Cluster): Promise<void> {
  const atBroker = await brokerWithdrawals(cluster.controls);
  for (const { id, state, amountKobo, lastReport, missedReport, evidence } of await storedWithdrawals(cluster)) {
    assert.ok(!['sending', 'uncertain'].includes(state), `${id} is still ${state}: ${evidence}`);
    assert.ok(missedReport <= lastReport, `${id} lacks reports`);
    assert.ok(state !== 'processing' || held.has(amountKobo % 1_000_000n), `${id} is not paid yet`);
    const there = atBroker.get(id);
    if (there !== undefined) assert.equal(state, stateOf[there.state], `${id} is as the broker has it`);
  }
}

/** Holds what is stored against the broker's record. */
export async function checkWithdrawals(cluster: Cluster, stored: readonly StoredWithdrawal[]): Promise<void> {
  const atBroker = await brokerWithdrawals(cluster.controls);
  const known = new Set(stored.map(({ id }) => id));
  for (const id of atBroker.keys()) assert.ok(known.has(id), `the broker has ${id}, which is not stored here`);
  for (const { id, state, account, amountKobo, destination, brokerReference } of stored) {
    const there = atBroker.get(id);
    if (there === undefined) {
      assert.equal(state, 'refused', `${id} is ${state} and not at the broker`);
      continue;
    }
    assert.equal(there.timesReceived, 1, `${id} was received once`);
    const destinationThere = WithdrawalDestination[there.destination].toLowerCase();
    assert.deepEqual(
      [there.account, there.amountKobo, destinationThere, stateOf[there.state], there.brokerReference],
      [account, amountKobo, destination, state, brokerReference ?? ''],
      `${id} and the broker's record of it`,
    );
  }
}

/** The money that withdrawals took from an account. No amount of a fault test is so large that a duty is due. */
export function withdrawnFromAccount(stored: readonly StoredWithdrawal[]): bigint {
  const paid = stored.filter(({ state }) => state === 'processing' || state === 'completed');
  return paid.reduce((total, { amountKobo }) => total + amountKobo, 0n);
}

/** Each change of a withdrawal made one event, and the last one is what GET returns. */
export async function checkWithdrawalEvents(
  gateway: GatewayProcess,
  partner: Partner,
  { id, state }: StoredWithdrawal,
  events: readonly MoneyEvent[],
): Promise<void> {
  const published = events.filter(({ data }) => data.id === id);
  const types = published.map(({ type }) => type);
  assert.ok(
    types.every((type) => type.startsWith('withdrawal.')),
    `${id} made the events ${types}`,
  );
  const way = types.map((type) => type.slice('withdrawal.'.length)).join(' ');
  assert.match(way, ways, `the events of ${id}`);
  assert.equal(types.at(-1), `withdrawal.${state}`, `the last event of ${id}`);
  const { body } = await gateway.request('GET', `/v1/withdrawals/${id}`, { key: partner.key });
  assert.deepEqual(published.at(-1)?.data, body, `the last event of ${id} is what GET returns`);
}
