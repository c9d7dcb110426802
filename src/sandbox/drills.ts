import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Metadata } from '@grpc/grpc-js';
import { createConnection } from 'mysql2/promise';
import { Diagnostics } from '../gen/marina/admin/v1/diagnostics_pb.ts';
import { Keys } from '../gen/marina/admin/v1/keys_pb.ts';
import { Scope } from '../gen/marina/options/v1/options_pb.ts';
import { Controls, StatementLie } from '../gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../kit/grpc-client.ts';
import { Advice } from './advice.ts';
import { isRunning } from './lock.ts';
import { downFolder, type PartName } from './parts.ts';
import { readSandbox, type Sandbox } from './sandbox-file.ts';

const timeoutMs = 15_000;
const compareWithinMs = 20_000;
const pollMs = 100;
/** How far the broker's clock is behind in a drill. */
const wrongByMs = -120_000;

/** A sandbox in which something goes wrong. */
export interface DrillIn {
  readonly sandbox: Sandbox;
  readonly dataDir: string;
}

/** A situation to practise. */
export interface Drill {
  readonly name: string;
  /** The first sign for an operator: an alert, or a partner's word. */
  readonly heard: string;
  /** The page to go through, below docs/operations. */
  readonly page: string;
  /** Makes the situation. Returns what else the operator is given. */
  readonly begin: (where: DrillIn) => Promise<string>;
  /** Ends it. It does no harm where the situation is not there. */
  readonly end: (where: DrillIn) => Promise<void>;
}

export const drills: readonly Drill[] = [
  partIsAway('database', 'mariadb', 'MarinaDatabaseUnreachable rings.', 'on-call.md#marinadatabaseunreachable'),
  {
    name: 'disk-full',
    heard: 'MarinaDatabaseDiskFull rings: the database refuses what it is given to write.',
    page: 'disk-full.md',
    begin: async (where) => {
      await inDatabase(where, async (run, tables) => {
        for (const table of tables) {
          await run(
            `CREATE OR REPLACE TRIGGER ${triggerOf(table)} BEFORE INSERT ON ${table} FOR EACH ROW
              SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1021, MESSAGE_TEXT = 'Disk full (a drill)'`,
          );
        }
      });
      return 'In a drill the server only says so: `df` shows room.';
    },
    end: async (where) => {
      if (where.sandbox.pids.mariadb === undefined) return;
      await inDatabase(where, async (run, tables) => {
        for (const table of tables) await run(`DROP TRIGGER IF EXISTS ${triggerOf(table)}`);
      });
    },
  },
  {
    name: 'wrong-clock',
    heard: 'MarinaBrokerClockApart rings.',
    page: 'wrong-clock.md',
    begin: async ({ sandbox }) => {
      await withControls(sandbox, (controls) => controls.setClockError({ errorMs: BigInt(wrongByMs) }, { timeoutMs }));
      return "The simulated broker's clock is two minutes behind.";
    },
    end: ({ sandbox }) => withControls(sandbox, (controls) => controls.setClockError({}, { timeoutMs })),
  },
  partIsAway('nats', 'nats', 'MarinaNatsUnreachable rings.', 'on-call.md#marinanatsunreachable'),
  partIsAway('broker', 'simulator', 'MarinaBrokerUnreachable rings, and partners call.', 'broker-away.md'),
  {
    name: 'broker-statement',
    heard: 'MarinaBrokerDisagrees rings.',
    page: 'reconciliation.md',
    begin: async ({ sandbox }) => {
      const order = await placeFilled(sandbox);
      await lieAndCompare(sandbox, order);
      return `The broker's statement of today says that order ${order} was filled otherwise.`;
    },
    end: async ({ sandbox }) => {
      await withControls(sandbox, (controls) => controls.clearDirectives({}, { timeoutMs }));
      if (await hasBreaks(sandbox)) await lieAndCompare(sandbox);
    },
  },
  partIsAway('gateway', 'gateway', 'MarinaDown rings.', 'on-call.md#marinadown'),
  receiverIsAway(),
  {
    name: 'leaked-key',
    heard: 'A partner writes: "One of our keys stands in a public repository. What did it do?"',
    page: 'leaked-key.md',
    begin: async ({ sandbox }) => {
      const [partner] = sandbox.partners;
      if (partner === undefined) throw new Advice('The sandbox has no partner.', 'Start a new one: make clean run');
      const { key, secret } = await withKeys(sandbox, (keys, metadata) =>
        keys.createKey(
          { partnerId: partner.id, scopes: [Scope.READ, Scope.TRADE, Scope.KEYS], reason: 'a drill' },
          { timeoutMs, metadata },
        ),
      );
      await place(sandbox, secret, { symbol: 'SIM-REST' });
      return `leaked=${secret}   # key ${key?.id}`;
    },
    end: async () => undefined,
  },
  {
    name: 'complaint',
    heard: 'A partner asks: "Why was our order rejected? Were we charged? We got no event."',
    page: 'complaints.md',
    begin: async ({ sandbox }) => {
      const reference = `drill ${Date.now()}`;
      await place(sandbox, sandbox.partners[0]?.key ?? '', { symbol: 'SIM-KILLED', client_reference: reference });
      return `reference='${reference}'`;
    },
    end: async () => undefined,
  },
];

/** The partners' endpoint answers nothing, and an event waits for it. */
function receiverIsAway(): Drill {
  const heard = 'MarinaWebhookFails rings, after a quarter of an hour in which events wait.';
  const drill = partIsAway('webhooks', 'receiver', heard, 'on-call.md#marinawebhookfails');
  return {
    ...drill,
    begin: async (where) => {
      const begun = await drill.begin(where);
      const order = await place(where.sandbox, where.sandbox.partners[0]?.key ?? '', { symbol: 'SIM-FILL' });
      return `${begun} The events of order ${order} wait.`;
    },
  };
}

/** A part ends, and is kept from coming back. */
function partIsAway(name: string, part: PartName, heard: string, page: string): Drill {
  const file = ({ dataDir }: DrillIn) => join(downFolder(dataDir), part);
  return {
    name,
    heard,
    page,
    begin: async (where) => {
      const pid = readSandbox(where.dataDir)?.pids[part] ?? 0;
      if (!isRunning(pid)) throw new Advice(`The sandbox runs no ${part} of its own.`, 'Choose another drill.');
      writeFileSync(file(where), '');
      process.kill(pid, 'SIGKILL');
      return 'It is kept from coming back until the drill ends.';
    },
    end: async (where) => rmSync(file(where), { force: true }),
  };
}

function triggerOf(table: string): string {
  return `drill_${table}`;
}

/** Runs statements in the gateway's database, as the administrator of the sandbox's own server. */
async function inDatabase(
  { sandbox, dataDir }: DrillIn,
  work: (run: (sql: string) => Promise<unknown>, tables: string[]) => Promise<void>,
): Promise<void> {
  if (sandbox.pids.mariadb === undefined) {
    throw new Advice(
      'The sandbox uses a database of yours.',
      'Choose another drill, or start without MARINA_DATABASE_URL.',
    );
  }
  const environment = readFileSync(`/proc/${readSandbox(dataDir)?.pids.gateway}/environ`, 'utf8').split('\0');
  const setting = environment.find((each) => each.startsWith('MARINA_DATABASE_URL='));
  const { hostname, port, pathname } = new URL(setting?.slice('MARINA_DATABASE_URL='.length) ?? '');
  const folder = sandbox.database.startsWith('MySQL') ? 'mysql' : 'mariadb';
  const password = readFileSync(join(dataDir, folder, 'root-password'), 'utf8').trim();
  const connection = await createConnection({
    ...{ host: hostname, port: Number(port), user: 'root', password, database: pathname.slice(1) },
    connectTimeout: timeoutMs,
  });
  try {
    const [rows] = await connection.query("SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'");
    await work(
      (sql) => connection.query(sql),
      (rows as Record<string, string>[]).map((row) => Object.values(row)[0] ?? ''),
    );
  } finally {
    await connection.end();
  }
}

async function withControls<T>(
  { simulator_address: address }: Sandbox,
  work: (controls: ReturnType<typeof createGrpcClient<typeof Controls>>) => Promise<T>,
): Promise<void> {
  const controls = createGrpcClient(Controls, address);
  try {
    await work(controls);
  } finally {
    controls.close();
  }
}

async function withKeys<T>(
  sandbox: Sandbox,
  work: (keys: ReturnType<typeof createGrpcClient<typeof Keys>>, metadata: Metadata) => Promise<T>,
): Promise<T> {
  const keys = createGrpcClient(Keys, sandbox.admin_address);
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${sandbox.operator_token}`);
  try {
    return await work(keys, metadata);
  } finally {
    keys.close();
  }
}

/** Places an order, and waits until it has traded. */
async function placeFilled(sandbox: Sandbox): Promise<string> {
  const key = sandbox.partners[0]?.key ?? '';
  const id = await place(sandbox, key, { symbol: 'SIM-FILL' });
  for (const deadline = performance.now() + timeoutMs; performance.now() < deadline; await sleep(pollMs)) {
    const answer = await fetch(`${sandbox.rest_url}/v1/orders/${id}`, {
      headers: { authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (((await answer.json()) as { state?: string }).state === 'filled') return id;
  }
  throw new Error(`the order ${id} did not trade in time`);
}

/**
 * Compares today with the broker's statement, which says that the day is complete, and with an order that it was filled otherwise.
 */
async function lieAndCompare(sandbox: Sandbox, clientId?: string): Promise<void> {
  await withControls(sandbox, async (controls) => {
    const { today: day } = await controls.getDay({}, { timeoutMs });
    await controls.lieInStatements({ lie: StatementLie.COMPLETE, day }, { timeoutMs });
    if (clientId !== undefined) {
      await controls.lieInStatements({ lie: StatementLie.ORDER_FILLED, day, clientId }, { timeoutMs });
    }
    await withDiagnostics(sandbox, (diagnostics, metadata) =>
      diagnostics.reconcileDay({ day, reason: 'a drill' }, { timeoutMs: compareWithinMs, metadata }),
    );
    if (clientId === undefined) await controls.clearDirectives({}, { timeoutMs });
  });
}

async function hasBreaks(sandbox: Sandbox): Promise<boolean> {
  const { breaks } = await withDiagnostics(sandbox, (diagnostics, metadata) =>
    diagnostics.listReconciliationBreaks({ openOnly: true, limit: 1 }, { timeoutMs, metadata }),
  );
  return breaks.length > 0;
}

async function withDiagnostics<T>(
  sandbox: Sandbox,
  work: (diagnostics: ReturnType<typeof createGrpcClient<typeof Diagnostics>>, metadata: Metadata) => Promise<T>,
): Promise<T> {
  const diagnostics = createGrpcClient(Diagnostics, sandbox.admin_address);
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${sandbox.operator_token}`);
  try {
    return await work(diagnostics, metadata);
  } finally {
    diagnostics.close();
  }
}

/** Answers with the order's id. */
async function place(sandbox: Sandbox, key: string, fields: object): Promise<string> {
  const order = { account: sandbox.partners[0]?.account, side: 'buy', quantity: 10, type: 'market', ...fields };
  const answer = await fetch(`${sandbox.rest_url}/v1/orders`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'idempotency-key': `drill ${Date.now()}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(order),
    signal: AbortSignal.timeout(timeoutMs),
  });
  const text = await answer.text();
  // An exchange that rejects the order at once is what some drills want.
  if (answer.status >= 500) throw new Error(`an order was answered with ${answer.status}: ${text}`);
  return (JSON.parse(text) as { id?: string }).id ?? '';
}
