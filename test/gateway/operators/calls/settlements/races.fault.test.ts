import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { statement, toBigInt } from '../../../../../src/gateway/store/statement.ts';
import { adminClient } from '../../../../support/admin.ts';
import { Cluster, callTimeout, type GatewayProcess, type Partner } from '../../../../support/cluster.ts';
import { eventually } from '../../../../support/eventually.ts';
import { operatorToken } from '../../../../support/gateway.ts';
import { verifyLedger } from '../../../../support/ledger.ts';
import { operatorTokens, TwoOperators } from '../../../../support/two-operators.ts';

describe('an approval of a settlement, while gateways race', () => {
  let cluster: Cluster;
  let gateway: GatewayProcess;
  let operators: TwoOperators;
  before(async () => {
    cluster = await Cluster.start({ MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`) });
    // An object that the broker never took stays uncertain.
    await cluster.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
    gateway = await cluster.startGateway();
    operators = await TwoOperators.connect(gateway.adminPort);
  });
  after(async () => {
    operators.close();
    await cluster.stop();
  });

  const now = () => new Date().toISOString();

  /** Proposes that an allocation was booked which the broker never got, and an order traded which the exchange never got. */
  async function propose(partner: Partner): Promise<{ objects: string[]; proposals: string[] }> {
    await cluster.fund(partner, 10_000_000n);
    const order = await gateway.place(partner, { symbol: 'SIM-RESET', quantity: 100 });
    const allocation = await gateway.allocate(partner, { amount_kobo: 1_999_008 });
    assert.deepEqual([order.body.state, allocation.body.state], ['uncertain', 'uncertain']);
    const trades = [
      { quantity: '60', price_kobo: '1000', at: now(), exchange_trade_id: 'T1' },
      { quantity: '40', price_kobo: '1000', at: now(), exchange_trade_id: 'T2' },
    ];
    const booked = { state: 'SETTLED_ALLOCATION_STATE_BOOKED', broker_reference: 'B1', decided_at: now() };
    const outcomes: [string, JsonObject][] = [
      [order.body.id, { order: { state: 'SETTLED_ORDER_STATE_FILLED', trades } }],
      [allocation.body.id, { allocation: booked }],
    ];
    const proposals = [];
    for (const [id, outcome] of outcomes) proposals.push(await operators.propose(id, outcome));
    return { objects: outcomes.map(([id]) => id), proposals };
  }

  /** The events of a partner, as the feed has them, without a gap. */
  async function typesOf({ key, id }: Partner): Promise<string[]> {
    const { body } = await gateway.request('GET', '/v1/events?limit=100', { key });
    const versions = body.data.map(({ version }: { version: number }) => version);
    assert.deepEqual(
      versions,
      versions.map((_: number, at: number) => at + 1),
      'a version is missing or comes twice',
    );
    const [row] = await cluster.database.read(statement('SELECT version FROM partners WHERE id = ?', id));
    assert.equal(Number(toBigInt(row?.version)), versions.length);
    return body.data.map(({ type }: { type: string }) => type);
  }

  const uncertain = ['order.uncertain', 'allocation.uncertain'];
  const settled = [...uncertain, 'order.partially_filled', 'order.filled', 'allocation.booked'];

  async function checkApplied(partner: Partner, objects: readonly string[]): Promise<void> {
    await eventually(async () => assert.deepEqual(await typesOf(partner), settled));
    for (const id of objects) {
      const { entries } = await operators.as('ada', 'Audit.ListEntries', { subject: id });
      assert.equal(entries.length, 2, 'one entry of the proposal, one of its approval');
    }
    const { body: wallet } = await gateway.request('GET', '/v1/wallet', { key: partner.key });
    assert.deepEqual([wallet.reserved_kobo, wallet.posted_kobo], [0, 1_999_008]);
    const admin = adminClient(gateway.adminPort);
    try {
      assert.deepEqual(await verifyLedger(admin, partner.id), []);
    } finally {
      admin.close();
    }
  }

  it('is applied once when two replicas approve it at the same time', async () => {
    const second = await cluster.startGateway();
    const others = await TwoOperators.connect(second.adminPort);
    try {
      for (let round = 0; round < 5; round += 1) {
        const partner = await cluster.newPartner();
        const { objects, proposals } = await propose(partner);
        for (const id of proposals) {
          const answers = await Promise.all([operators.approve(id), others.approve(id), operators.approve(id)]);
          assert.deepEqual(answers.map(({ changed }) => changed).toSorted(), [false, false, true]);
        }
        await checkApplied(partner, objects);
      }
    } finally {
      others.close();
    }
  });
});
