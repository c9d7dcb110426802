import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { proposalLifeMs } from '../../../../../src/gateway/operators/calls/proposals/rules.ts';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import { callTimeout, type GatewayProcess, type Partner } from '../../../../support/cluster.ts';
import { eventually } from '../../../../support/eventually.ts';
import { describeMoments } from '../../../../support/fault/moments/cases.ts';
import type { WatchedCluster } from '../../../../support/fault/moments/watched-cluster.ts';
import { checkMoney } from '../../../../support/fault/money.ts';
import { operatorToken } from '../../../../support/gateway.ts';
import type { Found } from '../../../../support/operator.ts';
import { operatorTokens, TwoOperators } from '../../../../support/two-operators.ts';

const variables = {
  MARINA_FOUR_EYES_ABOVE_KOBO: '1000000',
  MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
};
const large = 1_000_001;
const [lowKobo, raisedKobo] = ['1000000000', '2000000000'];
const reason = 'the statement of today';
/** The moments of what operators decide. */
const decided = /proposals|audit_entries/;

let connected: TwoOperators | undefined;

/** Makes a call of two operators, again while no answer comes or the gateway cannot serve. */
function operate<T>(watched: WatchedCluster, call: (operators: TwoOperators) => Promise<T>): Promise<T> {
  return watched.again(async ({ adminPort }) => {
    if (connected === undefined) {
      connected = await TwoOperators.connect(adminPort);
      connected.close();
    }
    const operators = connected.at(adminPort);
    try {
      return await call(operators);
    } finally {
      operators.close();
    }
  });
}

/** Proposes as the first operator. The same call again finds the proposal. */
async function propose(watched: WatchedCluster, call: string, request: JsonObject): Promise<string> {
  const { proposal } = await operate(watched, (operators) => operators.as('ada', call, { reason, ...request }));
  return proposal.id;
}

const payment = ({ id: partner_id }: Partner): JsonObject => ({
  ...{ partner_id, amount_kobo: String(large), bank_reference: randomUUID() },
});

/** Sets how much a partner may order in a day. One operator alone may lower it. */
function setLimit(watched: WatchedCluster, { id: partner_id }: Partner, orders_kobo_per_day: string): Promise<Found> {
  const request = { partner_id, reason, limits: { orders_kobo_per_day } };
  return operate(watched, (operators) => operators.as('ada', 'Partners.SetLimits', request));
}

function decline(watched: WatchedCluster, id: string): Promise<Found> {
  return operate(watched, (operators) => operators.as('bola', 'Proposals.DeclineProposal', { id, reason }));
}

function approve(watched: WatchedCluster, id: string): Promise<Found> {
  return operate(watched, (operators) => operators.approve(id));
}

/** How often each call is in the audit about a partner. */
async function auditOf({ cluster }: WatchedCluster, { id }: Partner): Promise<Record<string, number>> {
  const query = statement(
    'SELECT action, COUNT(*) AS count FROM audit_entries WHERE partner_id = ? GROUP BY action',
    id,
  );
  return Object.fromEntries((await cluster.database.read(query)).map((row) => [String(row.action), Number(row.count)]));
}

async function statesOf({ cluster }: WatchedCluster, { id }: Partner): Promise<string[]> {
  const query = statement('SELECT state FROM proposals WHERE partner_id = ? ORDER BY id', id);
  return (await cluster.database.read(query)).map(({ state }) => String(state));
}

async function walletOf(gateway: GatewayProcess, { key }: Partner): Promise<Found> {
  return (await gateway.request('GET', '/v1/wallet', { key })).body;
}

await describeMoments<Partner>({
  name: 'a large payment and a higher limit that a second operator approves, and a payment that he declines',
  variables,
  only: decided,
  async prepare(watched) {
    const partner = await watched.cluster.newPartner();
    await setLimit(watched, partner, lowKobo);
    return partner;
  },
  async run(watched, partner) {
    await approve(watched, await propose(watched, 'Wallets.CreditWallet', payment(partner)));
    await decline(watched, await propose(watched, 'Wallets.CreditWallet', payment(partner)));
    const { proposal } = await setLimit(watched, partner, raisedKobo);
    await approve(watched, proposal.id);
  },
  async check(watched, gateway, partner) {
    assert.deepEqual(await statesOf(watched, partner), ['applied', 'declined', 'applied']);
    assert.equal((await walletOf(gateway, partner)).available_kobo, large, 'one payment is recorded, once');
    const found = await operate(watched, (operators) =>
      operators.as('ada', 'Partners.GetPartner', { partner_id: partner.id }),
    );
    assert.equal(found.partner.limits.orders_kobo_per_day, raisedKobo);
    assert.deepEqual(
      await auditOf(watched, partner),
      {
        // Each proposal, the lower limit, and what was approved.
        ...{ 'Wallets.CreditWallet': 3, 'Partners.SetLimits': 3 },
        ...{ 'Proposals.ApproveProposal': 2, 'Proposals.DeclineProposal': 1 },
      },
      'the audit has each proposal and each decision once',
    );
    await checkMoney(watched.cluster, gateway, [partner]);
  },
});

/** Objects that the broker never got, and what operators say became of them. */
interface Unsettled {
  readonly partner: Partner;
  readonly outcomes: readonly (readonly [objectId: string, outcome: JsonObject])[];
}

await describeMoments<Unsettled>({
  name: 'an order and an allocation with unknown outcomes, which two operators settle',
  variables,
  only: decided,
  async prepare(watched) {
    const { cluster } = watched;
    // An object that the broker never took stays uncertain.
    await cluster.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
    const partner = await cluster.newPartner();
    await cluster.fund(partner, 10_000_000n);
    const gateway = await watched.gateway();
    const order = await gateway.place(partner, { symbol: 'SIM-RESET', quantity: 100 });
    const allocation = await gateway.allocate(partner, { amount_kobo: 1_999_008 });
    assert.deepEqual([order.body.state, allocation.body.state], ['uncertain', 'uncertain']);
    const at = new Date().toISOString();
    const trades = [
      { quantity: '60', price_kobo: '1000', at, exchange_trade_id: 'T1' },
      { quantity: '40', price_kobo: '1000', at, exchange_trade_id: 'T2' },
    ];
    const booked = { state: 'SETTLED_ALLOCATION_STATE_BOOKED', broker_reference: 'B1', decided_at: at };
    const filled = { state: 'SETTLED_ORDER_STATE_FILLED', trades };
    return {
      partner,
      outcomes: [
        [order.body.id, { order: filled }],
        [allocation.body.id, { allocation: booked }],
      ],
    };
  },
  async run(watched, { outcomes }) {
    for (const [id, outcome] of outcomes) {
      await approve(watched, await operate(watched, (operators) => operators.propose(id, outcome)));
    }
  },
  async check(watched, gateway, { partner }) {
    const { body: feed } = await gateway.request('GET', '/v1/events?limit=100', { key: partner.key });
    const events: { type: string; version: number }[] = feed.data;
    assert.deepEqual(
      events.map(({ type, version }) => `${version} ${type}`),
      ['order.uncertain', 'allocation.uncertain', 'order.partially_filled', 'order.filled', 'allocation.booked'].map(
        (type, before) => `${before + 1} ${type}`,
      ),
    );
    const { reserved_kobo, posted_kobo } = await walletOf(gateway, partner);
    assert.deepEqual([reserved_kobo, posted_kobo], [0, 1_999_008]);
    assert.deepEqual(await statesOf(watched, partner), ['applied', 'applied']);
    assert.deepEqual(
      await auditOf(watched, partner),
      { 'Wallets.CreditWallet': 1, 'Settlements.ProposeSettlement': 2, 'Proposals.ApproveProposal': 2 },
      'the audit has the payment of before, each proposal and each approval once',
    );
  },
});

interface Undecided {
  readonly partner: Partner;
  readonly id: string;
}

await describeMoments<Undecided>({
  name: 'a proposal that nobody decides, on the first start after its week',
  variables,
  only: /update proposals/,
  async prepare(watched) {
    const partner = await watched.cluster.newPartner();
    const id = await propose(watched, 'Wallets.CreditWallet', payment(partner));
    await watched.restart();
    await watched.letPass(proposalLifeMs + 1_000);
    return { partner, id };
  },
  async run(watched, { partner }) {
    await eventually(async () => {
      // A gateway that was killed is followed by the next one.
      await watched.gateway();
      assert.deepEqual(await statesOf(watched, partner), ['expired']);
    }, 30_000);
  },
  async check(watched, gateway, { partner, id }) {
    const refused = await operate(watched, (operators) =>
      operators.refused('bola', 'Proposals.ApproveProposal', { id, reason }),
    );
    assert.equal(refused.code, status.FAILED_PRECONDITION);
    assert.deepEqual(await auditOf(watched, partner), { 'Wallets.CreditWallet': 1, 'gateway.ExpireProposal': 1 });
    assert.equal((await walletOf(gateway, partner)).available_kobo, 0);
  },
});
