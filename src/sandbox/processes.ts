import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Advice } from './advice.ts';
import { describeExit, lastLines } from './exits.ts';
import { setAsideIfLarge } from './files.ts';
import { type KeptProcess, sharedKeeper } from './keeper.ts';
import type { RunSettings } from './settings.ts';

/** A process of ours that said it is ready, with the ports it said. */
export interface ReadyProcess<Port extends string> {
  process: KeptProcess;
  ports: Readonly<Record<Port, number>>;
}

const readyWithinMs = 60_000;
/** A log goes on over starts, until it is larger than this. */
const maxLogBytes = 64 * 1024 * 1024;
/** Where the processes begin; an absolute path, by which a left-behind one is known. */
export const gatewayEntry = fileURLToPath(new URL('../main.ts', import.meta.url));
export const simulatorEntry = fileURLToPath(new URL('../simulator/main.ts', import.meta.url));

export const receiverEntry = fileURLToPath(new URL('./receiver-process.ts', import.meta.url));

/** How a process is started. */
export interface Start<Port extends string> {
  readonly settings: RunSettings;
  readonly watch: Watch;
  /** The one that has ended: this one gets its ports, and goes on with its log. */
  readonly before: ReadyProcess<Port> | undefined;
}

/** Starts the receiver of webhooks, on the port given when it is free, with the certificate in a file. */
export async function startReceiver(identityFile: string, port: number, start: Start<'port'>) {
  const env = {
    MARINA_RECEIVER_PORT: String(start.before?.ports.port ?? port),
    MARINA_RECEIVER_IDENTITY_FILE: identityFile,
  };
  return startEntry({ name: 'receiver', entry: receiverEntry, env, ports: ['port'], ...start });
}

/** Starts the simulator. Of the variables that were set it gets its own only. */
export async function startSimulator(databaseUrl: string, start: Start<'port'>) {
  const { settings, before } = start;
  const env = {
    MARINA_LOG_LEVEL: 'info',
    MARINA_SIMULATOR_SEED: '1',
    ...ofSimulator(settings.given),
    MARINA_SIMULATOR_HOST: settings.hosts.simulator,
    MARINA_SIMULATOR_PORT: String(before?.ports.port ?? settings.ports.simulator),
    MARINA_SIMULATOR_DATABASE_URL: databaseUrl,
  };
  return startEntry({ name: 'simulator', entry: simulatorEntry, env, ports: ['port'], ...start });
}

export interface GatewayNeeds {
  databaseUrl: string;
  natsUrl: string;
  simulatorAddress: string;
  /** The settings for its key ring and its operators. */
  secrets: Readonly<Record<string, string>>;
  /** Whom it trusts to have made the certificates of receivers of webhooks. */
  authorityFile: string;
}

const gatewayPorts = ['restPort', 'grpcPort', 'adminPort', 'opsPort'] as const;
type GatewayPort = (typeof gatewayPorts)[number];

/** Starts the gateway. Variables that were set go through to it. */
export async function startGateway(needs: GatewayNeeds, start: Start<GatewayPort>) {
  const { settings, before } = start;
  const env = {
    MARINA_LOG_LEVEL: 'info',
    MARINA_BROKER_ADDRESS: needs.simulatorAddress,
    MARINA_SIMULATOR_ADDRESS: needs.simulatorAddress,
    // Nobody waits long for a sandbox to stop.
    MARINA_DRAIN_MS: '0',
    MARINA_SHUTDOWN_TIMEOUT_MS: '5000',
    MARINA_WEBHOOK_ALLOW_LOOPBACK: 'true',
    // The seed seals rows that an earlier version stored.
    MARINA_UNSEALED_ROWS: 'refused',
    MARINA_NATS_CONSUMERS: 'back-office',
    ...gatewayVariables(settings.given),
    MARINA_ENVIRONMENT: 'sandbox',
    MARINA_WEBHOOK_CA_FILE: needs.authorityFile,
    MARINA_DATABASE_URL: needs.databaseUrl,
    MARINA_NATS_URL: needs.natsUrl,
    ...needs.secrets,
    ...portVariables(settings.ports, before?.ports),
  };
  const given = settings.given;
  const stopTimeoutMs = Number(given.MARINA_DRAIN_MS ?? 0) + Number(given.MARINA_SHUTDOWN_TIMEOUT_MS ?? 5_000) + 5_000;
  return startEntry({ name: 'gateway', entry: gatewayEntry, env, ports: gatewayPorts, ...start, stopTimeoutMs });
}

/** The variables of a gateway's ports. After a crash it has those that it had, because everybody was told of them. */
export function portVariables(
  ports: RunSettings['ports'],
  before: Readonly<Record<GatewayPort, number>> | undefined,
): Readonly<Record<string, string>> {
  return {
    MARINA_REST_PORT: String(before?.restPort ?? ports.rest),
    MARINA_GRPC_PORT: String(before?.grpcPort ?? ports.grpc),
    MARINA_ADMIN_PORT: String(before?.adminPort ?? ports.admin),
    MARINA_OPS_PORT: String(before?.opsPort ?? ports.ops),
  };
}

/** Told of a process as soon as it runs. */
export type Watch = (process: KeptProcess) => void;

/** Describes the end of a process that nobody asked to end. */
export function describeDeath(kept: KeptProcess, exit: { code: number | null; signal: NodeJS.Signals | null }): Advice {
  const name = /^[A-Z]/.test(kept.name) ? kept.name : `The ${kept.name}`;
  return new Advice(
    `${name} ${describeExit(exit)}. The end of its log:\n${lastLines(kept.logPath)}`,
    `The whole log: ${kept.logPath}`,
  );
}

interface Entry<Port extends string> extends Start<Port> {
  readonly name: string;
  readonly entry: string;
  /** Variables of ours. */
  readonly env: Readonly<Record<string, string>>;
  readonly ports: readonly Port[];
  readonly stopTimeoutMs?: number;
}

async function startEntry<const Port extends string>({
  name,
  entry,
  env,
  ports,
  settings,
  watch,
  before,
  stopTimeoutMs = 10_000,
}: Entry<Port>): Promise<ReadyProcess<Port>> {
  const logPath = join(settings.dataDir, `${name}.log`);
  if (before === undefined) setAsideIfLarge(logPath, maxLogBytes);
  const kept = await sharedKeeper().start({
    name,
    command: process.execPath,
    args: ['--import', import.meta.resolve('tsx'), '--enable-source-maps', entry],
    env: { ...withoutOurs(process.env), ...env },
    logPath,
    appends: true,
    ipc: true,
    stopTimeoutMs,
  });
  watch(kept);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Advice(`The ${name} is not ready after a minute.`, `Its log: ${kept.logPath}`)),
      readyWithinMs,
    );
    kept.onMessage((message) => {
      const said = readPorts(message, ports);
      if (said === undefined) return;
      clearTimeout(timer);
      resolve({ process: kept, ports: said });
    });
    void kept.exited.then((exit) => {
      clearTimeout(timer);
      reject(describeDeath(kept, exit));
    });
  });
}

function readPorts<Port extends string>(message: unknown, names: readonly Port[]): Record<Port, number> | undefined {
  if (typeof message !== 'object' || message === null) return undefined;
  const said = message as Record<string, unknown>;
  if (said.type !== 'ready' || !names.every((name) => Number.isInteger(said[name]))) return undefined;
  return said as Record<Port, number>;
}

/** An environment without our variables: a process of ours is given its own. */
export function withoutOurs(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('MARINA_')));
}

/**
 * The variables that programs for partners read, as the guides export them. `MARINA_BASE_URL` too: a sandbox's links
 * lead to where it listens.
 */
const ofClients = /^MARINA_(KEY|GRPC|TLS|BASE_URL|ACCOUNT|WEBHOOK_PORT|WEBHOOK_SECRET)$/;

/** The variables that go through to the gateway: none that starts things, is the simulator's, or is read by programs for partners. */
export function gatewayVariables(given: Readonly<Record<string, string>>): Record<string, string> {
  const others =
    /^MARINA_(DATA_DIR|SERVERS|(DATABASE|TEST)_SERVER|ADMIN_ADDRESS|OPERATOR_TOKEN|OWNER_DATABASE_URL|SIMULATOR_(?!ADDRESS$).*)$/;
  return Object.fromEntries(Object.entries(given).filter(([name]) => !others.test(name) && !ofClients.test(name)));
}

function ofSimulator(given: Readonly<Record<string, string>>): Record<string, string> {
  const own = /^MARINA_(SIMULATOR_.*|LOG_LEVEL)$/;
  return Object.fromEntries(Object.entries(given).filter(([name]) => own.test(name)));
}
