import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { ApplicationRejectReason } from '../../../../src/gen/marina/broker/v1/applications_pb.ts';
import { ApplicationOutcome, Call } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { linkAccount } from '../../../../src/sandbox/provision.ts';
import { adminClient } from '../../../support/admin.ts';
import { apply, goodApplication } from '../../../support/applications.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';

interface AnyEvent {
  type: string;
  timestamp: string;
  data: { id: string };
}

/** Looks at applications over a gateway's ports. */
function watching(gateway: () => TestGateway) {
  async function get(partner: TestPartner, id: string) {
    return (await gateway().rest('GET', `/v1/applications/${id}`, { key: partner.key })).body;
  }

  async function idsOf(partner: TestPartner): Promise<string[]> {
    const rows = await gateway().database.read(
      statement('SELECT id FROM applications WHERE partner_id = ? ORDER BY id', partner.id),
    );
    return rows.map(({ id }) => String(id));
  }

  /** How often the broker was sent an application. */
  async function submissions(id: string): Promise<number> {
    const { messages } = await gateway().controls.listMessages({ clientOrderId: id }, callTimeout);
    return messages.filter(({ call }) => call === Call.SUBMIT_APPLICATION).length;
  }

  /** The application once it is in a state. */
  function inState(partner: TestPartner, id: string, state: string) {
    return eventually(async () => {
      const application = await get(partner, id);
      assert.equal(application.state, state);
      return application;
    });
  }

  /** An application's events, once the last is of a state. */
  function eventsUntil(partner: TestPartner, id: string, state: string): Promise<AnyEvent[]> {
    return eventually(async () => {
      const { body } = await gateway().rest('GET', '/v1/events?limit=100', { key: partner.key });
      const events = body.data.filter((event: AnyEvent) => event.data.id === id);
      assert.equal(events.at(-1)?.type, `application.${state}`);
      return events;
    });
  }

  return { get, idsOf, submissions, inState, eventsUntil };
}

/** The applications whose send has no answer, by their last names, and the state each settles in. */
function settles(gateway: () => TestGateway, ...unclear: readonly [lastName: string, state: string][]): void {
  const { idsOf, submissions, inState, eventsUntil } = watching(gateway);
  for (const [lastName, settled] of unclear) {
    it(`an application of ${lastName} is uncertain, settled as ${settled} and never sent again`, async () => {
      const partner = await gateway().newPartner();
      const key = randomUUID();
      const answer = await apply(gateway(), partner, { last_name: lastName }, key);
      // The report may come by the stream before the send is given up.
      assert.ok(answer.status === 201 || answer.status === 422, answer.text);
      const [id = ''] = await idsOf(partner);
      const application = await inState(partner, id, settled);
      assert.equal(application.account, null);
      assert.equal(await submissions(id), 1);
      const again = await apply(gateway(), partner, { last_name: lastName }, key);
      assert.equal(again.status, answer.status === 201 ? 200 : 422, again.text);
      assert.equal(await submissions(id), 1);
      assert.ok((await eventsUntil(partner, id, settled)).length <= 2);
    });
  }
}

describe('applying for accounts', { concurrency: 4 }, () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  const { get, idsOf, submissions, inState, eventsUntil } = watching(() => gateway);

  it('an application the broker takes wants documents, with its reference, and tells of it', async () => {
    const partner = await gateway.newPartner();
    const answer = await apply(gateway, partner, { middle_name: 'Ngozi', nin: '11111111111' });
    assert.equal(answer.status, 201, answer.text);
    const { id } = answer.body;
    assert.match(id, /^app_[a-z2-7]{20}$/);
    assert.equal(answer.headers.get('location'), `/v1/applications/${id}`);
    assert.deepEqual(Object.keys(answer.body), [
      'object',
      'id',
      'state',
      'reference',
      'account',
      'reason',
      'reject_reason',
      'param',
      'created_at',
      'updated_at',
    ]);
    assert.equal(answer.body.object, 'application');
    assert.equal(answer.body.state, 'documents_required');
    assert.match(answer.body.reference, /^.{1,64}$/);
    assert.deepEqual([answer.body.account, answer.body.reject_reason, answer.body.param], [null, null, null]);
    const read = await gateway.rest('GET', `/v1/applications/${id}`, { key: partner.key });
    assert.equal(read.text, answer.text, 'the GET says the same, byte for byte');
    const [event, ...others] = await eventsUntil(partner, id, 'documents_required');
    assert.ok(event !== undefined);
    assert.deepEqual(others, []);
    assert.equal(JSON.stringify(event.data), read.text, 'and so does the event');
    assert.equal(event.timestamp, read.body.updated_at);
    const { applications } = await gateway.controls.listApplications({ clientApplicationId: id }, callTimeout);
    assert.equal(applications.length, 1);
  });

  it('twenty requests with one key at once lead to one application and one send', async () => {
    const partner = await gateway.newPartner();
    const key = randomUUID();
    const answers = await Promise.all(Array.from({ length: 20 }, () => apply(gateway, partner, {}, key)));
    assert.equal(answers.filter(({ status }) => status === 201).length, 1);
    assert.equal(answers.filter(({ status }) => status === 200).length, 19);
    const [id = '', ...others] = await idsOf(partner);
    assert.deepEqual(others, []);
    assert.ok(answers.every(({ body }) => body.id === id));
    assert.equal(await submissions(id), 1);
  });

  it('the same key with any other field is refused, and the same again is the first application', async () => {
    const partner = await gateway.newPartner();
    const key = randomUUID();
    const first = await apply(gateway, partner, {}, key);
    for (const name of [...Object.keys(goodApplication), 'title', 'nin']) {
      const value = name === 'date_of_birth' ? '1990-12-30' : 'another';
      const other = await apply(gateway, partner, { [name]: value }, key);
      assert.deepEqual([other.status, other.body.error.code], [409, 'duplicate_application'], name);
      assert.equal(other.body.error.param, 'Idempotency-Key');
    }
    const again = await apply(gateway, partner, {}, key);
    assert.deepEqual([again.status, again.body.id], [200, first.body.id]);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(await idsOf(partner), [first.body.id]);
  });

  const rejected = 'The broker rejected the application.';
  const rejections: readonly [string, string, string | null, string][] = [
    ['SIM-REJECT-INVALID', 'invalid_field', 'bvn', `${rejected} A field is not what the broker accepts.`],
    ['SIM-ALREADY', 'already_at_broker', null, `${rejected} The customer already has an account at the broker.`],
    ['SIM-REJECT', 'rejected_by_broker', null, rejected],
  ];
  for (const [lastName, reason, param, message] of rejections) {
    it(`a broker that rejects with ${reason} is quoted in our words, and the replay says it again`, async () => {
      const partner = await gateway.newPartner();
      const key = randomUUID();
      for (const tries of [1, 2]) {
        const answer = await apply(gateway, partner, { last_name: lastName }, key);
        assert.equal(answer.status, 422, `try ${tries}: ${answer.text}`);
        const { error } = answer.body;
        assert.deepEqual([error.code, error.type], ['application_rejected', 'application_error']);
        assert.deepEqual([error.reject_reason, error.param ?? null], [reason, param]);
        assert.equal(error.message, message);
        const application = await get(partner, answer.headers.get('location')?.split('/').at(-1) ?? '');
        assert.deepEqual(
          [application.state, application.reject_reason, application.param, typeof application.reason],
          ['rejected', reason, param, 'string'],
        );
      }
      const [id = '', ...others] = await idsOf(partner);
      assert.deepEqual(others, []);
      assert.equal(await submissions(id), 1);
    });
  }

  it('a text that is no name of a field is not shown as one', async () => {
    const gatewayAlone = await startGateway();
    try {
      const partner = await gatewayAlone.newPartner();
      await gatewayAlone.controls.forceApplication(
        {
          outcome: ApplicationOutcome.REJECT,
          rejectReason: ApplicationRejectReason.INVALID_FIELD,
          param: goodApplication.bvn,
        },
        callTimeout,
      );
      const answer = await apply(gatewayAlone, partner);
      assert.equal(answer.status, 422, answer.text);
      assert.equal(answer.body.error.reject_reason, 'invalid_field');
      assert.equal(answer.body.error.param, undefined);
    } finally {
      await gatewayAlone.stop();
    }
  });

  it('an opened account is one to trade for, in the commit that opens it', async () => {
    const partner = await gateway.newPartner();
    const { body } = await apply(gateway, partner, { last_name: 'SIM-WAIT' });
    const { report } = await gateway.controls.decideApplication(
      { clientApplicationId: body.id, outcome: ApplicationOutcome.OPEN },
      callTimeout,
    );
    const account = report?.account ?? '';
    assert.match(account, /^[A-Z0-9]{1,64}$/);
    const opened = await inState(partner, body.id, 'opened');
    assert.deepEqual([opened.account, opened.reason], [account, null]);
    const placed = await gateway.place(partner, { symbol: 'SIM-REST', account });
    assert.equal(placed.status, 201, placed.text);
    const [row] = await gateway.database.read(
      statement('SELECT application_id FROM accounts WHERE partner_id = ? AND account = ?', partner.id, account),
    );
    assert.equal(row?.application_id, body.id);
    const events = await eventsUntil(partner, body.id, 'opened');
    assert.deepEqual(
      events.map(({ type }) => type),
      ['application.documents_required', 'application.opened'],
    );
  });

  it('an account linked before is kept, and one of another partner is not given away', async () => {
    const [one, two] = [await gateway.newPartner(), await gateway.newPartner()];
    const linked = `L${randomUUID().slice(0, 8).toUpperCase()}`;
    await linkAccount(gateway.database, { partnerId: one.id, account: linked });
    const first = await apply(gateway, one, { last_name: 'SIM-WAIT' });
    const second = await apply(gateway, two, { last_name: 'SIM-WAIT' });
    const decide = (clientApplicationId: string) =>
      gateway.controls.decideApplication(
        { clientApplicationId, outcome: ApplicationOutcome.OPEN, account: linked },
        callTimeout,
      );
    await decide(first.body.id);
    await inState(one, first.body.id, 'opened');
    await decide(second.body.id);
    await eventually(() => assert.ok(gateway.logged.some((line) => line.includes('contradicts'))));
    assert.equal((await get(two, second.body.id)).state, 'documents_required');
    const placed = await gateway.place(two, { symbol: 'SIM-REST', account: linked });
    assert.equal(placed.body.error.code, 'unknown_account');
  });

  it('an application that is declined later is rejected, and tells why', async () => {
    const partner = await gateway.newPartner();
    const { body } = await apply(gateway, partner, { last_name: 'SIM-WAIT' });
    await gateway.controls.decideApplication(
      { clientApplicationId: body.id, outcome: ApplicationOutcome.DECLINE },
      callTimeout,
    );
    const declined = await inState(partner, body.id, 'rejected');
    assert.deepEqual([declined.reject_reason, declined.param, declined.account], ['declined_by_broker', null, null]);
    assert.notEqual(declined.reason, null);
  });

  settles(() => gateway, ['SIM-HANG', 'unplaced'], ['SIM-LOST', 'documents_required'], ['SIM-LOSTREJECT', 'rejected']);

  it('while trading is paused nothing is stored or sent, the key stays free, and a replay works', async () => {
    const own = await startGateway();
    const admin = adminClient(own.app.adminPort);
    try {
      const partner = await own.newPartner();
      const key = randomUUID();
      const first = await apply(own, partner, {}, key);
      await admin.trading.pauseTrading({}, admin.options);
      const late = randomUUID();
      const paused = await apply(own, partner, {}, late);
      assert.deepEqual([paused.status, paused.body.error.code], [503, 'trading_paused']);
      assert.equal(paused.headers.get('retry-after'), '30');
      const replayed = await apply(own, partner, {}, key);
      assert.deepEqual([replayed.status, replayed.body.id], [200, first.body.id]);
      await admin.trading.resumeTrading({}, admin.options);
      assert.equal((await apply(own, partner, {}, late)).status, 201);
    } finally {
      admin.close();
      await own.stop();
    }
  });

  it('a key is kept 30 days and as long as its application is not final, then is free', async () => {
    const own = await startGateway();
    const admin = adminClient(own.app.adminPort);
    try {
      const partner = await own.newPartner();
      const waiting = await apply(own, partner, { last_name: 'SIM-WAIT' }, 'waiting');
      const rejected = await apply(own, partner, { last_name: 'SIM-ALREADY' }, 'rejected');
      assert.equal(rejected.status, 422);
      await admin.clock.advanceClock({ by: { seconds: BigInt(31 * 86_400) } }, admin.options);
      await eventually(async () => assert.equal((await apply(own, partner, {}, 'rejected')).status, 201), 15_000);
      const replayed = await apply(own, partner, { last_name: 'SIM-WAIT' }, 'waiting');
      assert.equal(replayed.body.id, waiting.body.id, 'it still waits, and so does its key');
      const decision = { clientApplicationId: waiting.body.id, outcome: ApplicationOutcome.DECLINE };
      await own.controls.decideApplication(decision, callTimeout);
      await eventually(async () => assert.equal((await apply(own, partner, {}, 'waiting')).status, 201), 15_000);
    } finally {
      admin.close();
      await own.stop();
    }
  });

  it('a partner without the feature may read, and applies for nothing', async () => {
    const partner = await gateway.newPartner({ features: [] });
    const refused = await gateway.rest('POST', '/v1/applications', { key: partner.key, body: 'not even JSON' });
    assert.deepEqual([refused.status, refused.body.error.code], [403, 'feature_not_enabled']);
    assert.equal(refused.body.error.type, 'permission_error');
    assert.equal((await gateway.rest('GET', '/v1/applications', { key: partner.key })).status, 200);
    assert.deepEqual(await idsOf(partner), []);
  });

  it('a list has the newest first, in pages, and nothing of another partner', async () => {
    const [partner, other] = [await gateway.newPartner(), await gateway.newPartner()];
    await apply(gateway, other);
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) ids.unshift((await apply(gateway, partner)).body.id);
    const seen: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const query: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const page = await gateway.rest('GET', `/v1/applications?limit=2${query}`, { key: partner.key });
      assert.equal(page.body.object, 'list');
      seen.push(...page.body.data.map(({ id }: { id: string }) => id));
      cursor = page.body.next_cursor;
      assert.equal(page.body.has_more, cursor !== null);
    }
    assert.deepEqual(seen, ids);
    const foreign = await gateway.rest('GET', `/v1/applications/${ids[0]}`, { key: other.key });
    assert.deepEqual([foreign.status, foreign.body.error.code], [404, 'application_not_found']);
  });

  it('an application with nobody to send it to is refused, and the same key says so again', async () => {
    const own = await startGateway();
    try {
      const partner = await own.newPartner();
      await own.stopBroker();
      const key = randomUUID();
      for (const tries of [1, 2]) {
        const answer = await apply(own, partner, {}, key);
        assert.deepEqual([answer.status, answer.body.error.code], [503, 'application_not_sent'], `try ${tries}`);
        assert.equal(answer.headers.get('retry-after'), null);
        const id = answer.headers.get('location')?.split('/').at(-1) ?? '';
        const { body } = await own.rest('GET', `/v1/applications/${id}`, { key: partner.key });
        assert.equal(body.state, 'refused');
      }
    } finally {
      await own.stop();
    }
  });
});

describe('applying for accounts, when the connection to the broker is reset', () => {
  // A reset meets whatever is on its way to the broker, so these have a gateway of their own and come one after another.
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  settles(() => gateway, ['SIM-RESET', 'unplaced'], ['SIM-RESETAFTER', 'documents_required']);
});
