/** Calls that the adapter passes on to the back office, over real connections. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { create } from '@bufbuild/protobuf';
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { passThrough } from '../../../src/fix-adapter/service/pass-through.ts';
import {
  Applications,
  LookUpApplicationResponseSchema,
  StreamApplicationReportsResponseSchema,
} from '../../../src/gen/marina/broker/v1/applications_pb.ts';
import { createGrpcClient, type GrpcClient } from '../../../src/kit/grpc-client.ts';
import { serviceDefinition } from '../../../src/kit/grpc-service.ts';
import { eventually } from '../../support/eventually.ts';
import { FaultProxy } from '../../support/fault-proxy.ts';

type Lookup = ServerUnaryCall<unknown, unknown>;
type Stream = ServerWritableStream<unknown, unknown>;
type Answer = (error: Partial<ServiceError> | null, message?: unknown) => void;

const bind = (server: Server) =>
  promisify(server.bindAsync.bind(server))('127.0.0.1:0', ServerCredentials.createInsecure());

describe('a call that is passed on to the back office', () => {
  const [backOffice, adapter] = [new Server(), new Server()];
  let onward: GrpcClient<typeof Applications>;
  let gateway: GrpcClient<typeof Applications>;
  let adapterAddress: string;
  /** The calls that a test has made, and how many of them are open, at the back office. */
  let calls = { seen: [] as (Lookup | Stream)[], open: 0 };
  let onLookup: (call: Lookup, answer: Answer) => void = () => {};
  let onStream: (call: Stream) => void = () => {};

  const note = (call: Lookup | Stream) => {
    const own = calls;
    own.seen.push(call);
    own.open += 1;
    call.on('cancelled', () => {
      own.open -= 1;
    });
  };

  before(async () => {
    const handlers = {
      lookUpApplication: (call: Lookup, answer: Answer) => {
        note(call);
        onLookup(call, answer);
      },
      streamApplicationReports: (call: Stream) => {
        note(call);
        onStream(call);
      },
    };
    backOffice.addService(serviceDefinition(Applications) as never, handlers as never);
    onward = createGrpcClient(Applications, `127.0.0.1:${await bind(backOffice)}`);
    const { definition, handlers: passing } = passThrough(Applications, () => onward.grpcClient);
    adapter.addService(definition as never, passing as never);
    adapterAddress = `127.0.0.1:${await bind(adapter)}`;
    gateway = createGrpcClient(Applications, adapterAddress);
  });
  after(() => {
    for (const client of [gateway, onward]) client.grpcClient.close();
    for (const server of [adapter, backOffice]) server.forceShutdown();
  });

  const begin = () => {
    [calls, onLookup, onStream] = [{ seen: [], open: 0 }, () => {}, () => {}];
  };
  /** Longer than a test waits until a call is over. */
  const soon = { timeoutMs: 200_000 };
  const reports = (lastNumber: bigint) => create(StreamApplicationReportsResponseSchema, { lastNumber });
  /** Reads a stream until it ends. */
  async function numbers(options: { signal?: AbortSignal; timeoutMs?: number } = soon): Promise<bigint[]> {
    const got: bigint[] = [];
    for await (const { lastNumber } of gateway.streamApplicationReports({ afterNumber: 4n }, options)) {
      got.push(lastNumber);
    }
    return got;
  }
  const isOver = () => eventually(() => assert.equal(calls.open, 0, 'the call is still open at the back office'));

  for (const messages of [0, 1, 3]) {
    it(`a stream is cancelled at the back office when the gateway cancels it after ${messages} messages`, async () => {
      begin();
      onStream = (call) => {
        for (let number = 1; number <= messages; number += 1) call.write(reports(BigInt(number)));
      };
      const stop = new AbortController();
      const got: bigint[] = [];
      const reading = (async () => {
        const stream = gateway.streamApplicationReports({}, { ...soon, signal: stop.signal });
        for await (const { lastNumber } of stream) got.push(lastNumber);
      })();
      await eventually(() => assert.deepEqual([calls.open, got.length], [1, messages]));
      stop.abort();
      await assert.rejects(reading, { code: status.CANCELLED });
      await isOver();
    });
  }

  it('a stream leaves nothing open at the back office, however often a gateway opens its stream again', async () => {
    begin();
    onStream = (call) => void call.write(reports(1n));
    for (let time = 0; time < 5; time += 1) {
      for await (const _ of gateway.streamApplicationReports({}, soon)) break;
    }
    assert.equal(calls.seen.length, 5);
    await isOver();
  });

  it('a call is cancelled at the back office when the connection of the gateway is lost', async () => {
    begin();
    const line = await FaultProxy.start(adapterAddress);
    const other = createGrpcClient(Applications, line.address);
    const read = async () => {
      for await (const _ of other.streamApplicationReports({}, soon));
    };
    const [reading, looking] = [read(), other.lookUpApplication({}, soon)];
    const lost = [assert.rejects(reading), assert.rejects(looking)];
    await eventually(() => assert.equal(calls.open, 2));
    line.reset();
    await isOver();
    await Promise.all(lost);
    other.close();
    await line.close();
  });

  it('a call is cancelled at the back office when the gateway cancels a call with one answer', async () => {
    begin();
    const stop = new AbortController();
    const looking = gateway.lookUpApplication({}, { ...soon, signal: stop.signal });
    await eventually(() => assert.equal(calls.open, 1));
    stop.abort();
    await assert.rejects(looking, { code: status.CANCELLED });
    await isOver();
  });

  it('a call has the deadline of the gateway at the back office, and a stream without one has none', async () => {
    begin();
    onLookup = (_, answer) => answer(null, create(LookUpApplicationResponseSchema, { found: true }));
    onStream = (call) => call.end();
    const before = Date.now();
    await gateway.lookUpApplication({}, { timeoutMs: 7_000 });
    await numbers({ timeoutMs: 8_000 });
    await numbers({});
    const [lookup = 0, stream = 0, without] = calls.seen.map((call) => Number(call.getDeadline()));
    const bound = Date.now();
    assert.ok(lookup >= before + 6_900 && lookup <= bound + 7_100, String(lookup - before));
    assert.ok(stream >= before + 7_900 && stream <= bound + 8_100, String(stream - before));
    assert.equal(without, Number.POSITIVE_INFINITY);
  });

  it('a call has the metadata of the gateway at the back office, and its message', async () => {
    begin();
    onLookup = (_, answer) => answer(null, create(LookUpApplicationResponseSchema, { found: true }));
    const metadata = new Metadata();
    metadata.set('x-partner', 'par_a');
    const { found } = await gateway.lookUpApplication({ clientApplicationId: 'app_a' }, { ...soon, metadata });
    const there = calls.seen.map((call) => [
      call.metadata.get('x-partner'),
      (call.request as { clientApplicationId: string }).clientApplicationId,
    ]);
    assert.deepEqual([found, there], [true, [[['par_a'], 'app_a']]]);
  });

  for (const code of [status.FAILED_PRECONDITION, status.RESOURCE_EXHAUSTED, status.UNAVAILABLE] as const) {
    it(`a call has the status of the back office, ${status[code]}, at once and after messages`, async () => {
      begin();
      const error = { code, details: 'its words' };
      onLookup = (_, answer) => answer(error);
      await assert.rejects(gateway.lookUpApplication({}, soon), error);
      onStream = (call) => void call.emit('error', error);
      await assert.rejects(numbers(), error);
      onStream = (call) => {
        call.write(reports(5n));
        call.emit('error', error);
      };
      await assert.rejects(numbers(), error);
    });
  }

  it('a stream brings every message of a long stream, in its order, also to a gateway that reads slowly', async () => {
    begin();
    const sent = Array.from({ length: 3_000 }, (_, at) => BigInt(at + 1));
    onStream = (call) => {
      for (const number of sent) call.write(reports(number));
      call.end();
    };
    assert.deepEqual(await numbers(), sent);
  });
});
