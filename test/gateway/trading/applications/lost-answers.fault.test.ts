import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { ApplicationOutcome, Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { goodApplication } from '../../../support/applications.ts';
import { Cluster, callTimeout, type GatewayProcess, type Partner } from '../../../support/cluster.ts';
import { eventually } from '../../../support/eventually.ts';
import { fated } from '../../../support/fault/moments/fated.ts';

/** The faults of a submission's answer, and the application's end after each. */
const faults: readonly { name: string; fault: WireFault; delayMs?: number; end: string }[] = [
  { name: 'hangs untaken', fault: WireFault.HANG, end: 'unplaced' },
  { name: 'is taken and its answer lost', fault: WireFault.LOSE_ANSWER, end: 'documents_required' },
  { name: 'is answered after the deadline', fault: WireFault.LATE_ANSWER, delayMs: 1_500, end: 'documents_required' },
  { name: 'is received after not_after', fault: WireFault.LATE_RECEIPT, delayMs: 1_500, end: 'unplaced' },
  { name: 'meets a reset before it is taken', fault: WireFault.RESET_BEFORE, end: 'unplaced' },
  { name: 'meets a reset after it is taken', fault: WireFault.RESET_AFTER, end: 'documents_required' },
  { name: 'is answered UNAVAILABLE untaken', fault: WireFault.UNAVAILABLE_BEFORE, end: 'unplaced' },
  { name: 'is answered UNAVAILABLE and taken', fault: WireFault.UNAVAILABLE_AFTER, end: 'documents_required' },
  { name: 'is answered with nonsense', fault: WireFault.NONSENSE, end: 'documents_required' },
];

interface FeedEvent {
  readonly type: string;
  readonly version: number;
  readonly data: { readonly id: string; readonly state: string };
}

describe('an application', () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.start();
  });
  after(() => cluster.stop());

  function apply(gateway: GatewayProcess, { key }: Partner, idempotencyKey: string, fields = {}) {
    return gateway.request('POST', '/v1/applications', {
      key,
      idempotencyKey,
      body: { ...goodApplication, ...fields },
    });
  }

  async function idsOf({ id }: Partner): Promise<string[]> {
    const rows = await cluster.database.read(statement('SELECT id FROM applications WHERE partner_id = ?', id));
    return rows.map((row) => String(row.id));
  }

  /** It is settled; the broker received it at most once; each of its changes made one event, and the last is what GET says. */
  async function check(gateway: GatewayProcess, partner: Partner, id: string, end: string): Promise<void> {
    const { key } = partner;
    await eventually(async () => {
      const { body } = await gateway.request('GET', `/v1/applications/${id}`, { key });
      assert.equal(body?.state, end);
    }, 20_000);
    const { messages } = await cluster.controls.listMessages({ clientOrderId: id }, callTimeout);
    const sends = messages.filter(({ call }) => call === Call.SUBMIT_APPLICATION).length;
    assert.ok(sends <= 1, `the broker received it ${sends} times`);
    const { applications } = await cluster.controls.listApplications({ clientApplicationId: id }, callTimeout);
    assert.equal(
      applications.length,
      end === 'unplaced' ? 0 : 1,
      'the broker has it if and only if it is not unplaced',
    );
    await eventually(async () => {
      const feed = await gateway.request('GET', '/v1/events?limit=100', { key });
      const all: FeedEvent[] = feed.body.data;
      assert.deepEqual(
        all.map(({ version }) => version),
        all.map((_, index) => index + 1),
        'versions are dense',
      );
      const published = all.filter(({ data }) => data.id === id);
      assert.equal(new Set(published.map(({ type }) => type)).size, published.length, 'each change makes one event');
      const { body } = await gateway.request('GET', `/v1/applications/${id}`, { key });
      assert.deepEqual(published.at(-1)?.data, body);
    });
  }

  describe('whose submission', () => {
    let gateway: GatewayProcess;
    before(async () => {
      gateway = await cluster.startGateway();
    });
    after(() => gateway.stop());

    for (const { name, fault, delayMs = 0, end } of faults) {
      it(`${name}: sent once, settled as ${end}`, async () => {
        const partner = await cluster.newPartner();
        await cluster.controls.injectFault({ call: Call.SUBMIT_APPLICATION, fault, delayMs, times: 1 }, callTimeout);
        const key = randomUUID();
        const applied = await apply(gateway, partner, key);
        assert.equal(applied.status, 201, JSON.stringify(applied.body));
        const replayed = await apply(gateway, partner, key);
        assert.deepEqual([replayed.status, replayed.body.id], [200, applied.body.id]);
        await check(gateway, partner, applied.body.id, end);
      });
    }

    it('stands still in a frozen process: another settles it, and the thawed one sends nothing that is taken', async () => {
      const partner = await cluster.newPartner();
      const stored = { kind: 'commit', label: 'insert applications, insert object_steps', fate: 'frozen' } as const;
      const frozen = await cluster.startGateway(fated(cluster.folder, stored));
      const applying = apply(frozen, partner, randomUUID());
      const id = await eventually(async () => {
        const [stored] = await idsOf(partner);
        assert.ok(stored !== undefined);
        return stored;
      });
      await check(gateway, partner, id, 'unplaced');
      frozen.thaw();
      const answer = await applying;
      assert.deepEqual([answer.status, answer.body?.state], [201, 'unplaced'], JSON.stringify(answer.body));
      await check(gateway, partner, id, 'unplaced');
      await frozen.stop();
    });

    it('finds the broker without a fence: not found proves nothing, and it stays uncertain', async () => {
      const partner = await cluster.newPartner();
      await cluster.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
      try {
        const applied = await apply(gateway, partner, randomUUID(), { last_name: 'SIM-HANG' });
        assert.equal(applied.body.state, 'uncertain');
        const { id } = applied.body;
        await eventually(async () => {
          const [row] = await cluster.database.read(statement('SELECT checks FROM applications WHERE id = ?', id));
          assert.ok(Number(row?.checks) >= 3, 'it was asked about after the fence would have proven it');
        }, 20_000);
        const { body } = await gateway.request('GET', `/v1/applications/${id}`, { key: partner.key });
        assert.equal(body.state, 'uncertain');
        await cluster.controls.setCapabilities({ honoursNotAfter: true }, callTimeout);
        await check(gateway, partner, id, 'unplaced');
      } finally {
        await cluster.controls.setCapabilities({ honoursNotAfter: true }, callTimeout);
      }
    });

    it('meets a stream of reports that repeats, swaps and loses: each report still counts once', async () => {
      const partner = await cluster.newPartner();
      await cluster.controls.disturbReports({ applications: true, repeat: 3, swap: 2, omit: 1 }, callTimeout);
      const applied = await apply(gateway, partner, randomUUID(), { last_name: 'SIM-WAIT' });
      const { id } = applied.body;
      await cluster.controls.decideApplication(
        { clientApplicationId: id, outcome: ApplicationOutcome.DECLINE },
        callTimeout,
      );
      // The next report would show the gap if the last of them was left out.
      await apply(gateway, await cluster.newPartner(), randomUUID());
      await check(gateway, partner, id, 'rejected');
    });
  });
});
