/** The answers of the broker to what it has, by when that comes again. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { account, cashOf, customer, fails, newAllocation, newOrder, soon, startTestSimulator } from './fixture.ts';

const simulator = await startTestSimulator();
const { allocations, applications, orders } = simulator;

const at = (ms: number) => ({ notAfter: timestampFromMs(Date.now() + ms) });
const inTime = () => at(60_000);
const late = () => at(-1_000);
let made = 0;

/** Each kind: how a new one is sent, with these fields more, and whether the broker has it. */
const kinds = {
  'an order': () => {
    const order = newOrder();
    return {
      send: (more: object) => orders.submitOrder({ ...order, ...more }, soon),
      has: async () => (await orders.lookUpOrder(order, soon)).found,
    };
  },
  'an allocation': () => {
    const allocation = newAllocation(7n);
    return {
      send: (more: object) => allocations.submitAllocation({ ...allocation, ...more }, soon),
      has: async () => (await allocations.lookUpAllocation(allocation, soon)).record !== undefined,
    };
  },
  'an application': () => {
    made += 1;
    const application = { clientApplicationId: `app_${made}`, fields: customer };
    return {
      send: (more: object) => applications.submitApplication({ ...application, ...more }, soon),
      has: async () => (await applications.lookUpApplication(application, soon)).found,
    };
  },
};

for (const [kind, make] of Object.entries(kinds)) {
  describe(`${kind} that is sent to the broker again`, () => {
    for (const [when, again] of [
      ['in time', inTime],
      ['too late', late],
      ['without a time', () => ({})],
    ] as const) {
      it(`${kind} is one that the broker has, if it was taken and comes again ${when}`, async () => {
        const { send, has } = make();
        await send(inTime());
        for (let times = 0; times < 2; times += 1) {
          await assert.rejects(send(again()), fails(status.ALREADY_EXISTS));
        }
        assert.equal(await has(), true);
      });
    }

    it(`${kind} is refused if it is too late, and is never taken then, whenever it comes again`, async () => {
      const { send, has } = make();
      await assert.rejects(send(late()), fails(status.FAILED_PRECONDITION));
      for (const again of [late(), inTime(), {}]) {
        await assert.rejects(send(again), fails(status.ALREADY_EXISTS));
        assert.equal(await has(), false);
      }
    });
  });
}

describe('the money of an allocation that is sent to the broker again', () => {
  it('an allocation is on the account once, whenever it comes', async () => {
    const before = (await cashOf(simulator, account)) ?? 0n;
    const allocation = newAllocation(11n);
    await allocations.submitAllocation({ ...allocation, ...inTime() }, soon);
    for (const again of [inTime(), late(), {}]) {
      await assert.rejects(allocations.submitAllocation({ ...allocation, ...again }, soon));
      assert.equal(await cashOf(simulator, account), before + 11n);
    }
  });
});
