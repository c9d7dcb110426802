import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import { statement } from '../../src/db/statement.ts';
import { Call, WireFault } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { apply } from '../support/applications.ts';
import { overRest } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { callTimeout, operatorToken, startGateway, type TestGateway, type TestPartner } from '../support/gateway.ts';
import { noiseJpeg } from '../support/images.ts';
import { ReflectedClient } from '../support/reflected.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

/** An amount that the simulated broker never takes and never answers. */
const hangingKobo = 999_005;
/** One that it books, and whose answer is lost. */
const lostKobo = 999_006;

// biome-ignore lint/suspicious/noExplicitAny: a test looks into answers freely, and fails on what is not there.
type Found = any;

describe('an operator who wants to know', { concurrency: 4 }, () => {
  let receiver: WebhookReceiver;
  let gateway: TestGateway;
  let client: ReflectedClient;
  before(async () => {
    receiver = await WebhookReceiver.start();
    gateway = await startGateway({
      ...receiver.variables,
      MARINA_SUBMIT_TIMEOUT_MS: '1500',
      MARINA_READ_TIMEOUT_MS: '5000',
    });
    client = await ReflectedClient.connect(`127.0.0.1:${gateway.app.adminPort}`);
    // Without its fence what is missing stays unclear, and there is time to look at it.
    await gateway.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
  });
  after(async () => {
    client.close();
    await gateway.stop();
    await receiver.close();
  });

  const call = (name: string, request: JsonObject = {}): Promise<Found> =>
    client.call(`marina.admin.v1.${name}`, request, operatorToken);
  const ask = (name: string, request: JsonObject = {}): Promise<Found> => call(`Diagnostics.${name}`, request);
  const refused = (name: string, request: JsonObject): Promise<ServiceError> =>
    call(name, request).then(
      () => assert.fail(`${name} was not refused`),
      (error: ServiceError) => error,
    );

  /** A replica reconciles for one call at a time, and other tests call too. */
  async function reconcile(request: JsonObject): Promise<Found> {
    for (;;) {
      try {
        return await ask('ReconcileNow', request);
      } catch (error) {
        if ((error as ServiceError).code !== status.RESOURCE_EXHAUSTED) throw error;
      }
    }
  }

  async function unsettledOf({ id }: TestPartner, more: JsonObject = {}): Promise<Found[]> {
    return (await ask('ListUnsettled', { partner_id: id, ...more })).objects;
  }

  const orderState = async (partner: TestPartner, id: string) =>
    (await gateway.rest('GET', `/v1/orders/${id}`, { key: partner.key })).body.state;

  it('how the gateway fares: parts, queues, leases, clocks and versions', async () => {
    const found = await eventually(async () => {
      const answer = await ask('GetStatus');
      assert.deepEqual(answer.troubles, []);
      assert.ok(answer.leases.length >= 10, `${answer.leases.length} leases`);
      assert.ok(
        answer.leases.every((lease: Found) => lease.is_held && lease.is_own),
        JSON.stringify(answer.leases),
      );
      const names = answer.queues.map((queue: Found) => queue.name);
      for (const name of [
        'outbox feed',
        'outbox webhooks',
        'stream feed',
        'stream webhooks',
        'webhooks due',
        'orders',
        'cancels',
        'applications',
        'documents',
        'allocations',
      ]) {
        assert.ok(names.includes(name), `${name} is none of ${names.join(', ')}`);
      }
      return answer;
    }, 20_000);
    assert.equal(found.environment, 'sandbox');
    assert.deepEqual([found.upstream.connected, found.upstream.honours_not_after], [true, false]);
    assert.match(found.replica.version, /^\d+\.\d+\.\d+$/);
    assert.equal(found.replica.node_version, process.versions.node);
    assert.match(found.schema_version, /\d{13}$/);
    assert.ok(found.database_version.length > 2 && found.nats_version.length > 2, JSON.stringify(found));
    assert.ok(Math.abs(Number(found.database_ahead_ms)) < 2_000, `${found.database_ahead_ms} ms`);
    assert.ok(found.leases.some((lease: Found) => lease.name === 'relay'));
  });

  it('everything that is unsettled, whatever it is, with by what that is known', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 2_000_000n);
    const { body: order } = await gateway.place(partner, { symbol: 'SIM-HANG' });
    const { body: resting } = await gateway.place(partner, { symbol: 'SIM-REST' });
    const { body: allocation } = await gateway.allocate(partner, { amount_kobo: hangingKobo });
    const { body: wanting } = await apply(gateway, partner, { first_name: 'SIM-HANG-DOCUMENTS' });
    await gateway.controls.injectFault(
      { call: Call.CANCEL_ORDER, account: partner.account, times: 1, fault: WireFault.HANG },
      callTimeout,
    );
    const send = overRest(gateway.app.restPort);
    const [cancel, { body: application }, document] = await Promise.all([
      gateway.rest('DELETE', `/v1/orders/${resting.id}`, { key: partner.key }),
      apply(gateway, partner, { last_name: 'SIM-HANG' }),
      send({ key: partner.key, id: wanting.id, type: 'photo', file: await noiseJpeg() }),
    ]);
    assert.deepEqual(
      [order.state, allocation.state, application.state, cancel.body.error?.code, document.outcome],
      ['uncertain', 'uncertain', 'uncertain', 'cancel_unconfirmed', 'document_unconfirmed'],
    );

    const objects = await eventually(async () => {
      const found = await unsettledOf(partner);
      assert.equal(found.length, 5, JSON.stringify(found));
      for (const { kind, last_look_up: said } of found) {
        if (!/CANCEL|DOCUMENT/.test(kind)) assert.equal(said, 'missing', kind);
      }
      return found;
    }, 20_000);
    assert.deepEqual(
      objects.map(({ kind, id, state }) => [kind.replace('UNSETTLED_KIND_', ''), id, state]),
      [
        ['ORDER', order.id, 'uncertain'],
        ['CANCEL', resting.id, 'unconfirmed'],
        ['APPLICATION', application.id, 'uncertain'],
        ['DOCUMENT', wanting.id, 'unconfirmed'],
        ['ALLOCATION', allocation.id, 'uncertain'],
      ],
    );
    const [first, unclear, , photo] = objects;
    assert.ok(Number(first.age_ms) > 0 && first.look_ups >= 1 && first.next_check_at !== undefined);
    assert.match(first.evidence, /does not have it yet/);
    assert.match(unclear.evidence, /unconfirmed: no answer/);
    assert.deepEqual([photo.document_type, photo.sends], ['photo', 1]);

    const only = await unsettledOf(partner, { kind: 'UNSETTLED_KIND_ALLOCATION' });
    assert.deepEqual(
      only.map(({ id }) => id),
      [allocation.id],
    );
    assert.deepEqual(await unsettledOf(partner, { older_than_seconds: '86400' }), []);
    const pages: Found[] = [];
    for (let cursor = ''; ; ) {
      const page = await ask('ListUnsettled', { partner_id: partner.id, limit: 2, cursor });
      pages.push(...page.objects.map(({ id }: Found) => id));
      cursor = page.next_cursor;
      if (cursor === '') break;
    }
    assert.deepEqual(
      pages,
      objects.map(({ id }) => id),
    );
    const foreign = await ask('ListUnsettled', { partner_id: partner.id, limit: 2 });
    const misused = await refused('Diagnostics.ListUnsettled', { cursor: foreign.next_cursor });
    assert.equal(misused.code, status.INVALID_ARGUMENT);
    assert.deepEqual(
      client.violations(misused).map(({ field }) => field),
      ['cursor'],
    );

    // What can be asked about is asked: the cancel was not taken, and of the rest nothing is proven yet.
    const asked = await eventually(async () => {
      const answer = await reconcile({ partner_id: partner.id, reason: 'the alarm rang' });
      const outcomes = answer.objects.map(({ outcome }: Found) => outcome);
      assert.ok(!outcomes.includes('RECONCILE_OUTCOME_BEING_SENT'), 'the time of the cancel is over');
      return answer;
    });
    assert.equal(asked.next_cursor, '');
    assert.deepEqual(
      asked.objects.map(({ id, outcome, look_up: said }: Found) => [
        id,
        outcome.replace('RECONCILE_OUTCOME_', ''),
        said,
      ]),
      [
        [order.id, 'STILL_UNCLEAR', 'missing'],
        [resting.id, 'SETTLED', 'found'],
        [application.id, 'STILL_UNCLEAR', 'missing'],
        [allocation.id, 'STILL_UNCLEAR', 'missing'],
      ],
    );
    const { messages } = await gateway.controls.listMessages({ clientOrderId: order.id }, callTimeout);
    assert.equal(messages.filter((message) => message.call === Call.SUBMIT_ORDER).length, 1, 'nothing was sent again');
    const { entries } = await call('Audit.ListEntries', { partner_id: partner.id });
    assert.deepEqual(
      [entries[0].action, entries[0].detail],
      ['Diagnostics.ReconcileNow', '{"reason":"the alarm rang"}'],
    );
    const again = await gateway.rest('DELETE', `/v1/orders/${resting.id}`, { key: partner.key });
    assert.equal(again.body.state, 'cancelled', again.text);
    assert.deepEqual(
      (await unsettledOf(partner, { kind: 'UNSETTLED_KIND_CANCEL' })).length,
      0,
      'a cancel that is known is not listed',
    );
  });

  it('what a look-up of one order says now, and what kept it from answering', async () => {
    const partner = await gateway.newPartner();
    const { body: order } = await gateway.place(partner, { symbol: 'SIM-LOST', time_in_force: 'gtc' });
    await gateway.controls.injectFault(
      { call: Call.LOOK_UP_ORDER, account: partner.account, times: 1000, fault: WireFault.UNAVAILABLE_BEFORE },
      callTimeout,
    );
    const one = await reconcile({ object_id: order.id });
    assert.equal(one.objects.length, 1, JSON.stringify(one));
    // The stream of reports may have told of it by now; then there is nothing to ask.
    if (one.objects[0].outcome === 'RECONCILE_OUTCOME_STILL_UNCLEAR') {
      assert.deepEqual([one.objects[0].look_up, one.objects[0].error_class], ['unanswered', 'unavailable']);
    }
    await eventually(async () => assert.equal(await orderState(partner, order.id), 'pending'), 20_000);
    const settled = await reconcile({ object_id: order.id });
    assert.equal(settled.objects[0].outcome, 'RECONCILE_OUTCOME_NOTHING_UNCLEAR');
    const nobody = await reconcile({ object_id: `ord_${'a'.repeat(20)}` }).catch((error: ServiceError) => error);
    assert.equal(nobody.code, status.NOT_FOUND);
  });

  it("an order's story: stored, sent, each message of the exchange, each event and each attempt to deliver it", async () => {
    const partner = await gateway.newPartner({ limits: { ordersKoboPerDay: 10n ** 15n } });
    const path = `/${randomUUID()}`;
    let failures = 1;
    receiver.reply(path, () => (failures-- > 0 ? 400 : 200));
    await call('Webhooks.RegisterEndpoint', { partner_id: partner.id, url: receiver.url(path) });
    const { body: order } = await gateway.place(partner, { symbol: 'SIM-PARTS', quantity: 300 });
    const other = await gateway.place(partner, { symbol: 'SIM-REST' });
    assert.equal(other.status, 201, other.text);

    const story = await eventually(async () => {
      const found = await ask('GetTimeline', { id: order.id });
      const attempts = found.entries.filter((entry: Found) => entry.source === 'TIMELINE_SOURCE_WEBHOOK');
      assert.ok(found.state === 'filled' && attempts.length >= 4, JSON.stringify(found));
      return found;
    }, 20_000);
    assert.deepEqual([story.id, story.partner_id, story.has_more], [order.id, partner.id, false]);
    const of = (source: string) => story.entries.filter((entry: Found) => entry.source === `TIMELINE_SOURCE_${source}`);
    const steps = of('STEP');
    assert.equal(steps[0].kind, 'stored');
    // A report by the stream may come before the answer to the send is recorded.
    assert.deepEqual(steps.map(({ kind }: Found) => kind).toSorted(), [
      'report',
      'report',
      'report',
      'report',
      'sent',
      'stored',
    ]);
    const reports = steps.filter(({ kind }: Found) => kind === 'report');
    const trades = reports.slice(1);
    assert.equal(
      trades.reduce((sum: number, { quantity }: Found) => sum + Number(quantity), 0),
      300,
    );
    for (const { upstream_at: at, report_number: number } of reports) {
      assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000 && Number(number) > 0, at);
    }
    const events = of('EVENT');
    assert.deepEqual(
      events.map(({ kind, version }: Found) => [kind, version]),
      [
        ['order.pending', events[0].version],
        ['order.partially_filled', events[1].version],
        ['order.partially_filled', events[2].version],
        ['order.filled', events[3].version],
      ],
    );
    assert.ok(
      of('WEBHOOK').some(({ kind, status: code }: Found) => kind === 'delivered' && code === 200),
      JSON.stringify(of('WEBHOOK')),
    );
    const times = story.entries.map(({ at }: Found) => Date.parse(at));
    assert.deepEqual(
      times,
      times.toSorted((one: number, next: number) => one - next),
    );

    const byEvent = await ask('GetTimeline', { id: events[3].event_id });
    assert.equal(byEvent.id, order.id);
    const page = await ask('GetTimeline', { id: order.id, limit: 4 });
    const rest = await ask('GetTimeline', { id: order.id, limit: 4, after_step: page.last_step });
    assert.deepEqual([page.has_more, page.last_step, rest.has_more, rest.last_step], [true, 4, false, 6]);
    const versions = [...page.entries, ...rest.entries]
      .filter(({ source }: Found) => source === 'TIMELINE_SOURCE_EVENT')
      .map(({ version }: Found) => version);
    assert.deepEqual([...new Set(versions)].sort(), events.map(({ version }: Found) => version).sort());
  });

  it('the stories of an application with its documents, of an allocation with its ledger, of a key and of a partner', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 10_000n);
    const { body: application } = await apply(gateway, partner, { last_name: 'SIM-WAIT' });
    const send = overRest(gateway.app.restPort);
    const sent = await send({ key: partner.key, id: application.id, type: 'photo', file: await noiseJpeg() });
    assert.equal(sent.outcome, 'delivered');
    const kinds = async (id: string) => {
      const { entries } = await ask('GetTimeline', { id });
      return entries
        .filter(({ source }: Found) => source !== 'TIMELINE_SOURCE_EVENT')
        .map(({ kind, detail }: Found) => (kind === 'document' ? detail : kind));
    };
    const [first, ...rest] = await kinds(application.id);
    assert.deepEqual([first, rest.slice(0, 2).toSorted()], ['stored', ['report', 'sent']]);
    assert.deepEqual(rest.slice(2), ['photo: to be sent, attempt 1', 'photo: delivered']);
    const page = await ask('GetTimeline', { id: application.id, limit: 2 });
    const others = await ask('GetTimeline', { id: application.id, limit: 10, after_step: page.last_step });
    const steps = [...page.entries, ...others.entries].filter(({ source }: Found) => source === 'TIMELINE_SOURCE_STEP');
    assert.deepEqual(
      steps.map(({ kind, detail }: Found) => (kind === 'document' ? detail : kind)),
      [first, ...rest],
      'page by page it is the same story',
    );
    assert.deepEqual([page.has_more, page.last_step, others.has_more, others.last_step], [true, 2, false, 5]);
    const { body: allocation } = await gateway.allocate(partner, {});
    assert.deepEqual((await kinds(allocation.id)).toSorted(), ['post', 'report', 'reserve', 'sent', 'stored']);
    const { key } = await call('Keys.CreateKey', { partner_id: partner.id, scopes: ['SCOPE_READ'] });
    await gateway.rest('DELETE', `/v1/keys/${key.id}`, { key: partner.key });
    assert.deepEqual(await kinds(key.id), ['Keys.CreateKey', 'revoked']);
    await call('Partners.SuspendPartner', { partner_id: partner.id });
    assert.deepEqual(await kinds(partner.id), ['Partners.SuspendPartner']);
    const nothing = await refused('Diagnostics.GetTimeline', { id: `app_${'a'.repeat(20)}` });
    assert.equal(nothing.code, status.NOT_FOUND);
    const gone = await refused('Diagnostics.GetTimeline', { id: `msg_${'0'.repeat(24)}` });
    assert.equal(gone.code, status.NOT_FOUND);
  });

  it('what happens to all partners, as it happens, and again from any cursor', async () => {
    const [one, two] = [await gateway.newPartner(), await gateway.newPartner()];
    const both = [one.id, two.id];
    const place = async (partner: TestPartner) => {
      const placed = await gateway.place(partner, {
        symbol: 'SIM-REST',
        time_in_force: 'gtc',
        quantity: nextQuantity(),
      });
      assert.equal(placed.status, 201, placed.text);
    };
    const watcher = new Watcher(client, { partner_ids: both });
    const everybody = new Watcher(client, {});
    await eventually(() =>
      assert.ok(watcher.cursor !== '' && everybody.cursor !== '', 'where they stand is said at once'),
    );
    const beginning = watcher.cursor;
    await place(one);
    await place(two);
    await place(one);
    const expected = [`${one.id} 1`, `${one.id} 2`, `${two.id} 1`].sort();
    await watcher.has(expected);
    const late = await gateway.newPartner();
    await place(late);
    await eventually(() => {
      for (const name of [...expected, `${late.id} 1`]) assert.ok(everybody.seen.includes(name), name);
    });
    assert.ok(!watcher.seen.includes(`${late.id} 1`));
    const [event] = watcher.events;
    assert.ok(event !== undefined, 'there is a first event');
    assert.deepEqual(
      [JSON.parse(event.body).object, JSON.parse(event.body).id, JSON.parse(event.body).type],
      ['event', event.id, 'order.pending'],
    );
    const middle = watcher.cursor;
    await Promise.all([watcher.leave(), everybody.leave()]);

    await place(two);
    const resumed = new Watcher(client, { partner_ids: both, cursor: middle });
    await resumed.has([`${two.id} 2`]);
    const repeated = new Watcher(client, { partner_ids: both, cursor: beginning });
    await repeated.has([...expected, `${two.id} 2`].sort());
    const since = new Watcher(client, { partner_ids: both, since: new Date(Date.now() - 3_600_000).toISOString() });
    await since.has([...expected, `${two.id} 2`].sort());
    await Promise.all([resumed.leave(), repeated.leave(), since.leave()]);

    const wrong = new Watcher(client, { cursor: middle });
    await eventually(() => assert.equal(wrong.error?.code, status.INVALID_ARGUMENT));
    const unknown = new Watcher(client, { partner_ids: [`par_${'a'.repeat(20)}`] });
    await eventually(() => assert.equal(unknown.error?.code, status.NOT_FOUND));
  });
});

describe('an operator whom an alarm has called', () => {
  let gateway: TestGateway;
  let client: ReflectedClient;
  before(async () => {
    gateway = await startGateway({ MARINA_SUBMIT_TIMEOUT_MS: '4000', MARINA_READ_TIMEOUT_MS: '5000' });
    client = await ReflectedClient.connect(`127.0.0.1:${gateway.app.adminPort}`);
  });
  after(async () => {
    client.close();
    await gateway.stop();
  });

  const ask = (name: string, request: JsonObject): Promise<Found> =>
    client.call(`marina.admin.v1.Diagnostics.${name}`, request, operatorToken);
  const reconcile = (request: JsonObject) => ask('ReconcileNow', request);

  it('is told that the answer to a send contradicts what was concluded: alarmed, counted and on the record', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 10_000n);
    await gateway.controls.injectFault(
      {
        call: Call.SUBMIT_ALLOCATION,
        account: partner.account,
        times: 1,
        fault: WireFault.LATE_ANSWER,
        delayMs: 2_500,
      },
      callTimeout,
    );
    const allocating = gateway.allocate(partner, {});
    const id = await eventually(async () => {
      const [row] = await gateway.database.read(
        statement('SELECT id FROM allocations WHERE partner_id = ?', partner.id),
      );
      assert.ok(row !== undefined, 'the allocation is stored');
      const { allocations } = await gateway.controls.listAllocations(
        { clientAllocationId: String(row.id) },
        callTimeout,
      );
      assert.equal(allocations.length, 1, 'the broker has it');
      return String(row.id);
    });
    // As if it had been concluded that it never left.
    await gateway.database.write(
      statement("UPDATE allocations SET state = 'refused', check_at = NULL WHERE id = ?", id),
    );
    await allocating;
    await eventually(() => {
      const line = gateway.logged.find(
        (each) => each.includes('contradicts the state of an object') && each.includes(id),
      );
      assert.match(line ?? '', /"level":"error".*says booked, and the allocation is refused/);
    });
    const metrics = await (await fetch(`http://127.0.0.1:${gateway.app.opsPort}/metrics`)).text();
    assert.match(metrics, /marina_contradictions_total\{kind="allocation"\} 1/);
    const { entries } = await ask('GetTimeline', { id });
    assert.ok(entries.some(({ kind }: Found) => kind === 'contradiction'));
  });

  it('when the broker is back, what is unclear is settled by asking now; what is being sent is left alone', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 2_000_000n);
    const { account } = partner;
    await gateway.controls.injectFault(
      { call: Call.LOOK_UP_ALLOCATION, account, times: 1_000, fault: WireFault.UNAVAILABLE_BEFORE },
      callTimeout,
    );
    const { body: allocation } = await gateway.allocate(partner, { amount_kobo: lostKobo });
    assert.equal(allocation.state, 'uncertain');
    const one = { object_id: allocation.id as string };
    const [unanswered] = (await reconcile(one)).objects;
    assert.deepEqual(
      [unanswered.outcome, unanswered.look_up, unanswered.error_class, unanswered.state_now],
      ['RECONCILE_OUTCOME_STILL_UNCLEAR', 'unanswered', 'unavailable', 'uncertain'],
    );
    await gateway.controls.clearDirectives({}, callTimeout);
    const [settled] = (await reconcile(one)).objects;
    assert.equal(settled.state_now, 'booked');
    assert.match(settled.outcome, /SETTLED|NOTHING_UNCLEAR/);

    const placing = gateway.place(partner, { symbol: 'SIM-HANG' });
    const id = await eventually(async () => {
      const [row] = await gateway.database.read(statement('SELECT id FROM orders WHERE partner_id = ?', partner.id));
      assert.ok(row !== undefined, 'the order is stored');
      return String(row.id);
    });
    const [sending] = (await reconcile({ object_id: id })).objects;
    if (sending.state_before === 'sending') {
      assert.deepEqual([sending.outcome, sending.state_now], ['RECONCILE_OUTCOME_BEING_SENT', 'sending']);
    }
    assert.equal((await placing).body.state, 'uncertain');
  });
});

let quantity = 0;
/** Orders alike are refused while one is unclear. */
function nextQuantity(): number {
  quantity += 1;
  return quantity;
}

/** A stream of events that is being read. */
class Watcher {
  readonly events: { partner_id: string; version: string; id: string; body: string }[] = [];
  cursor = '';
  error: ServiceError | undefined;
  readonly #leaving = new AbortController();
  readonly #reading: Promise<void>;

  constructor(client: ReflectedClient, request: JsonObject) {
    this.#reading = this.#read(client, request);
  }

  get seen(): string[] {
    return this.events.map((event) => `${event.partner_id} ${event.version}`);
  }

  has(names: readonly string[]): Promise<void> {
    return eventually(() => assert.deepEqual(this.seen.toSorted(), names), 20_000);
  }

  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.#reading;
  }

  async #read(client: ReflectedClient, request: JsonObject): Promise<void> {
    const name = 'marina.admin.v1.Diagnostics.WatchEvents';
    try {
      for await (const message of client.stream(name, request, operatorToken, this.#leaving.signal)) {
        this.events.push(...((message.events ?? []) as unknown as Watcher['events']));
        this.cursor = String(message.next_cursor ?? '');
      }
    } catch (error) {
      this.error = error as ServiceError;
    }
  }
}
