import assert from 'node:assert/strict';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { create, toBinary, toJsonString } from '@bufbuild/protobuf';
import { ConnectionLimits, RequestsUnderWay } from '../../../src/gateway/edge/bounds.ts';
import type { CallLimits } from '../../../src/gateway/edge/pipeline.ts';
import { CreateOrderRequestSchema, OrderSide, OrderType } from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { eventually } from '../../support/eventually.ts';
import {
  callerWith,
  gate,
  goodOrder,
  noLimits,
  order,
  RawConnection,
  requestText,
  type Servers,
  withServers,
} from './fixture.ts';

const rpcPath = '/marina.gateway.v1.Orders/CreateOrder';
const message = create(CreateOrderRequestSchema, {
  account: 'abc123',
  symbol: 'dangcem',
  side: OrderSide.BUY,
  quantity: 1n,
  type: OrderType.MARKET,
});
const messageBytes = toBinary(CreateOrderRequestSchema, message);

/** The moments of a call at which its client can leave, in their order. */
const moments = [
  'its key is read',
  'its rate is asked for',
  'its slot is looked up',
  'its message is on its way',
  'its handler runs',
] as const;
type Moment = (typeof moments)[number];

/** Servers whose calls stop at a moment until they are released, and what their calls hold. */
class Stopping {
  isThere = false;
  readonly release = gate();
  readonly requests = new RequestsUnderWay();
  readonly connectionLimits = new ConnectionLimits();
  slots = 0;

  constructor(readonly moment: Moment) {}

  settings() {
    const limits: CallLimits = {
      ...noLimits,
      takeRequest: () => this.#reach('its rate is asked for'),
      acquireSlot: async () => {
        await this.#reach('its slot is looked up');
        this.slots += 1;
        if (this.moment === 'its message is on its way') this.isThere = true;
        return () => {
          this.slots -= 1;
        };
      },
    };
    const identify = async () => {
      await this.#reach('its key is read');
      return { caller: callerWith(), refusal: undefined };
    };
    const createOrder = async () => {
      await this.#reach('its handler runs');
      return order;
    };
    const { requests, connectionLimits } = this;
    return { orders: { createOrder }, pipeline: { identify, limits, requests, connectionLimits } };
  }

  async #reach(moment: Moment): Promise<void> {
    if (moment !== this.moment) return;
    this.isThere = true;
    await this.release.opened;
  }
}

/** A client that begins a call, with its message or without it, and then leaves. */
type Client = (servers: Servers, isWhole: boolean) => () => Promise<void>;

function overHttp1(target: string, body: string): Client {
  return ({ restPort }, isWhole) => {
    const connection = new RawConnection(restPort);
    const whole = requestText({ target, body });
    connection.send(isWhole ? whole : whole.subarray(0, -10));
    // An end of its side alone would be that of a client that still reads.
    return async () => void connection.socket.resetAndDestroy();
  };
}

function overGrpc(leave: (session: ClientHttp2Session, stream: ClientHttp2Stream) => Promise<unknown>): Client {
  return ({ grpcPort }, isWhole) => {
    const session = connectHttp2(`http://127.0.0.1:${grpcPort}`);
    const stream = session.request({
      ':method': 'POST',
      ':path': rpcPath,
      'content-type': 'application/grpc',
      authorization: 'Bearer full',
      'idempotency-key': 'k',
    });
    stream.on('error', () => {});
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(messageBytes.length, 1);
    stream.write(prefix);
    if (isWhole) stream.end(messageBytes);
    return async () => {
      await leave(session, stream);
      session.destroy();
    };
  };
}

const clients: readonly [string, Client][] = [
  ['breaks its connection, over REST', overHttp1('/v1/orders', JSON.stringify(goodOrder))],
  ['breaks its connection, over Connect', overHttp1(rpcPath, toJsonString(CreateOrderRequestSchema, message))],
  ['breaks its connection, over gRPC', overGrpc(async (session) => session.destroy())],
  [
    'cancels its call, over gRPC',
    overGrpc(async (session, stream) => {
      stream.close(8);
      // The server has read the end of the call when it answers this.
      await promisify((done: (error: Error | null) => void) => session.ping(done))();
    }),
  ],
];

describe('a call is ended, and holds nothing, if its client', () => {
  for (const [how, begin] of clients) {
    for (const moment of moments) {
      it(`${how}, while ${moment}`, async () => {
        const stopping = new Stopping(moment);
        const { requests, connectionLimits } = stopping;
        await withServers(stopping.settings(), async (servers) => {
          const leave = begin(servers, moment === 'its handler runs');
          await eventually(() => assert.equal(stopping.isThere, true, 'it has come so far'));
          await leave();
          await eventually(() => assert.equal(connectionLimits.total, 0, 'the server knows that it has left'));
          stopping.release.open();
          await eventually(() => {
            const held = [servers.pipeline.underWay, stopping.slots, requests.total];
            assert.deepEqual(held, [0, 0, 0], 'calls, slots and places that are held');
          });
          const code = moment === 'its handler runs' ? undefined : 'client_gone';
          assert.deepEqual([servers.finished.length, servers.finished[0]?.code], [1, code]);
        });
      });
    }
  }
});
