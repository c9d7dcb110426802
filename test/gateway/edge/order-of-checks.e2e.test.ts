import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Trading } from '../../../src/gen/marina/admin/v1/trading_pb.ts';
import { createGrpcClient } from '../../../src/kit/grpc-client.ts';
import { assertConnectRefusal } from '../../support/e2e/assert-connect.ts';
import { assertGrpcRefusal } from '../../support/e2e/assert-grpc.ts';
import { type Call, goodBody, type OperationName, operations } from '../../support/e2e/calls.ts';
import type { ConnectProtocol } from '../../support/e2e/connect-form.ts';
import {
  callWith,
  cancelFaults,
  circumstancesOf,
  createFaults,
  estimateFaults,
  type Fault,
  type Pair,
  pairsOf,
} from '../../support/e2e/faults.ts';
import { operatorMetadata } from '../../support/e2e/operator.ts';
import { toProtobuf } from '../../support/e2e/protobuf-form.ts';
import { protocols, toRest } from '../../support/e2e/protocols.ts';
import { useGateway } from '../../support/e2e/suite.ts';
import { assertUntouched, type Traces, tracesOf } from '../../support/e2e/traces.ts';
import type { WireRequest } from '../../support/e2e/wire.ts';
import { partnerIn } from '../../support/e2e/worlds.ts';
import { callTimeout, type TestPartner } from '../../support/gateway.ts';

const tables: readonly (readonly [OperationName, readonly Pair[]])[] = [
  ['createOrder', pairsOf(createFaults)],
  ['estimateOrder', pairsOf(estimateFaults)],
  ['cancelOrder', pairsOf(cancelFaults)],
];

const sameKey = createFaults.find(({ circumstance }) => circumstance === 'same key') as Fault;

describe('of two faults the one looked for first is answered', () => {
  // An unclear order stays unclear for as long as these tests run.
  const suite = useGateway({ MARINA_CLOCK_SKEW_MS: '60000' });
  const partners = new Map<string, TestPartner>();
  const traces = new Map<string, Traces>();
  const nameOf = (pair: Pair) => [...circumstancesOf(pair)].sort().join(', ');

  before(async () => {
    const pairs = tables.flatMap(([, each]) => each);
    const named = new Map(pairs.map((pair) => [nameOf(pair), circumstancesOf(pair)]));
    const make = async ([name, circumstances]: [string, ReturnType<typeof circumstancesOf>]) => {
      const partner = await partnerIn(suite.gateway, circumstances);
      partners.set(name, partner);
      traces.set(name, await tracesOf(suite.gateway, partner));
    };
    // Those wait for an order that hangs; the rest would only be in each other's way.
    const waiting = [...named].filter(([, circumstances]) => circumstances.has('similar'));
    await Promise.all(waiting.map(make));
    for (const each of named) if (!each[1].has('similar')) await make(each);
  });

  function tests(isPaused: boolean): void {
    for (const [operation, pairs] of tables) {
      for (const pair of pairs.filter((each) => each.some(({ paused }) => paused) === isPaused)) {
        const [first, second] = pair;
        const name = first === second ? `${first.name} alone` : `${first.name} before ${second.name}`;
        for (const protocol of pair.some(({ restOnly }) => restOnly) ? (['REST'] as const) : protocols) {
          it(`${protocol}: ${operation}: ${name}`, async () => {
            const partner = partners.get(nameOf(pair));
            assert.ok(partner);
            const base: Call = { operation, key: partner.key, idempotencyKey: ['k'], body: goodBody(partner.account) };
            const call = callWith(pair, operations[operation].takesBody ? base : { ...base, body: undefined });
            if (protocol === 'REST') await refusesRest(call, pair);
            else if (protocol === 'gRPC') await refusesGrpc(call, pair);
            else await refusesConnect(protocol, call, pair);
          });
        }
      }
    }
  }

  function refusesRest(call: Call, [first, second]: Pair): Promise<void> {
    const change = ({ http = (request) => request }: Fault) => http;
    // A change of the whole body is made after a change of a part of it.
    const request = first === second ? change(first)(toRest(call)) : change(first)(change(second)(toRest(call)));
    return suite.protocols.refusesRaw(request, first.refusal);
  }

  async function refusesGrpc(call: Call, [first, second]: Pair): Promise<void> {
    const bytes = toProtobuf(call.operation === 'cancelOrder' ? { id: 'ord_abcdefghijklmnopqrst', ...call } : call);
    assert.ok(bytes);
    const change = ({ protobuf = (same) => same }: Fault) => protobuf;
    const changed = first === second ? change(first)(bytes) : change(first)(change(second)(bytes));
    assertGrpcRefusal(await suite.protocols.grpc(call, changed), first.refusal);
  }

  async function refusesConnect(protocol: ConnectProtocol, call: Call, [first, second]: Pair): Promise<void> {
    const change = ({ http = (request) => request, protobuf = (bytes) => bytes }: Fault) => {
      if (protocol === 'Connect JSON') return http;
      return (request: WireRequest) => ({ ...request, body: Buffer.from(protobuf(request.body as Buffer)) });
    };
    const both = (request: WireRequest) =>
      first === second ? change(first)(request) : change(first)(change(second)(request));
    assertConnectRefusal(await suite.protocols.connect(protocol, call, both), first.refusal);
  }

  describe('while trading goes on', () => tests(false));

  describe('while trading is paused', () => {
    const pause = async (isPaused: boolean) => {
      const trading = createGrpcClient(Trading, `127.0.0.1:${suite.gateway.app.adminPort}`);
      const options = { ...callTimeout, metadata: operatorMetadata() };
      await (isPaused ? trading.pauseTrading({}, options) : trading.resumeTrading({}, options));
      trading.close();
    };
    before(() => pause(true));
    after(() => pause(false));
    tests(true);

    for (const protocol of protocols) {
      it(`${protocol}: estimates and reads go on, and an order placed before is answered again`, async () => {
        const partner = partners.get('same key');
        assert.ok(partner);
        const { key, account } = partner;
        await suite.protocols.answers(protocol, { operation: 'listOrders', key });
        await suite.protocols.answers(protocol, { operation: 'estimateOrder', key, body: goodBody(account) });
        const body = { ...goodBody(account), quantity: 7 };
        const call = callWith([sameKey, sameKey], { operation: 'createOrder', key, body });
        assert.equal((await suite.protocols.answers(protocol, call)).header('idempotent-replayed'), 'true');
      });
    }
  });

  it('nothing was stored or sent for anyone, and a good order is taken', async () => {
    for (const [name, partner] of partners) {
      assert.deepEqual(await tracesOf(suite.gateway, partner), traces.get(name), name);
    }
    const untouched = partners.get('');
    assert.ok(untouched);
    await assertUntouched(suite.gateway, untouched, 'k');
  });
});
