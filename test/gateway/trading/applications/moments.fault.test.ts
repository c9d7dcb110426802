import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { ApplicationOutcome, Call } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { goodApplication } from '../../../support/applications.ts';
import { callTimeout, type Partner } from '../../../support/cluster.ts';
import { fourTypes, overGrpc, overRest } from '../../../support/documents.ts';
import { eventually } from '../../../support/eventually.ts';
import { describeMoments, type Scenario } from '../../../support/fault/moments/cases.ts';
import type { Armed } from '../../../support/fault/moments/inside/watch.ts';
import type { WatchedCluster } from '../../../support/fault/moments/watched-cluster.ts';
import { noiseJpeg } from '../../../support/images.ts';

interface Case {
  readonly partner: Partner;
  readonly file: Buffer;
}

const scenario: Scenario<Case> = {
  name: 'an application with its documents, which the broker decides',
  async prepare({ cluster }) {
    return { partner: await cluster.newPartner(), file: await noiseJpeg() };
  },
  // There are four documents.
  maxOccurrences: 4,
  async run(watched, { partner, file }) {
    const id = await apply(watched, partner);
    for (const [at, type] of fourTypes.entries()) {
      await eventually(async () => {
        const { restPort, grpcPort } = await watched.gateway();
        const send = at % 2 === 0 ? overRest(restPort) : overGrpc(grpcPort);
        const sent = await watched.unlessFrozen(send({ key: partner.key, id, type, file }));
        assert.notEqual(sent?.status, 500);
        assert.equal(sent?.outcome, 'delivered');
      }, 20_000);
    }
    const decision = { clientApplicationId: id, outcome: ApplicationOutcome.OPEN };
    await watched.cluster.controls.decideApplication(decision, callTimeout);
    await untilState(watched, partner, id, /^opened$/);
  },
  async check({ cluster, armed }, gateway, { partner }) {
    const { key } = partner;
    const feed = await gateway.request('GET', '/v1/events?limit=100', { key });
    const events: { version: number; type: string; data: { id: string } }[] = feed.body.data;
    const versions = events.map(({ version }) => version);
    assert.deepEqual(
      versions,
      [...versions.keys()].map((at) => at + 1),
      'versions are dense',
    );
    const { body } = await gateway.request('GET', '/v1/applications', { key });
    for (const application of body.data) {
      const published = events.filter(({ data }) => data.id === application.id);
      assert.equal(new Set(published.map(({ type }) => type)).size, published.length, 'each change makes one event');
      assert.deepEqual(published.at(-1)?.data, application, 'the last event is what the list shows');
      const { messages } = await cluster.controls.listMessages({ clientOrderId: application.id }, callTimeout);
      assert.ok(
        messages.filter(({ call }) => call === Call.SUBMIT_APPLICATION).length <= 1,
        'it was sent once at most',
      );
      const { applications } = await cluster.controls.listApplications(
        { clientApplicationId: application.id },
        callTimeout,
      );
      const received = applications.flatMap(({ documents }) => documents.map(({ timesReceived }) => timesReceived));
      const again = received.reduce((sum, times) => sum + times - 1, 0);
      assert.ok(again <= timesAgain(armed), `documents were received ${received.join(', ')} times`);
      if (application.state !== 'opened') continue;
      assert.equal(received.length, fourTypes.length);
      const placed = await gateway.place({ ...partner, account: application.account }, { symbol: 'SIM-REST' });
      assert.equal(placed.status, 201, 'the account can be traded for');
    }
  },
};

await describeMoments(scenario);
await describeMoments({ ...scenario, isBeside: true });

/** How often files may be sent again: only one whose outcome was lost, or could not be recorded. */
function timesAgain(armed: Armed | undefined): number {
  if (armed === undefined) return 0;
  const { kind, label, fate, times } = armed;
  const isLost = kind === 'call' && label === 'Applications/SendDocument' && fate !== 'before' && fate !== 'refused';
  const isUnrecorded = kind === 'commit' && label.includes('insert documents') && fate !== 'after';
  return isLost || isUnrecorded ? times : 0;
}

/** Applies until the broker has the application: one that was never placed is followed by a new one. */
async function apply(watched: WatchedCluster, partner: Partner): Promise<string> {
  const body = { ...goodApplication, last_name: 'SIM-WAIT' };
  for (let tries = 0; tries < 3; tries += 1) {
    const answer = await watched.ask(partner, 'POST', '/v1/applications', { idempotencyKey: randomUUID(), body });
    const { id } = answer.body;
    if (id === undefined) continue;
    if ((await untilState(watched, partner, id, /^(?!sending|uncertain)/)) === 'documents_required') return id;
  }
  return assert.fail('no application was placed');
}

function untilState(watched: WatchedCluster, partner: Partner, id: string, wanted: RegExp): Promise<string> {
  return eventually(async () => {
    const { body } = await watched.ask(partner, 'GET', `/v1/applications/${id}`);
    assert.match(body.state, wanted);
    return body.state as string;
  }, 20_000);
}
