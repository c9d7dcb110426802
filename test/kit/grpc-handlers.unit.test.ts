import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create, type DescMethod } from '@bufbuild/protobuf';
import type { ServiceError } from '@grpc/grpc-js';
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as Serving,
} from '../../src/gen/grpc/health/v1/health_pb.ts';
import { RpcError, statusOf, unaryCalls } from '../../src/kit/grpc-handlers.ts';

/** The unary calls of the health service, whose check is answered by `check`. */
function callsOf(check: (service: string, context: string) => Promise<{ status: Serving } | 'nothing'>) {
  const failed: string[] = [];
  const handlers = { check: ({ service }: { service: string }, context: string) => check(service, context) };
  const calls = unaryCalls<typeof Health, string, 'nothing'>(Health, handlers as never, {
    context: ({ metadata }) => String(metadata),
    answer: (method: DescMethod, given) => (given === 'nothing' ? undefined : create(method.output, given)),
    failed: (error, rpc) => {
      failed.push(rpc);
      return { code: 13, details: (error as Error).message };
    },
  });
  const make = async (service: string) => {
    const answers: [Partial<ServiceError> | null, unknown][] = [];
    const request = create(HealthCheckRequestSchema, { service });
    calls.check?.({ request, metadata: 'caller' } as never, (error, value) => void answers.push([error, value]));
    await new Promise(setImmediate);
    return answers;
  };
  return { calls, make, failed };
}

describe('a unary call', () => {
  it('a call is answered with the message that its handler makes of its request and its context', async () => {
    const seen: string[] = [];
    const { make } = callsOf(async (service, context) => {
      seen.push(`${service} ${context}`);
      return { status: Serving.SERVING };
    });
    const [[error, value] = []] = await make('orders');
    assert.deepEqual([error, (value as { status: Serving }).status], [null, Serving.SERVING]);
    assert.deepEqual(seen, ['orders caller']);
  });

  it('a call gets no answer if its handler gives none', async () => {
    assert.deepEqual(await callsOf(async () => 'nothing').make('orders'), []);
  });

  it('a call that its handler refuses gets that status, and any other error the status of a failure', async () => {
    for (const [error, status, asked] of [
      [new RpcError(5, 'there is none'), { code: 5, details: 'there is none' }, []],
      [new Error('broken'), { code: 13, details: 'broken' }, ['Check']],
    ] as const) {
      const { make, failed } = callsOf(() => Promise.reject(error));
      assert.deepEqual(await make('orders'), [[status, undefined]]);
      assert.deepEqual(failed, asked);
    }
  });

  it('streams and calls without a handler are left out', () => {
    assert.deepEqual(Object.keys(callsOf(async () => 'nothing').calls), ['check']);
  });

  it('only an error with a status has one', () => {
    assert.deepEqual(statusOf(new RpcError(3, 'wrong')), { code: 3, details: 'wrong' });
    assert.equal(statusOf(new Error('wrong')), undefined);
    assert.equal(statusOf(undefined), undefined);
  });
});
