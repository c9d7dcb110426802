import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { type Answer, Cluster, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { checkEverything } from '../../support/fault/checker.ts';
import { FaultProxy, type Link } from '../../support/fault-proxy.ts';

/** Which COMMIT, by what is written with it. */
const store = 'INSERT INTO orders (';
const record = 'UPDATE orders SET';

/** The ways in which the answer of a COMMIT can be lost, and whether the database did it. */
const losses: readonly { name: string; lose: (link: Link) => void; isDone: boolean }[] = [
  { name: 'is done and its answer cut off', lose: (link) => link.set('toClient', { cutAfter: 0 }), isDone: true },
  { name: 'never arrives', lose: (link) => link.reset(), isDone: false },
  { name: 'is done and never answered', lose: (link) => link.set('toClient', { blackhole: true }), isDone: true },
  {
    name: 'is done and the connection half-closed',
    lose: (link) => link.set('toClient', { halfClose: true }),
    isDone: true,
  },
];

describe('a COMMIT of a gateway', () => {
  let cluster: Cluster;
  let proxy: FaultProxy;
  /** Does the background work, over a link that holds. */
  let healthy: GatewayProcess;
  let gateway: GatewayProcess;
  const partners: Partner[] = [];
  /** By partner, so that the tests can wait for their time limits together. */
  const meetings = new Map<string, { written: string; meet: (link: Link) => void }>();
  before(async () => {
    cluster = await Cluster.start();
    proxy = await FaultProxy.start(cluster.databaseUrl);
    healthy = await cluster.startGateway();
    gateway = await cluster.startGateway({ MARINA_DATABASE_URL: proxy.through(cluster.databaseUrl) });
    proxy.onBytes = (link, direction, bytes) => {
      if (direction !== 'toServer' || !bytes.includes('COMMIT')) return;
      for (const [id, { written, meet }] of meetings) {
        if (!bytes.includes(id) || !bytes.includes(written)) continue;
        meetings.delete(id);
        meet(link);
      }
    };
  });
  after(async () => {
    await cluster.stop();
    await proxy.close();
  });

  async function newPartner(): Promise<Partner> {
    const partner = await cluster.newPartner();
    partners.push(partner);
    return partner;
  }

  /** Meets a partner's next transaction that writes something and commits. */
  function meetCommit(partner: Partner, written: string, meet: (link: Link) => void): void {
    meetings.set(partner.id, { written, meet });
  }

  async function settled(partner: Partner, id: string, states: readonly string[]): Promise<void> {
    await eventually(async () => {
      const { body } = await healthy.request('GET', `/v1/orders/${id}`, { key: partner.key });
      assert.ok(states.includes(body.state), `it is ${body.state}`);
    }, 20_000);
  }

  function assertUnavailable({ status, body, headers }: Answer): void {
    assert.deepEqual([status, body?.error?.code], [503, 'service_unavailable'], JSON.stringify(body));
    assert.equal(headers?.get('retry-after'), '5');
    assert.equal(headers?.get('location'), null);
  }

  describe('whose answer is lost', { concurrency: true }, () => {
    for (const { name, lose, isDone } of losses) {
      it(`an order whose COMMIT ${name} is not sent, and the same key settles it`, async () => {
        const owner = await newPartner();
        const key = randomUUID();
        meetCommit(owner, store, lose);
        assertUnavailable(await gateway.place(owner, { symbol: 'SIM-PARTS' }, key));
        const again = await eventually(async () => {
          const answer = await gateway.place(owner, { symbol: 'SIM-PARTS' }, key);
          assert.notEqual(answer.body?.error?.code, 'service_unavailable');
          return answer;
        });
        assert.equal(again.status, isDone ? 200 : 201, JSON.stringify(again.body));
        await settled(owner, again.body.id, isDone ? ['refused'] : ['filled']);
        const replayed = await healthy.place(owner, { symbol: 'SIM-PARTS' }, key);
        assert.deepEqual([replayed.status, replayed.body.id], [200, again.body.id]);
      });

      it(`an exchange's answer whose COMMIT ${name} leads the client to where to look`, async () => {
        const owner = await newPartner();
        const key = randomUUID();
        meetCommit(owner, record, lose);
        const lost = await gateway.place(owner, { symbol: 'SIM-REST' }, key);
        assert.deepEqual(
          [lost.status, lost.body?.error?.code],
          [503, 'outcome_not_recorded'],
          JSON.stringify(lost.body),
        );
        const location = lost.headers?.get('location') ?? '';
        assert.match(location, /^\/v1\/orders\/ord_[a-z2-7]{20}$/);
        await settled(owner, location.slice('/v1/orders/'.length), ['pending']);
        const replayed = await gateway.place(owner, { symbol: 'SIM-REST' }, key);
        assert.deepEqual([replayed.status, replayed.body.id], [200, location.slice('/v1/orders/'.length)]);
      });

      it(`a cancel whose COMMIT ${name} cancels the order when it is sent again`, async () => {
        const owner = await newPartner();
        const { body } = await healthy.place(owner, { symbol: 'SIM-REST' });
        meetCommit(owner, record, lose);
        const lost = await gateway.request('DELETE', `/v1/orders/${body.id}`, { key: owner.key });
        assertUnavailable(lost);
        await eventually(async () => {
          const again = await gateway.request('DELETE', `/v1/orders/${body.id}`, { key: owner.key });
          assert.equal(again.status, 200, JSON.stringify(again.body));
        });
      });
    }
  });

  it('comes to one order and one send each time', async () => {
    assert.equal(meetings.size, 0, 'each was met');
    await checkEverything(cluster, healthy, partners);
  });
});
