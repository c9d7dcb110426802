import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { create, type Message } from '@bufbuild/protobuf';
import type { Identification } from '../../../src/gateway/edge/auth/caller.ts';
import { RequestsUnderWay } from '../../../src/gateway/edge/bounds.ts';
import { ApiError } from '../../../src/gateway/edge/errors.ts';
import { type ApiOperation, defineOperations } from '../../../src/gateway/edge/operations.ts';
import { type CallLimits, ClientGone, Pipeline } from '../../../src/gateway/edge/pipeline.ts';
import { Applications } from '../../../src/gen/marina/gateway/v1/applications_pb.ts';
import { SendDocumentRequestSchema } from '../../../src/gen/marina/gateway/v1/documents_pb.ts';
import { Events, WatchEventsRequestSchema } from '../../../src/gen/marina/gateway/v1/events_pb.ts';
import {
  CreateOrderRequestSchema,
  OrderSide,
  Orders,
  OrderType,
} from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { callerWith, gate, recordingHandlers } from './fixture.ts';

const log = createLogger({ name: 'test', level: 'silent' });
const head = { authorization: 'Bearer x' };
const good: Identification = { caller: callerWith(), refusal: undefined };

type Step = 'its rate' | 'its slot' | 'a slot under a lower limit' | 'its stream' | 'its file';

/** A call that ends somewhere; by default it is a good order that is answered. */
interface Way {
  /** The results of looking at its key, one after another; the last one counts from there on. */
  readonly identified?: readonly (() => Identification | Promise<Identification>)[];
  readonly refuses?: Step;
  readonly find?: () => { readonly operation: ApiOperation };
  readonly message?: Message;
  /** Ends the call after its head was checked. */
  readonly ending?: () => never;
}

const handlers = recordingHandlers([]);
const fails = () => Promise.reject(new Error('broken'));
const failing = <Names extends string>(names: readonly { readonly localName: Names }[]) =>
  Object.fromEntries(names.map(({ localName }) => [localName, fails])) as never;
const operations = [
  ...defineOperations(Orders, { ...handlers.orders, estimateOrder: fails }),
  ...defineOperations(Events, handlers.events),
  ...defineOperations(Applications, failing(Applications.methods)),
];

function found(name: string) {
  const operation = operations.find((each) => each.name === name);
  assert.ok(operation !== undefined, name);
  return () => ({ operation });
}

const goodOrder = create(CreateOrderRequestSchema, {
  account: 'abc',
  symbol: 'gtco',
  side: OrderSide.BUY,
  quantity: 1n,
  type: OrderType.MARKET,
});

/** A pipeline with room for one request at each place, and what is taken of it. */
class OneRoom {
  readonly held = new Map<Step, number>();
  readonly requests = new RequestsUnderWay({
    ...{ total: 1, perPartner: 1, reserve: 0, smallPartner: 1 },
    ...{ identifying: 1, identifyingPerAddress: 1 },
  });
  way: Way = {};
  #identified = 0;
  #slots = 0;
  readonly pipeline = new Pipeline({
    identify: () => {
      const { identified = [() => good] } = this.way;
      const at = Math.min(this.#identified, identified.length - 1);
      this.#identified += 1;
      return identified[at]?.() ?? good;
    },
    limits: this.#limits(),
    requests: this.requests,
    log,
  });

  /** Makes a call that goes this way, and returns how it ended. */
  async call(way: Way): Promise<string> {
    this.way = way;
    this.#identified = 0;
    this.#slots = 0;
    const { pipeline } = this;
    const context = pipeline.begin('rest', '192.0.2.1');
    try {
      const { operation } = await pipeline.admit(context, head, way.find ?? found('Orders.CreateOrder'));
      way.ending?.();
      const message = way.message ?? goodOrder;
      if (operation.kind === 'stream') for await (const _ of pipeline.stream(context, message, new AbortController()));
      else await pipeline.call(context, message, 'k');
      pipeline.finish(context, 201);
      return 'answered';
    } catch (error) {
      return pipeline.refuse(context, error)?.code ?? 'client gone';
    }
  }

  assertFree(what: string): void {
    const { requests, pipeline, held } = this;
    const taken = [...held].filter(([, count]) => count !== 0);
    assert.deepEqual([taken, requests.total, pipeline.underWay], [[], 0, 0], what);
  }

  #take(step: Step): () => void {
    if (this.way.refuses === step) throw new ApiError('rate_limited', { message: step });
    assert.equal(this.held.get(step) ?? 0, 0, `${step}: there is room for one`);
    this.held.set(step, 1);
    return () => this.held.set(step, (this.held.get(step) ?? 0) - 1);
  }

  #limits(): CallLimits {
    return {
      takeRequest: () => {
        if (this.way.refuses === 'its rate') throw new ApiError('rate_limited', { message: 'its rate' });
        return undefined;
      },
      acquireSlot: async () => {
        this.#slots += 1;
        return this.#take(this.#slots === 1 ? 'its slot' : 'a slot under a lower limit');
      },
      takeStream: () => this.#take('its stream'),
      takeFile: () => this.#take('its file'),
    };
  }
}

const lowered: Identification = {
  caller: { ...callerWith(), limits: { ...callerWith().limits, requestsUnderWay: 4 } },
  refusal: undefined,
};
const revoked: Identification = { caller: callerWith(), refusal: 'revoked' };
const unread = () => Promise.reject(new ApiError('service_unavailable'));
const watch = { find: found('Events.WatchEvents'), message: create(WatchEventsRequestSchema) };
const file = {
  find: found('Applications.SendDocument'),
  message: create(SendDocumentRequestSchema),
};

const ways: readonly [string, Way, string][] = [
  ['is answered', {}, 'answered'],
  ['is answered with a key that had to be read', { identified: [async () => good] }, 'answered'],
  ['has a key that nobody made', { identified: [() => ({ caller: undefined, refusal: 'unknown' })] }, 'unauthorized'],
  ['has a key that is read and refused', { identified: [async () => revoked] }, 'unauthorized'],
  ['has a key that cannot be read', { identified: [unread] }, 'service_unavailable'],
  ['has a key that breaks its reader', { identified: [fails] }, 'internal_error'],
  ['has a key that breaks its reader at once', { identified: [() => assert.fail('broken')] }, 'internal_error'],
  ['is refused its rate', { refuses: 'its rate' }, 'rate_limited'],
  ['goes to no path', { find: () => assert.fail(new ApiError('not_found')) }, 'not_found'],
  [
    'has no scope for it',
    { identified: [() => ({ ...good, caller: callerWith([Scope.READ]) })] },
    'insufficient_scope',
  ],
  ['is refused its slot', { refuses: 'its slot' }, 'rate_limited'],
  ['is refused a stream', { ...watch, refuses: 'its stream' }, 'rate_limited'],
  ['is a stream that ends', watch, 'answered'],
  ['is refused a file', { ...file, refuses: 'its file' }, 'rate_limited'],
  ['has a file whose handler breaks', file, 'internal_error'],
  ['has a client that leaves before its body came', { ending: () => assert.fail(new ClientGone()) }, 'client gone'],
  ['has a key that is revoked while its body comes', { identified: [() => good, () => revoked] }, 'unauthorized'],
  ['has a key that cannot be read again', { identified: [() => good, unread] }, 'service_unavailable'],
  ['takes a slot under a lower limit', { identified: [() => good, () => lowered] }, 'answered'],
  [
    'is refused a slot under a lower limit',
    { identified: [() => good, () => lowered], refuses: 'a slot under a lower limit' },
    'rate_limited',
  ],
  ['has a wrong field', { message: create(CreateOrderRequestSchema) }, 'missing_required_field'],
  ['breaks its handler', { find: found('Orders.EstimateOrder') }, 'internal_error'],
];

describe('all that a request takes is given back if it', () => {
  for (const [name, way, outcome] of ways) {
    it(name, async () => {
      const room = new OneRoom();
      for (const which of ['first', 'second', 'third']) {
        assert.equal(await room.call(way), outcome, which);
        room.assertFree(which);
      }
      assert.equal(await room.call({ identified: [async () => good] }), 'answered', 'a good one after them');
    });
  }

  it('a request gives back all that it takes if it has a key whose read takes longer than two seconds, once, whenever the read ends', async (context) => {
    const room = new OneRoom();
    for (const which of ['first', 'second']) {
      const late = gate();
      const lateRead = late.opened.then(() => good);
      assert.equal(await tooLong(context, room, lateRead), 'service_unavailable', which);
      room.assertFree(which);
      const next = gate();
      const answer = room.call({ identified: [() => next.opened.then(() => good)] });
      late.open();
      await lateRead;
      assert.equal(await room.call({}), 'service_unavailable', 'the place is that of the next one');
      next.open();
      assert.equal(await answer, 'answered');
    }
  });
});

/** Makes a call whose key is read for two seconds and longer. */
async function tooLong(context: TestContext, room: OneRoom, read: Promise<Identification>): Promise<string> {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const answer = room.call({ identified: [() => read] });
  context.mock.timers.tick(2_000);
  context.mock.timers.reset();
  return answer;
}
