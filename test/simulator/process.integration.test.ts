import assert from 'node:assert/strict';
import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { after, afterEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { ApplicationReportKind, DocumentType } from '../../src/gen/marina/broker/v1/applications_pb.ts';
import { AccountStatus, type Report, ReportKind, TimeInForce } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { WithdrawalDestination, WithdrawalReportKind } from '../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import type { BrokerApplication } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { startSimulator } from '../../src/simulator/simulator.ts';
import { eventually } from '../support/eventually.ts';
import { patient } from '../support/patience.ts';
import { createTestDatabase } from '../support/servers.ts';
import { account, type Clients, connect, exchangeOrder, newOrder, reportsOf, soon } from './fixture.ts';

const documentTypes = [
  DocumentType.PHOTO,
  DocumentType.GOVERNMENT_ID,
  DocumentType.UTILITY_BILL,
  DocumentType.SIGNATURE,
] as const;
const customer = {
  firstName: 'Ada',
  lastName: 'Obi',
  dateOfBirth: '1990-04-01',
  gender: 'female',
  email: 'ada@example.com',
  phone: '+2348010000000',
  address: 'Broad Street 1',
  city: 'Ikeja',
  state: 'LAGOS',
  stateOfOrigin: 'LAGOS',
  lgaOfOrigin: 'LAGOS-IKEJA',
  bvn: '22200000001',
  nextOfKinName: 'Emeka Obi',
  nextOfKinPhone: '+2348020000000',
  nextOfKinRelationship: 'brother',
};
const main = new URL('../../src/simulator/main.ts', import.meta.url);
const database = await createTestDatabase();
const children = new Set<ChildProcess>();
after(() => database.drop());

interface Run {
  readonly child: ChildProcess;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null; ms: number }>;
  readonly stderr: () => string;
}

/** Starts the simulator's process. */
function run(settings: Record<string, string> = {}): Run {
  const child = fork(main, {
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: {
      ...process.env,
      MARINA_SIMULATOR_DATABASE_URL: database.url,
      MARINA_SIMULATOR_PORT: '0',
      MARINA_SIMULATOR_FILL_DELAY_MS: '400',
      MARINA_SIMULATOR_FUNDS: 'unchecked',
      MARINA_LOG_LEVEL: 'warn',
      ...settings,
    },
  });
  children.add(child);
  let text = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const started = performance.now();
  const exited = once(child, 'exit').then(([code, signal]) => {
    children.delete(child);
    return { code: code as number | null, signal: signal as NodeJS.Signals | null, ms: performance.now() - started };
  });
  return { child, exited, stderr: () => text };
}

/** Waits until it serves. */
async function ready({ child, exited, stderr }: Run): Promise<Clients & { port: number }> {
  const message = once(child, 'message').then(([value]) => value as { type: string; port: number });
  const first = await Promise.race([message, exited.then(() => assert.fail(`It ended: ${stderr()}`))]);
  assert.equal(first.type, 'ready');
  const clients = { ...connect(first.port), port: first.port };
  await clients.controls.setAccount({ account, status: AccountStatus.ACTIVE }, soon);
  return clients;
}

/** Every application the broker has. */
async function everyApplication({ controls }: Clients): Promise<BrokerApplication[]> {
  const all: BrokerApplication[] = [];
  for (let more = true; more; ) {
    const afterSequence = all.at(-1)?.sequence ?? 0n;
    const { applications, hasMore } = await controls.listApplications({ afterSequence }, soon);
    all.push(...applications);
    more = hasMore;
  }
  return all;
}

/** Ends a process and says how long that took. */
async function stop({ child, exited }: Run, how: () => void): Promise<{ code: number | null; ms: number }> {
  const started = performance.now();
  how();
  const bound = setTimeout(() => child.kill('SIGKILL'), 10_000);
  const { code } = await exited;
  clearTimeout(bound);
  return { code, ms: performance.now() - started };
}

describe("the simulator's process", () => {
  // A test that fails leaves its process, which would keep the file from ending and its failure from being told.
  afterEach(() => {
    for (const child of children) child.kill('SIGKILL');
  });

  it('keeps everything it answered through its own SIGKILL, and goes on with what was open', async () => {
    const first = run();
    const before = await ready(first);
    const planned = newOrder({ symbol: 'SIM-PARTS' });
    await before.orders.submitOrder(planned, soon);
    const { instrument } = await before.orders.getTradingContext({ account, symbol: 'UBA' }, soon);
    const inBook = newOrder({ symbol: 'UBA', priceKobo: instrument?.lowerPriceKobo, timeInForce: TimeInForce.GTC });
    await before.orders.submitOrder(inBook, soon);
    const seen: Report[] = [];
    const streaming = (async () => {
      for await (const { reports } of before.orders.streamReports({})) seen.push(...reports);
    })().catch(() => undefined);
    const answered: string[] = [];
    const sent: string[] = [];
    let killed = false;
    const load = Array.from({ length: 32 }, async () => {
      while (!killed) {
        const order = newOrder({ symbol: sent.length % 2 === 0 ? 'SIM-PARTS' : 'SIM-FILL' });
        sent.push(order.clientOrderId);
        const { report } = await before.orders.submitOrder(order, soon);
        if (report !== undefined) answered.push(order.clientOrderId);
      }
    });
    await eventually(() => assert.equal(answered.length > 300, true));
    first.child.kill('SIGKILL');
    killed = true;
    await Promise.allSettled([...load, streaming, first.exited]);

    const second = run();
    const clients = await ready(second);
    for (const id of answered) {
      const reports = await reportsOf(clients, id);
      assert.equal(reports[0]?.kind, ReportKind.ACCEPTED, id);
    }
    await eventually(async () => {
      for (const id of [planned.clientOrderId, ...answered.slice(-10)]) {
        assert.equal((await exchangeOrder(clients, id))?.filledQuantity, 10n);
      }
    });
    assert.equal((await exchangeOrder(clients, inBook.clientOrderId))?.filledQuantity, 0n);
    await clients.controls.movePrice({ symbol: 'UBA', basisPoints: -2_000 }, soon);
    await eventually(async () => {
      assert.equal((await exchangeOrder(clients, inBook.clientOrderId))?.filledQuantity, 10n);
    });
    const all: Report[] = [];
    const { report: last } = await clients.orders.submitOrder(newOrder(), soon);
    for await (const { reports } of clients.orders.streamReports({})) {
      all.push(...reports);
      // Fills of earlier orders may follow it in the same message.
      if (all.some((report) => report.number === last?.number)) break;
    }
    assert.deepEqual(
      all.map((report) => Number(report.number)),
      all.map((_, index) => index + 1),
    );
    assert.ok(seen.length > 0);
    assert.deepEqual(all.slice(0, seen.length), seen);
    assert.equal((await stop(second, () => second.child.kill('SIGTERM'))).code, 0);
  });

  it('keeps every application, document and allocation it answered through its own SIGKILL', async () => {
    const first = run({ MARINA_SIMULATOR_FILL_DELAY_MS: '50' });
    const before = await ready(first);
    const answered = { applications: [] as string[], documents: [] as string[], allocations: [] as string[] };
    let killed = false;
    const load = Array.from({ length: 12 }, async (_, index) => {
      for (let count = 0; !killed; count += 1) {
        const id = `${index}_${count}`;
        await before.allocations.submitAllocation({ clientAllocationId: `alc_${id}`, account, amountKobo: 3n }, soon);
        answered.allocations.push(`alc_${id}`);
        const application = { clientApplicationId: `app_${id}`, fields: customer };
        await before.applications.submitApplication(application, soon);
        answered.applications.push(application.clientApplicationId);
        for (const type of documentTypes) {
          const content = Buffer.from(`${id} ${type}`);
          await before.applications.sendDocument({ ...application, type, contentType: 'image/png', content }, soon);
        }
        answered.documents.push(application.clientApplicationId);
      }
    });
    await eventually(() => assert.equal(answered.documents.length > 100, true));
    first.child.kill('SIGKILL');
    killed = true;
    await Promise.allSettled([...load, first.exited]);

    const second = run();
    const clients = await ready(second);
    const applications = await everyApplication(clients);
    const byId = new Map(applications.map((each) => [each.clientApplicationId, each]));
    for (const id of answered.applications) assert.ok(byId.has(id), id);
    for (const id of answered.documents) assert.equal(byId.get(id)?.documents.length, 4, id);
    for (const each of applications) for (const document of each.documents) assert.equal(document.timesReceived, 1);
    await eventually(async () => {
      const states = (await everyApplication(clients)).filter(({ documents }) => documents.length === 4);
      assert.deepEqual([...new Set(states.map(({ state }) => state))], [ApplicationReportKind.OPENED]);
    });
    const { allocations, hasMore } = await clients.controls.listAllocations({}, soon);
    const booked = new Set(allocations.map(({ record }) => record?.clientAllocationId));
    for (const id of answered.allocations) assert.ok(booked.has(id) || hasMore, id);
    const { accounts } = await clients.controls.listAccounts({}, soon);
    const listed = accounts.find((each) => each.account === account);
    if (!hasMore && listed !== undefined) assert.equal(listed.cashKobo, 3n * BigInt(allocations.length));
    const numbers: number[] = [];
    for await (const { reports, lastNumber } of clients.applications.streamApplicationReports({}, soon)) {
      numbers.push(...reports.map((report) => Number(report.number)));
      if (numbers.length > 0 && numbers.length >= Number(lastNumber) && reports.length === 0) break;
    }
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index + 1),
    );
    assert.equal((await stop(second, () => second.child.kill('SIGTERM'))).code, 0);
  });

  it('keeps every withdrawal it answered through its own SIGKILL, and pays what it had accepted', async () => {
    const first = run({ MARINA_SIMULATOR_FUNDS: 'checked' });
    const before = await ready(first);
    const owner = 'WITHDRAWS';
    await before.controls.setAccount({ account: owner, status: AccountStatus.ACTIVE }, soon);
    await before.controls.setCash({ account: owner, cashKobo: 1_000_000n }, soon);
    const answered = new Map<string, WithdrawalReportKind | undefined>();
    let killed = false;
    const load = Array.from({ length: 12 }, async (_, index) => {
      for (let count = 0; !killed; count += 1) {
        const destination = count % 2 === 0 ? WithdrawalDestination.WALLET : WithdrawalDestination.BANK_ACCOUNT;
        const withdrawal = { clientWithdrawalId: `wdr_${index}_${count}`, account: owner, amountKobo: 1n, destination };
        const { report } = await before.withdrawals.submitWithdrawal(withdrawal, soon);
        answered.set(withdrawal.clientWithdrawalId, report?.kind);
      }
    });
    await eventually(() => assert.equal(answered.size > 200, true));
    first.child.kill('SIGKILL');
    killed = true;
    await Promise.allSettled([...load, first.exited]);

    const second = run({ MARINA_SIMULATOR_FUNDS: 'checked' });
    const clients = await ready(second);
    const { PAID } = WithdrawalReportKind;
    for (const [clientWithdrawalId, kind] of answered) {
      const { reports } = await clients.withdrawals.lookUpWithdrawal({ clientWithdrawalId }, soon);
      assert.equal(reports[0]?.kind, kind, clientWithdrawalId);
    }
    const { withdrawals, hasMore } = await eventually(async () => {
      const listed = await clients.controls.listWithdrawals({}, soon);
      assert.deepEqual([...new Set(listed.withdrawals.map(({ state }) => state))], [PAID]);
      return listed;
    });
    const { accounts } = await clients.controls.listAccounts({}, soon);
    const left = accounts.find((each) => each.account === owner)?.cashKobo;
    assert.equal(hasMore, false);
    assert.equal(left, 1_000_000n - BigInt(withdrawals.length));
    const numbers: number[] = [];
    for await (const { reports, lastNumber } of clients.withdrawals.streamWithdrawalReports({}, soon)) {
      numbers.push(...reports.map((report) => Number(report.number)));
      if (numbers.length > 0 && numbers.length >= Number(lastNumber) && reports.length === 0) break;
    }
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index + 1),
    );
    assert.equal((await stop(second, () => second.child.kill('SIGTERM'))).code, 0);
  });

  it('answers only what it wrote when its database drops the connection under load, and goes on', async () => {
    const running = run();
    const clients = await ready(running);
    const admin = await createConnection(database.url);
    const outcomes = { answered: [] as string[], failed: [] as string[] };
    let over = false;
    const load = Array.from({ length: 16 }, async () => {
      while (!over) {
        const { clientOrderId, ...order } = newOrder({ symbol: 'SIM-FILL' });
        await clients.orders.submitOrder({ clientOrderId, ...order }, { timeoutMs: 10_000 }).then(
          () => outcomes.answered.push(clientOrderId),
          () => outcomes.failed.push(clientOrderId),
        );
      }
    });
    for (let dropped = 0; dropped < 5; dropped += 1) {
      const answered = outcomes.answered.length;
      await eventually(() => assert.equal(outcomes.answered.length > answered + 50, true));
      const [rows] = await admin.query<(RowDataPacket & { id: number })[]>(
        'SELECT id FROM information_schema.processlist WHERE db = ? AND id <> CONNECTION_ID()',
        [database.name],
      );
      for (const { id } of rows) await admin.query('KILL ?', [id]).catch(() => undefined);
    }
    over = true;
    await Promise.all(load);
    await admin.end();
    assert.equal((await clients.orders.submitOrder(newOrder(), soon)).report?.kind, ReportKind.ACCEPTED);
    for (const id of outcomes.answered) assert.equal((await reportsOf(clients, id)).length, 2, id);
    for (const id of outcomes.failed) assert.ok([0, 2].includes((await reportsOf(clients, id)).length), id);
    const numbers: number[] = [];
    const last = (await clients.orders.submitOrder(newOrder(), soon)).report?.number;
    for await (const { reports } of clients.orders.streamReports({})) {
      numbers.push(...reports.map((report) => Number(report.number)));
      if (numbers.includes(Number(last))) break;
    }
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index + 1),
    );
    assert.equal((await stop(running, () => running.child.kill('SIGTERM'))).code, 0);
  });

  it('stops in time on SIGTERM, on SIGINT and when its parent is gone, whatever hangs', async () => {
    for (const how of [
      (child: ChildProcess) => child.kill('SIGTERM'),
      (child: ChildProcess) => child.kill('SIGINT'),
      (child: ChildProcess) => child.disconnect(),
    ]) {
      const running = run();
      const { orders, controls } = await ready(running);
      const hung = ['SIM-HANG', 'SIM-LATE', 'SIM-LOST'].map((symbol) =>
        orders.submitOrder(newOrder({ symbol }), { timeoutMs: 60_000 }),
      );
      const streaming = (async () => {
        for await (const _ of orders.streamReports({}));
      })();
      const ended = Promise.allSettled([...hung, streaming]);
      await eventually(async () => {
        const { messages } = await controls.listMessages({}, soon);
        assert.equal(messages.length > 0, true);
      });
      const { code, ms } = await stop(running, () => how(running.child));
      assert.equal(code, 0, running.stderr());
      assert.ok(ms < patient(3_000), `It took ${ms} ms`);
      for (const result of await ended) assert.equal(result.status, 'rejected');
    }
  });

  it('says what is wrong and fails when a setting is bad or the port is taken', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    const cases = [
      [{ MARINA_SIMULATOR_PORT: String(port) }, /127\.0\.0\.1:\d+ is taken/],
      [{ MARINA_SIMULATOR_PORT: 'any' }, /MARINA_SIMULATOR_PORT must be a whole number/],
      [{ MARINA_SIMULATOR_DATABASE_URL: '' }, /MARINA_SIMULATOR_DATABASE_URL is not set/],
      [{ MARINA_SIMULATOR_DATABASE_URL: 'postgres://secret@x/y' }, /must be given as mysql:\/\//],
    ] as const;
    const runs = cases.map(([settings]) => run(settings));
    for (const [index, [, message]] of cases.entries()) {
      const each = runs[index];
      assert.ok(each);
      assert.equal((await each.exited).code, 1);
      assert.match(each.stderr(), message);
      assert.doesNotMatch(each.stderr(), /secret/);
    }
    taken.close();
  });
});

describe('a simulator in the process of a test', () => {
  it('makes its database when it is missing, and shares it with no other', async () => {
    const url = new URL(database.url);
    url.pathname = `${database.name}_made`;
    const config = { databaseUrl: url.href, port: 0 };
    const simulator = await startSimulator(config);
    try {
      await assert.rejects(startSimulator(config), /Another simulator uses the database/);
      const { orders } = connect(simulator.port);
      assert.equal((await orders.getCapabilities({}, soon)).honoursNotAfter, true);
    } finally {
      await simulator.close();
      await simulator.close();
    }
    const connection = await createConnection(database.url);
    await connection.query(`DROP DATABASE ${database.name}_made`);
    await connection.end();
  });

  it('tells by reflection what it serves, to clients that do not have the protos', async () => {
    const simulator = await startSimulator({ databaseUrl: database.url, port: 0 });
    try {
      const buf = fileURLToPath(new URL('../../node_modules/.bin/buf', import.meta.url));
      const curl = async (...args: string[]) =>
        (await promisify(execFile)(buf, ['curl', '--http2-prior-knowledge', '--protocol', 'grpc', ...args])).stdout;
      const base = `http://127.0.0.1:${simulator.port}`;
      assert.deepEqual((await curl('--list-services', base)).trim().split('\n'), [
        'marina.broker.v1.Accounts',
        'marina.broker.v1.Allocations',
        'marina.broker.v1.Applications',
        'marina.broker.v1.Orders',
        'marina.broker.v1.Reference',
        'marina.broker.v1.Statements',
        'marina.broker.v1.Submissions',
        'marina.broker.v1.Withdrawals',
        'marina.simulator.v1.Controls',
      ]);
      for (const version of ['grpc-v1', 'grpc-v1alpha']) {
        const path = `${base}/marina.broker.v1.Orders/GetCapabilities`;
        const answer = await curl('--reflect', '--reflect-protocol', version, path);
        const { honoursNotAfter, brokerTime } = JSON.parse(answer);
        assert.equal(honoursNotAfter, true);
        assert.ok(Math.abs(Date.parse(brokerTime) - Date.now()) < patient(60_000), brokerTime);
      }
    } finally {
      await simulator.close();
    }
  });
});
