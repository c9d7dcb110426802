import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Advice } from './advice.ts';

/** The ports of a sandbox, and the variable that sets each. */
export const portVariables = {
  rest: 'MARINA_REST_PORT',
  grpc: 'MARINA_GRPC_PORT',
  admin: 'MARINA_ADMIN_PORT',
  ops: 'MARINA_OPS_PORT',
  simulator: 'MARINA_SIMULATOR_PORT',
} as const;

export type PortName = keyof typeof portVariables;

const defaultPorts: Readonly<Record<PortName, number>> = {
  rest: 8080,
  grpc: 50051,
  admin: 50052,
  ops: 9464,
  simulator: 50060,
};

/** The settings of `make run`, from the environment. */
export interface RunSettings {
  /** Where everything of this sandbox is kept. */
  dataDir: string;
  /** The address each port is opened on. */
  hosts: Readonly<Record<PortName, string>>;
  ports: Readonly<Record<PortName, number>>;
  /** A database to use instead of a private one, and who may make its tables. */
  databaseUrl: string | undefined;
  ownerDatabaseUrl: string | undefined;
  simulatorDatabaseUrl: string | undefined;
  /** A NATS to use instead of a private one. */
  natsUrl: string | undefined;
  /** Files of authorities that other receivers of webhooks have certificates from, in addition to the sandbox's own receiver. */
  authorityFiles: readonly string[];
  /** All MARINA_ variables that were set, for the processes they are meant for. */
  given: Readonly<Record<string, string>>;
}

/** Reads the settings. An empty variable counts as not set. */
export function readSettings(environment: NodeJS.ProcessEnv): RunSettings {
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (name.startsWith('MARINA_') && value) given[name] = value;
  }
  refuseTls(given);
  const ports = { ...defaultPorts };
  for (const name of Object.keys(portVariables) as PortName[]) {
    ports[name] = readPort(portVariables[name], given) ?? defaultPorts[name];
  }
  return {
    dataDir: dataFolder(environment),
    hosts: readHosts(given),
    ports,
    databaseUrl: given.MARINA_DATABASE_URL,
    ownerDatabaseUrl: given.MARINA_OWNER_DATABASE_URL,
    simulatorDatabaseUrl: given.MARINA_SIMULATOR_DATABASE_URL,
    natsUrl: given.MARINA_NATS_URL,
    authorityFiles: authorityFiles(environment),
    given,
  };
}

/** The start of a sandbox, and all it shows to be pasted, calls the gateway's ports without TLS. */
function refuseTls(given: Readonly<Record<string, string>>): void {
  const name = Object.keys(given).find((variable) => /^MARINA_((ADMIN|OPS|SIMULATOR)_)?TLS_/.test(variable));
  if (name === undefined) return;
  throw new Advice(
    `${name} is set, and a sandbox of make run speaks no TLS: it is for this machine alone.`,
    'Leave it out, or start a gateway as docs/operations/deploy.md says.',
  );
}

/** Node's own variable counts too, and one that names no file is left to Node, which warns of it. */
function authorityFiles({ MARINA_WEBHOOK_CA_FILE: given, NODE_EXTRA_CA_CERTS: extra }: NodeJS.ProcessEnv): string[] {
  return [...(given ? [given] : []), ...(extra && existsSync(extra) ? [extra] : [])];
}

/** The folder a sandbox keeps everything in. */
export function dataFolder(environment: NodeJS.ProcessEnv): string {
  return resolve(environment.MARINA_DATA_DIR || '.local');
}

/** The file that tells where a running sandbox is and how to talk to it. */
export function sandboxFile(dataDir: string): string {
  return join(dataDir, 'sandbox.json');
}

/** The log file of a part of a sandbox. The receiver of webhooks: a line for each event it verified. */
export function logFile(dataDir: string, part: 'gateway' | 'simulator' | 'receiver'): string {
  return join(dataDir, `${part}.log`);
}

/** As the gateway reads them: partners' ports by one variable, the others by one each. The simulator is local. */
function readHosts(given: Readonly<Record<string, string>>): Record<PortName, string> {
  const local = '127.0.0.1';
  const partners = given.MARINA_HOST ?? local;
  const admin = given.MARINA_ADMIN_HOST ?? local;
  return { rest: partners, grpc: partners, admin, ops: given.MARINA_OPS_HOST ?? local, simulator: local };
}

function readPort(variable: string, given: Readonly<Record<string, string>>): number | undefined {
  const text = given[variable];
  if (text === undefined) return undefined;
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new Advice(`${variable} is ${text}, which is no port.`, 'Use a number from 0 to 65535; 0 takes a free port.');
}
