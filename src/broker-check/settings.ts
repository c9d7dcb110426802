import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { fromJson, type JsonValue } from '@bufbuild/protobuf';
import { ApplicationFieldsSchema } from '../gen/marina/broker/v1/applications_pb.ts';
import type { LinkTls } from '../kit/link.ts';
import { readMaterial } from '../kit/tls-material.ts';

/** The adapter to check, and the data to check it with. */
export interface Settings {
  /** `host:port` of the adapter. */
  readonly address: string;
  /** Absent: plain text. */
  readonly tls?: LinkTls | undefined;
  /** The account of all orders. Absent: nothing is traded. */
  readonly account?: string | undefined;
  /** Symbols: where a buy at the day's lowest price stays open, where one at the highest is filled, where one is rejected. */
  readonly rest?: string | undefined;
  readonly fill?: string | undefined;
  readonly reject?: string | undefined;
  /** How many shares an order has. */
  readonly quantity: bigint;
  /** The kobo of each allocation to the account. Absent: none is made. */
  readonly allocateKobo?: bigint | undefined;
  /** An amount in kobo whose allocation to the account is rejected. */
  readonly rejectAllocationKobo?: bigint | undefined;
  /** The kobo of each withdrawal from the account. Absent: none is made. */
  readonly withdrawKobo?: bigint | undefined;
  /** An amount in kobo whose withdrawal from the account is rejected. */
  readonly rejectWithdrawalKobo?: bigint | undefined;
  /**
   * The fields of an application, by their names in `ApplicationFields`. Absent: none is made. `{n}` in a value becomes eight
   * digits that differ in every application.
   */
  readonly application?: Readonly<Record<string, string>> | undefined;
  readonly hooks: Hooks;
  /** Only these checks. Absent: all. */
  readonly only?: readonly string[] | undefined;
  readonly waits: Waits;
}

/** Actions of the adapter's owner on request. Each ends when it is done. */
export interface Hooks {
  /** Ends the adapter and starts it again on its record. */
  readonly restart?: (() => Promise<void>) | undefined;
  /** Cuts the adapter off from its exchange, or connects it again. */
  readonly cut?: (() => Promise<void>) | undefined;
  readonly mend?: (() => Promise<void>) | undefined;
}

/** Bounds, in milliseconds. */
export interface Waits {
  /** The longest submission or cancel, as `MARINA_SUBMIT_TIMEOUT_MS`. */
  readonly submitMs: number;
  /** The longest read, as `MARINA_READ_TIMEOUT_MS`. */
  readonly readMs: number;
  /** How long a report may take to come, or an order to be filled. */
  readonly settleMs: number;
  /** How long the adapter may be away at a restart, or a hook may run. */
  readonly hookMs: number;
  /** A stream that is silent for so long counts as dead. */
  readonly silenceMs: number;
  /** How far the two clocks may differ, as `MARINA_CLOCK_SKEW_MS`. */
  readonly skewMs: number;
  /** A healthy adapter needs longer for no call. */
  readonly slowMs: number;
  /** A quiet stream should have a message as often. */
  readonly quietMs: number;
}

export const usualWaits: Waits = {
  submitMs: 10_000,
  readMs: 5_000,
  settleMs: 10_000,
  hookMs: 60_000,
  silenceMs: 5_000,
  skewMs: 2_000,
  slowMs: 2_000,
  quietMs: 1_500,
};

/** The exit codes of the process. */
export const exitCodes = { passed: 0, mustFailed: 1, wrongCommand: 2, shouldFailed: 3, notRun: 4 } as const;

export const usage = `usage: node src/main.js broker-check HOST:PORT [options]

Checks a server of marina.broker.v1 over the wire, and says which promises it keeps. docs/BROKER-ADAPTERS.md explains each.
Orders and money are sent only for the account and the symbols named here. A check that needs what is not given is not run.

  --account CODE             the account of all orders, allocations, withdrawals and reads
  --rest SYMBOL              a buy at the day's lowest price stays open there
  --fill SYMBOL              a buy at the day's highest price is filled there
  --reject SYMBOL            an order is rejected there
  --quantity N               shares of each order (10)
  --allocate KOBO            allocate this amount to the account, some 30 times
  --reject-allocation KOBO   an amount whose allocation to the account is rejected
  --withdraw KOBO            withdraw this amount from the account, some 30 times
  --reject-withdrawal KOBO   an amount whose withdrawal from the account is rejected
  --application FILE         apply for accounts, some 30 times, with the fields of this JSON file, by their names in
                             ApplicationFields; {n} in a value becomes eight digits that differ each time
  --restart-command COMMAND  ends the adapter and starts it again; a crash (kill -9) shows most
  --cut-command COMMAND      cuts the adapter off from its exchange
  --mend-command COMMAND     connects it again
  --tls                      speak TLS
  --tls-ca-file FILE         the authorities that its certificate may be from
  --tls-cert-file FILE, --tls-key-file FILE   the certificate to show, and its key
  --tls-server-name NAME     the name in its certificate, if it is not the host
  --submit-timeout-ms N      the longest submission or cancel (${usualWaits.submitMs})
  --read-timeout-ms N        the longest read (${usualWaits.readMs})
  --settle-ms N              how long a report or a fill may take (${usualWaits.settleMs})
  --hook-ms N                how long a command may take, and the adapter to be well again after it (${usualWaits.hookMs})
  --clock-skew-ms N          how far the clocks may differ (${usualWaits.skewMs})
  --only ID,ID               only these checks
  --list                     list the checks and end
  --json                     print the result as JSON
  --help                     print this and end

Exit code: ${exitCodes.passed} if every must and should passed or is not offered; ${exitCodes.mustFailed} if a must failed; ${exitCodes.wrongCommand} for a wrong command; ${exitCodes.shouldFailed} if a
should failed and no must; ${exitCodes.notRun} if nothing failed, but a must or should was not run.`;

/** A command that was written wrongly. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The command line, read. */
export interface CommandLine {
  readonly help: boolean;
  readonly list: boolean;
  readonly json: boolean;
  readonly settings: Settings;
}

const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;

/** Reads the command line. Throws `UsageError`. `hook` makes a hook of a command and of how long it may take. */
export function readCommandLine(
  args: readonly string[],
  hook: (command: string, boundMs: number) => () => Promise<void>,
): CommandLine {
  const { positionals, values } = parse(args);
  const [address = '', ...more] = positionals;
  if (!values.list && !values.help && !/^.+:\d{1,5}$/.test(address)) throw new UsageError('HOST:PORT is missing');
  if (more.length > 0) throw new UsageError(`what is ${more.join(' ')}?`);
  for (const symbol of ['rest', 'fill', 'reject'] as const) {
    if (values[symbol] && !values.account) throw new UsageError(`--${symbol} needs --account`);
  }
  for (const amount of ['allocate', 'reject-allocation', 'withdraw', 'reject-withdrawal'] as const) {
    if (values[amount] && !values.account) throw new UsageError(`--${amount} needs --account`);
  }
  if (!values['cut-command'] !== !values['mend-command']) {
    throw new UsageError('--cut-command and --mend-command belong together');
  }
  const waits: Waits = {
    ...usualWaits,
    submitMs: time('submit-timeout-ms', values, usualWaits.submitMs),
    readMs: time('read-timeout-ms', values, usualWaits.readMs),
    settleMs: time('settle-ms', values, usualWaits.settleMs),
    hookMs: time('hook-ms', values, usualWaits.hookMs),
    skewMs: time('clock-skew-ms', values, usualWaits.skewMs),
  };
  const command = (given: string | undefined) => (given ? hook(given, waits.hookMs) : undefined);
  const settings: Settings = {
    address,
    tls: readTls(values),
    account: values.account || undefined,
    rest: values.rest || undefined,
    fill: values.fill || undefined,
    reject: values.reject || undefined,
    quantity: whole('quantity', values.quantity || '10'),
    allocateKobo: values.allocate ? whole('allocate', values.allocate) : undefined,
    rejectAllocationKobo: values['reject-allocation']
      ? whole('reject-allocation', values['reject-allocation'])
      : undefined,
    withdrawKobo: values.withdraw ? whole('withdraw', values.withdraw) : undefined,
    rejectWithdrawalKobo: values['reject-withdrawal']
      ? whole('reject-withdrawal', values['reject-withdrawal'])
      : undefined,
    application: values.application ? readFields(values.application) : undefined,
    hooks: {
      restart: command(values['restart-command']),
      cut: command(values['cut-command']),
      mend: command(values['mend-command']),
    },
    only: values.only ? values.only.split(',') : undefined,
    waits,
  };
  return { help: values.help, list: values.list, json: values.json, settings };
}

function parse(args: readonly string[]) {
  const options = {
    ...{ account: text, rest: text, fill: text, reject: text, quantity: text, allocate: text },
    ...{ 'reject-allocation': text, withdraw: text, 'reject-withdrawal': text, application: text },
    ...{ 'restart-command': text, 'cut-command': text, 'mend-command': text },
    ...{ tls: flag, 'tls-ca-file': text, 'tls-cert-file': text, 'tls-key-file': text, 'tls-server-name': text },
    ...{
      'submit-timeout-ms': text,
      'read-timeout-ms': text,
      'settle-ms': text,
      'hook-ms': text,
      'clock-skew-ms': text,
    },
    ...{ only: text, list: flag, json: flag, help: flag },
  } as const;
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function readTls(values: ReturnType<typeof parse>['values']): LinkTls | undefined {
  const files = {
    authorities: values['tls-ca-file'],
    certificate: values['tls-cert-file'],
    key: values['tls-key-file'],
  };
  const serverName = values['tls-server-name'] || undefined;
  if (!values.tls) {
    if (serverName ?? Object.values(files).find(Boolean)) throw new UsageError('--tls-… has no effect without --tls');
    return undefined;
  }
  if (!files.certificate !== !files.key) throw new UsageError('--tls-cert-file and --tls-key-file belong together');
  const contents = Object.fromEntries(
    Object.entries(files).map(([name, path]) => [name, path ? contentOf(path) : undefined]),
  );
  try {
    return { ...readMaterial(contents), serverName };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function readFields(path: string): Readonly<Record<string, string>> {
  try {
    const fields: unknown = JSON.parse(contentOf(path).toString('utf8'));
    // Throws for a name that is no field.
    fromJson(ApplicationFieldsSchema, fields as JsonValue);
    return fields as Record<string, string>;
  } catch (error) {
    throw new UsageError(`--application: ${(error as Error).message}`);
  }
}

function contentOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new UsageError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

function time(name: string, values: Readonly<Record<string, unknown>>, usual: number): number {
  const given = values[name];
  return given === undefined || given === '' ? usual : Number(whole(name, String(given)));
}

function whole(name: string, value: string): bigint {
  if (!/^[1-9]\d{0,9}$/.test(value)) throw new UsageError(`--${name} must be a whole number above 0`);
  return BigInt(value);
}
