/** The command `broker-check`, with an adapter that only says what it can, or with none. */
import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { Server, ServerCredentials, type UntypedServiceImplementation } from '@grpc/grpc-js';
import { checks } from '../../src/broker-check/checks.ts';
import { brokerCheckCommand } from '../../src/broker-check/command.ts';
import type { Result } from '../../src/broker-check/run.ts';
import { usage } from '../../src/broker-check/settings.ts';
import { GetCapabilitiesResponseSchema, Orders } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { serviceDefinition } from '../../src/kit/grpc-service.ts';

/** Nothing listens there. */
const nowhere = '127.0.0.1:1';

/** Runs the command, and returns its exit code and what it printed. */
async function run({ mock }: TestContext, ...args: readonly string[]) {
  const printed: string[] = [];
  const errors: string[] = [];
  mock.method(console, 'log', (text: string) => void printed.push(text));
  mock.method(console, 'error', (text: string) => void errors.push(text));
  const code = await brokerCheckCommand(args);
  mock.restoreAll();
  return { code, printed, errors };
}

const resultsOf = (printed: readonly string[]) =>
  (JSON.parse(printed.join('\n')) as { results: readonly Result[] }).results;

describe('the command broker-check', () => {
  it('the command broker-check explains itself and lists every check, without an adapter', async (context) => {
    assert.deepEqual(await run(context, '--help'), { code: 0, printed: [usage], errors: [] });
    const { code, printed } = await run(context, '--list');
    assert.equal(code, 0);
    const lines = printed.join('\n').split('\n');
    assert.deepEqual(
      lines.map((line) => line.split(/ +/)[1]),
      checks.map(({ id }) => id),
    );
  });

  it('the command broker-check ends with 2, and says why and how it is used, if it is wrong or names no check', async (context) => {
    for (const [args, why] of [
      [[], /HOST:PORT is missing/],
      [[nowhere, '--quantity', '0'], /--quantity/],
      [[nowhere, '--only', 'no-such-check'], /there is no check no-such-check/],
      [[nowhere, '--only', 'capabilities-answered,no-such-check'], /there is no check no-such-check/],
    ] as const) {
      const { code, printed, errors } = await run(context, ...args);
      assert.equal(code, 2);
      assert.deepEqual(printed, []);
      assert.match(errors.join('\n'), why);
      assert.ok(errors.join('\n').endsWith(usage));
    }
  });

  it('the command broker-check tells the first check of an adapter that is not there as failed, and no other', async (context) => {
    const only = 'capabilities-answered,honours-not-after,orders-taken';
    const plain = await run(context, nowhere, '--only', only);
    assert.equal(plain.code, 1);
    assert.deepEqual(
      plain.printed.slice(0, -1).map((line) => line.split(/ {2,}/)[0]),
      ['FAILED', 'NOT RUN', 'NOT RUN'],
    );
    assert.match(plain.printed.at(-1) ?? '', /^\n +passed +failed +not run +not offered\nmust +0 +1 +1 +0\n/);

    const json = await run(context, nowhere, '--json', '--only', only);
    assert.equal(json.code, 1);
    assert.equal(json.printed.length, 1, 'nothing else is printed');
    assert.deepEqual(
      resultsOf(json.printed).map(({ id, verdict }) => [id, verdict]),
      [
        ['capabilities-answered', 'failed'],
        ['honours-not-after', 'not run'],
        ['orders-taken', 'not run'],
      ],
    );
    assert.equal((await run(context, nowhere, '--only', 'orders-taken')).code, 4);
  });
});

describe('a hook of broker-check', () => {
  const server = new Server();
  let address = '';

  before(async () => {
    server.addService(serviceDefinition(Orders), {
      getCapabilities: (_: unknown, answer: (error: null, message: unknown) => void) =>
        answer(null, create(GetCapabilitiesResponseSchema)),
    } as unknown as UntypedServiceImplementation);
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    });
    address = `127.0.0.1:${port}`;
  });

  after(() => server.forceShutdown());

  it('a hook of broker-check is a command that must end well, and in its time', async (context) => {
    for (const [command, code, verdict, reason] of [
      ['true', 0, 'passed', undefined],
      ['exit 3', 4, 'not run', 'the hook ended with 3: exit 3'],
      ['kill -TERM $$', 4, 'not run', 'the hook ended with SIGTERM: kill -TERM $$'],
      ['exec sleep 60', 4, 'not run', 'the hook ended with SIGKILL: exec sleep 60'],
    ] as const) {
      const bound = command.includes('sleep') ? '50' : '10000';
      const args = ['--restart-command', command, '--hook-ms', bound, '--only', 'restart-comes-back', '--json'];
      const ended = await run(context, address, ...args);
      const [result] = resultsOf(ended.printed);
      assert.deepEqual([ended.code, result?.verdict, result?.reason], [code, verdict, reason], command);
    }
  });
});
