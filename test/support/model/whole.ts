import assert from 'node:assert/strict';
import { brokerAllocations, brokerWithdrawals, exchangeOrders } from '../brokers-record.ts';
import { eventually } from '../eventually.ts';
import { fc } from '../properties.ts';
import { allocationCommands } from './allocations.ts';
import { applicationCommands, assertApplications } from './applications.ts';
import { correctionCommands, fundAtFirst } from './corrections.ts';
import { environmentCommands, setPause } from './environment.ts';
import { evidenceCommands } from './evidence.ts';
import { keyCommands } from './keys.ts';
import { orderCommands } from './orders.ts';
import { PartnerModel } from './partner-model.ts';
import { releaseCommands } from './releases.ts';
import { assertPositions, buyAtFirst, sellCommands } from './sells.ts';
import { endAllStops, stopCommands } from './stops.ts';
import { assertSums } from './sums.ts';
import { ask, boundMs, type Command, type Whole } from './surroundings.ts';
import { endUncertainAllocations, uncertainAllocationCommands } from './uncertain-allocations.ts';
import { readFeed, registerEndpoint, setEndpointPause, untilDelivered, webhookCommands } from './webhooks.ts';
import { assertWithdrawals, withdrawalCommands } from './withdrawals.ts';

/** Compares limits and wallet with the sums of the model. */
function look(replica: number): Command {
  return { toString: () => 'look', check: () => true, run: (model, whole) => assertSums(model, whole, replica) };
}

/** Compares all that the partner has with the model: the lists, and the feed, whose last events tell the same. */
async function assertWhole(model: PartnerModel, whole: Whole): Promise<void> {
  await assertSums(model, whole, 1);
  const { body: list } = await ask(whole, 0, 'GET', '/v1/orders?limit=100');
  const shown = (list.data as { id: string; state: string; filled_quantity: number }[]).map((order) => [
    order.id,
    order.state,
    order.filled_quantity,
  ]);
  const expected = model.orders.map(({ id, state, filled }) => [id, state, filled]);
  assert.deepEqual(shown, expected.reverse(), 'the orders, newest first');
  await assertPositions(model, whole);
  await assertWithdrawals(model, whole);
  await assertApplications(model, whole);
  await eventually(async () => {
    const events = await readFeed(whole);
    assert.deepEqual(
      events.map(({ version }) => version),
      events.map((_, at) => at + 1),
      'the feed is dense',
    );
    const last = new Map(events.map(({ data }) => [data.id, data.state]));
    for (const { id, state } of [...model.orders, ...model.allocations, ...model.withdrawals, ...model.applications]) {
      // Nothing is told of a withdrawal that waits for its release.
      if (state === 'sending') assert.ok(!last.has(id));
      else assert.equal(last.get(id), state, `the last event of ${id}`);
    }
  }, boundMs);
  if (model.isEndpointPaused) await setEndpointPause(model, whole, false);
  await untilDelivered(model, whole);
  await assertRecord(model, whole);
  const { faults, complete } = await whole.operators.as('ada', 'Wallets.VerifyLedger', {
    partner_id: whole.partner.id,
  });
  assert.deepEqual([faults, complete], [[], true], 'the ledger is proven');
}

/** Compares the broker's record with the model: it got each object that was not refused, once, and no other. */
async function assertRecord(model: PartnerModel, { controls, positions, partner }: Whole): Promise<void> {
  const isOurs = ({ account }: { account: string }) => partner.accounts.includes(account);
  const orders = await exchangeOrders(controls, positions.orders);
  const allocations = await brokerAllocations(controls, positions.allocations);
  const withdrawals = await brokerWithdrawals(controls, positions.withdrawals);
  const received = [
    ...orders.filter(isOurs).map((order) => [order.clientOrderId, order.timesReceived]),
    ...[...allocations, ...withdrawals].filter(([, one]) => isOurs(one)).map(([id, one]) => [id, one.timesReceived]),
  ];
  for (const [id, times] of received) assert.ok(Number(times) <= 1, `the broker got ${id} ${times} times`);
  const had = [...model.orders, ...model.allocations, ...model.withdrawals].filter(
    ({ state }) => state !== 'refused' && state !== 'sending',
  );
  const rejected = new Set(
    [...model.orders, ...model.withdrawals].filter(({ state }) => state === 'rejected').map(({ id }) => id),
  );
  const ids = received.map(([id]) => String(id));
  // The simulator keeps no record of what it rejects at once.
  assert.deepEqual(
    ids.filter((id) => !rejected.has(id)).sort(),
    had
      .map(({ id }) => id)
      .filter((id) => !rejected.has(id))
      .sort(),
    'what the broker got',
  );
  const filledAt = new Map(orders.map(({ clientOrderId, filledQuantity }) => [clientOrderId, Number(filledQuantity)]));
  for (const { id, filled } of model.orders) assert.equal(filledAt.get(id) ?? 0, filled, `the fills of ${id}`);
  positions.orders = orders.at(-1)?.sequence ?? positions.orders;
  positions.allocations = [...allocations.values()].at(-1)?.sequence ?? positions.allocations;
  positions.withdrawals = [...withdrawals.values()].at(-1)?.sequence ?? positions.withdrawals;
}

/** Everything that a partner, its operators and the exchange do. */
export const commands = [
  ...orderCommands,
  ...sellCommands,
  ...allocationCommands,
  ...uncertainAllocationCommands,
  ...correctionCommands,
  ...withdrawalCommands,
  ...applicationCommands,
  ...releaseCommands,
  ...evidenceCommands,
  ...stopCommands,
  ...keyCommands,
  ...webhookCommands,
  ...environmentCommands,
  fc.nat(1).map(look),
];

/** Sequences of these and of further commands. A replay path tells which of a shrunk sequence's commands were run. */
export const sequencesOf = (further: readonly fc.Arbitrary<Command>[] = [], replayPath?: string) =>
  fc.commands([...commands, ...further], { maxCommands: 50, size: 'max', replayPath });

/** Runs one sequence for a partner of its own, and compares at its end everything there is. */
export async function runSequence(sequence: Iterable<Command>, start: () => Promise<Whole>): Promise<void> {
  const [whole, model] = [await start(), new PartnerModel()];
  await registerEndpoint(model, whole);
  await fundAtFirst(model, whole);
  await buyAtFirst(model, whole);
  try {
    await fc.asyncModelRun(() => ({ model, real: whole }), settling(sequence));
  } finally {
    await whole.calm();
    if (model.isPaused) await setPause(whole, false);
    await endAllStops(model, whole);
  }
  await endUncertainAllocations(model, whole);
  await assertWhole(model, whole);
}

/** The same commands. After each of them nothing waits for it any more. */
function* settling(sequence: Iterable<Command>): Iterable<Command> {
  for (const command of sequence) {
    yield {
      toString: () => command.toString(),
      check: (model) => command.check(model),
      run: async (model, whole) => {
        await command.run(model, whole);
        whole.settle();
      },
    };
  }
}
