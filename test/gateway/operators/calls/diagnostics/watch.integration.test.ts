import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import { eventually } from '../../../../support/eventually.ts';
import { operatorToken, type TestGateway, type TestPartner } from '../../../../support/gateway.ts';
import { TestOperator } from '../../../../support/operator.ts';
import type { ReflectedClient } from '../../../../support/reflected.ts';

describe('an operator who watches events', () => {
  let operator: TestOperator;
  let gateway: TestGateway;
  let client: ReflectedClient;
  before(async () => {
    operator = await TestOperator.start();
    ({ gateway, client } = operator);
  });
  after(() => operator.stop());

  const now = async () => Date.parse((await operator.call('Diagnostics.GetStatus')).now);

  it('a watcher sees the first events of partners that are created while it watches, and while it is away', async () => {
    const begin = async (): Promise<string> => {
      const partner = await gateway.newPartner();
      const placed = await gateway.place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc' });
      assert.equal(placed.status, 201, placed.text);
      return `${partner.id} 1`;
    };
    const began = new Date((await now()) - 1).toISOString();
    const watching = new Watcher(client, {});
    await eventually(() => assert.ok(watching.cursor !== ''));
    const first = watching.cursor;
    // Partners are looked for at one moment: at most one of these has no event yet by then.
    const created = [await begin(), await begin(), await begin()];
    const has = (watcher: Watcher) =>
      eventually(() => {
        for (const name of created) {
          assert.equal(
            watcher.seen.filter((each) => each === name).length,
            1,
            `${name} of ${watcher.seen} ${watcher.error ?? ''}`,
          );
        }
      }, 20_000);
    await has(watching);
    const before = watching.cursor;
    await watching.leave();
    created.push(await begin());
    const resumed = new Watcher(client, { cursor: before });
    await eventually(() => assert.ok(resumed.seen.includes(created.at(-1) ?? '')));
    created.push(await begin());
    const all = [new Watcher(client, { cursor: first }), new Watcher(client, { since: began })];
    for (const watcher of all) await has(watcher);
    await Promise.all([resumed, ...all].map((watcher) => watcher.leave()));
  });

  it('sees what happens to all partners, as it happens, and again from any cursor', async () => {
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
