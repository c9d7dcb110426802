import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { CheckClass } from '../../src/broker-check/check.ts';
import { decimalSum, isSum } from '../../src/broker-check/checks/decimals.ts';
import { checks } from '../../src/broker-check/checks.ts';
import { exitCodeOf, resultLines } from '../../src/broker-check/output.ts';
import type { Result, Verdict } from '../../src/broker-check/run.ts';
import { exitCodes, readCommandLine, UsageError, usage } from '../../src/broker-check/settings.ts';
import { brokerReference } from '../../src/tools/broker-reference.ts';
import { temporaryFolder } from '../support/folders.ts';

const read = (...args: string[]) => readCommandLine(args, (command) => async () => assert.fail(command));

describe('the command line of broker-check', () => {
  it('names accounts, symbols and amounts', () => {
    const { settings } = read(
      ...['localhost:50061', '--account', 'ACC1', '--rest', 'AAA', '--fill', 'BBB', '--quantity', '7'],
      ...['--allocate', '500', '--reject-allocation', '501', '--settle-ms', '900', '--only', 'once,fills-whole'],
    );
    const { address, account, rest, fill, reject, quantity, allocateKobo, rejectAllocationKobo, waits, only } =
      settings;
    assert.deepEqual([address, account, rest, fill, reject], ['localhost:50061', 'ACC1', 'AAA', 'BBB', undefined]);
    assert.deepEqual([quantity, allocateKobo, rejectAllocationKobo], [7n, 500n, 501n]);
    assert.deepEqual([waits.settleMs, waits.readMs, only], [900, 5_000, ['once', 'fills-whole']]);
  });

  it('each hook may take as long as is asked for, and a minute otherwise', () => {
    const made: [string, number][] = [];
    const hook = (command: string, boundMs: number) => {
      made.push([command, boundMs]);
      return async () => {};
    };
    const commands = ['--cut-command', 'cut', '--mend-command', 'mend', '--restart-command', 'restart'];
    const { hooks, waits } = readCommandLine(['a:1', ...commands, '--hook-ms', '120000'], hook).settings;
    const named = ['cut', 'mend', 'restart'].map((command) => [command, 120_000]);
    assert.deepEqual([made.toSorted(), waits.hookMs], [named, 120_000]);
    assert.ok(hooks.cut !== undefined && hooks.mend !== undefined && hooks.restart !== undefined);
    made.length = 0;
    readCommandLine(['a:1', '--restart-command', 'restart'], hook);
    assert.deepEqual(made, [['restart', 60_000]]);
  });

  it('reads the fields of applications from a file, by the names of the protocol', () => {
    const path = join(temporaryFolder(), 'application.json');
    writeFileSync(path, JSON.stringify({ first_name: 'Ada', email: 'check-{n}@example.com' }));
    assert.equal(read('a:1', '--application', path).settings.application?.email, 'check-{n}@example.com');
    writeFileSync(path, JSON.stringify({ name: 'Ada' }));
    assert.throws(() => read('a:1', '--application', path), UsageError);
  });

  for (const [what, args] of Object.entries({
    'no address': [],
    'no port': ['localhost'],
    'two addresses': ['a:1', 'b:2'],
    'an unknown option': ['a:1', '--frobnicate'],
    'a symbol without an account': ['a:1', '--rest', 'AAA'],
    'an amount without an account': ['a:1', '--allocate', '5'],
    'a cut without its end': ['a:1', '--cut-command', 'true'],
    'an amount of nothing': ['a:1', '--account', 'A', '--allocate', '0'],
    'a certificate without TLS': ['a:1', '--tls-ca-file', '/dev/null'],
    'a file that is not there': ['a:1', '--application', '/nowhere.json'],
  })) {
    it(`refuses ${what}`, () => assert.throws(() => read(...args), UsageError));
  }

  it('explains each exit code and option', () => {
    for (const code of Object.values(exitCodes)) assert.match(usage, new RegExp(`\\b${code}\\b`));
    assert.equal(read('--help').help, true);
    assert.equal(read('--list').list, true);
  });
});

describe('the result of broker-check', () => {
  const result = (ofClass: CheckClass, verdict: Verdict): Result => {
    return { id: 'an-id', class: ofClass, promise: 'A promise', verdict, exchanges: [], tookMs: 1 };
  };

  for (const [expected, results] of [
    [exitCodes.passed, [result('must', 'passed'), result('should', 'not offered'), result('optional', 'failed')]],
    [exitCodes.mustFailed, [result('must', 'failed'), result('should', 'failed'), result('must', 'not run')]],
    [exitCodes.shouldFailed, [result('must', 'passed'), result('should', 'failed'), result('must', 'not run')]],
    [exitCodes.notRun, [result('must', 'not run'), result('should', 'passed')]],
    [exitCodes.passed, [result('must', 'passed'), result('optional', 'not run')]],
  ] as const) {
    const said = results.map((each) => `${each.class} ${each.verdict}`).join(', ');
    it(`is ${expected} after: ${said}`, () => assert.equal(exitCodeOf(results), expected));
  }

  it('shows the calls that showed a breach', () => {
    const exchange = { call: 'Orders.SubmitOrder', request: { clientOrderId: 'x' }, status: 'UNKNOWN', tookMs: 3 };
    const lines = resultLines({ ...result('must', 'failed'), reason: 'it broke', exchanges: [exchange] });
    assert.match(lines, /FAILED +must +an-id +A promise/);
    assert.match(lines, /it broke/);
    assert.match(lines, /Orders\.SubmitOrder \{"clientOrderId":"x"\}/);
    assert.match(lines, /UNKNOWN after 3 ms/);
  });

  it('names every check once, for ever in the same form', () => {
    assert.equal(new Set(checks.map(({ id }) => id)).size, checks.length);
    for (const { id, promise } of checks) {
      assert.match(id, /^[a-z]+(-[a-z]+)*$/);
      assert.match(promise, /^[A-Za-z].*[^.]$/s, id);
    }
  });

  it('adds decimals without rounding', () => {
    assert.equal(decimalSum(['0.1', '0.2', '-0.000000000001']), '0.299999999999');
    assert.ok(isSum(['0.1', '0.2'], '0.3'));
    assert.ok(!isSum(['0.1', '0.2'], '0.300000000001'));
    assert.ok(isSum(['9007199254740993.0', '1.5'], '9007199254740994.50'));
  });
});

describe('the pages for those who write adapters', () => {
  const page = (name: string) => readFileSync(join(import.meta.dirname, '../../docs', name), 'utf8');

  it('has every call, field and check (`make generate` makes it again)', () => {
    assert.equal(page('BROKER-REFERENCE.md'), brokerReference());
  });

  it('names checks that there are', () => {
    const ids = new Set(checks.map(({ id }) => id));
    const lists = [...page('BROKER-ADAPTERS.md').matchAll(/\((`[a-z-]+`(?:,\s+`[a-z-]+`)*)\)/g)];
    const named = lists.flatMap(([, list = '']) => [...list.matchAll(/`([a-z-]+)`/g)].map(([, id = '']) => id));
    assert.ok(named.length > 40, String(named.length));
    assert.deepEqual(
      named.filter((id) => !ids.has(id)),
      [],
    );
  });
});
