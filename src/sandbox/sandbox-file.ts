import { readFileSync } from 'node:fs';
import { Advice } from './advice.ts';
import { writePrivately } from './files.ts';
import { isRunning } from './lock.ts';
import { sandboxFile } from './settings.ts';

/** One seeded partner. */
export interface SandboxPartner {
  id: string;
  name: string;
  key: string;
  accounts: string[];
  /** The first of its accounts. */
  account: string;
  /** The secret that its webhooks are signed with. */
  webhook_secret: string;
  /** Where its events are sent: the receiver of this sandbox. */
  receiver_url: string;
}

/** A sandbox's description for demos, tools and people. */
export interface Sandbox {
  rest_url: string;
  grpc_address: string;
  admin_address: string;
  ops_url: string;
  simulator_address: string;
  /**
   * Where a back office pulls events from its consumer `back-office`, with a login that may do nothing else; of a NATS that
   * is not the sandbox's own, its URL as it was given.
   */
  nats_url: string;
  /** Where events can be subscribed to in NATS, with a login that may only read them; absent: NATS is not the sandbox's own. */
  events_nats_url?: string;
  operator_token: string;
  /** The token of another operator, who approves what the first one proposes; empty: there is none. */
  second_operator_token: string;
  /** A token of each role below `admin`, by its role, and by its job (`on_call`, `releases`); empty: the operators are yours. */
  role_tokens: Readonly<Record<string, string>>;
  /** Which database server and version it runs on. */
  database: string;
  partners: SandboxPartner[];
  /** The processes that run now; without a gateway the sandbox is not ready, without any it is stopped. */
  pids: { run?: number; gateway?: number; simulator?: number; receiver?: number; mariadb?: number; nats?: number };
}

/** Writes the file: whole, and for its owner alone, since it holds keys. */
export function writeSandbox(dataDir: string, sandbox: Sandbox): void {
  writePrivately(sandboxFile(dataDir), `${JSON.stringify(sandbox, null, 2)}\n`);
}

/** Reads the file of an earlier start, as far as it can be used. */
export function readSandbox(dataDir: string): Sandbox | undefined {
  try {
    const sandbox = JSON.parse(readFileSync(sandboxFile(dataDir), 'utf8')) as Partial<Sandbox>;
    return Array.isArray(sandbox.partners) && typeof sandbox.pids === 'object' ? (sandbox as Sandbox) : undefined;
  } catch {
    return undefined;
  }
}

/** The sandbox that runs now. */
export function runningSandbox(dataDir: string): Sandbox {
  const sandbox = readSandbox(dataDir);
  if (sandbox?.pids.gateway === undefined || !isRunning(sandbox.pids.gateway)) {
    throw new Advice(`No sandbox is running in ${dataDir}.`, 'Start one in another terminal: make run');
  }
  return sandbox;
}
