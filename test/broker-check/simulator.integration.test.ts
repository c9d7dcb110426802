import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, describe, it } from 'node:test';
import { checks } from '../../src/broker-check/checks.ts';
import { type Result, runChecks } from '../../src/broker-check/run.ts';
import { exitCodes } from '../../src/broker-check/settings.ts';
import { Submissions } from '../../src/gen/marina/broker/v1/submissions_pb.ts';
import { Call, WireFault } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../../src/kit/grpc-client.ts';
import { gatewayEntry } from '../../src/sandbox/processes.ts';
import { account, newOrder, soon, startTestSimulator } from '../simulator/fixture.ts';
import { prepareAccount, simulatorSettings } from '../support/broker-check.ts';
import { running } from '../support/cluster.ts';

const simulator = await startTestSimulator();
const submissions = createGrpcClient(Submissions, `127.0.0.1:${simulator.port}`);
after(() => submissions.close());

/** The results that are not of one verdict, with their reasons. */
function others(results: readonly Result[], verdict: Result['verdict']) {
  return results
    .filter((result) => result.verdict !== verdict)
    .map(({ id, verdict, reason, exchanges }) => [id, verdict, reason, ...exchanges]);
}

describe('the check of adapters', () => {
  it('finds that the simulator keeps every promise', async () => {
    const cutCalls = [Call.SUBMIT_ORDER, Call.CANCEL_ORDER];
    const hooks = {
      restart: async () => {
        await simulator.restart();
      },
      // To its callers, a simulator that takes nothing looks like an adapter without its exchange.
      cut: async () => {
        for (const call of cutCalls) {
          await simulator.controls.injectFault({ call, times: 1_000, fault: WireFault.UNAVAILABLE_BEFORE }, soon);
        }
      },
      mend: async () => {
        await simulator.controls.clearDirectives({}, soon);
      },
    };
    await prepareAccount(simulator.controls, account);
    // A broker has reports of orders from before. Each stream has numbers of its own.
    for (let count = 0; count < 50; count += 1) await simulator.orders.submitOrder(newOrder(), soon);
    const results = await runChecks(checks, simulatorSettings(simulator.port, account, { hooks }));
    assert.deepEqual(others(results, 'passed'), []);
  });
});

describe('the command broker-check', () => {
  const address = `127.0.0.1:${simulator.port}`;

  /** Runs it as its users do. Returns its exit code and what it printed. */
  function command(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    return new Promise((resolve) => {
      const child = execFile(
        process.execPath,
        [...running(gatewayEntry), 'broker-check', ...args],
        (_, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
      );
    });
  }

  it('ends with 0 when all that it was asked for passed, and prints JSON', async () => {
    const { code, stdout } = await command(
      ...[address, '--account', account, '--rest', 'SIM-REST', '--only', 'once,look-up-current', '--json'],
    );
    const { counts, results } = JSON.parse(stdout) as { counts: object; results: Result[] };
    const passed = { passed: 2, failed: 0, 'not run': 0, 'not offered': 0 };
    assert.deepEqual((counts as { must: object }).must, passed);
    assert.deepEqual(
      results.map(({ id, verdict }) => [id, verdict]),
      [
        ['once', 'passed'],
        ['look-up-current', 'passed'],
      ],
    );
    assert.equal(code, exitCodes.passed);
  });

  it('trades nothing that was not named, and says what it could not run', async () => {
    const before = (await submissions.listSubmissions({ limit: 1_000 }, soon)).submissions.length;
    const { code, stdout } = await command(
      address,
      '--only',
      'capabilities-answered,once,allocation-once,application-once',
    );
    assert.match(stdout, /^NOT RUN +must +once /m);
    assert.match(stdout, /--account is not given/);
    assert.equal(code, exitCodes.notRun);
    assert.equal((await submissions.listSubmissions({ limit: 1_000 }, soon)).submissions.length, before);
  });

  it('runs the hooks as commands, and reports one that fails', async () => {
    const { code, stdout } = await command(
      ...[address, '--account', account, '--rest', 'SIM-REST', '--only', 'restart-comes-back'],
      ...['--restart-command', 'exit 3'],
    );
    assert.match(stdout, /the hook ended with 3: exit 3/);
    assert.equal(code, exitCodes.notRun);
    const slow = await command(
      ...[address, '--account', account, '--rest', 'SIM-REST', '--only', 'restart-comes-back'],
      ...['--restart-command', 'sleep 30', '--hook-ms', '100'],
    );
    assert.match(slow.stdout, /the hook ended with SIGKILL: sleep 30/);
  });

  it('ends with 1 when the adapter cannot be reached', async () => {
    const { code, stdout } = await command('127.0.0.1:1');
    assert.match(stdout, /^FAILED +must +capabilities-answered /m);
    assert.match(stdout, /the adapter cannot be reached/);
    assert.equal(code, exitCodes.mustFailed);
  });

  it('ends with 2 and explains itself after a wrong command', async () => {
    const { code, stderr } = await command(address, '--only', 'no-such-check');
    assert.match(stderr, /there is no check no-such-check\n\nusage: /);
    assert.equal(code, exitCodes.wrongCommand);
  });
});
