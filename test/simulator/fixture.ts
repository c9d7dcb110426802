import assert from 'node:assert/strict';
import { after } from 'node:test';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { Allocations } from '../../src/gen/marina/broker/v1/allocations_pb.ts';
import { Applications } from '../../src/gen/marina/broker/v1/applications_pb.ts';
import {
  AccountStatus,
  Orders,
  OrderType,
  type Report,
  ReportKind,
  Side,
  TimeInForce,
} from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { WithdrawalDestination, Withdrawals } from '../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { Controls, type ExchangeOrder } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient, type GrpcClient } from '../../src/kit/grpc-client.ts';
import { type SimulatorConfig, startSimulator } from '../../src/simulator/simulator.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase } from '../support/servers.ts';

export const soon = { timeoutMs: 10_000 };
/** The deadline of a call that ends with a status: short if no answer comes, and otherwise enough for a busy machine. */
export const deadlineFor = (code: status) => (code === status.DEADLINE_EXCEEDED ? { timeoutMs: 300 } : soon);
export const account = 'ACC1';

/** The fields of an application that the broker takes. */
export const customer = {
  firstName: 'Canary-Ada',
  lastName: 'Canary-Obi',
  dateOfBirth: '1990-04-01',
  gender: 'female',
  email: 'canary@example.com',
  phone: '+2348010000000',
  address: 'Canary-Street 1',
  city: 'Ikeja',
  state: 'LAGOS',
  stateOfOrigin: 'AKWA-IBOM',
  lgaOfOrigin: 'AKWA-IBOM-UYO',
  bvn: '22200000001',
  nextOfKinName: 'Canary-Kin',
  nextOfKinPhone: '+2348020000000',
  nextOfKinRelationship: 'brother',
};

/** The clients by which a test calls a simulator. */
export interface Clients {
  readonly orders: GrpcClient<typeof Orders>;
  readonly applications: GrpcClient<typeof Applications>;
  readonly allocations: GrpcClient<typeof Allocations>;
  readonly withdrawals: GrpcClient<typeof Withdrawals>;
  readonly controls: GrpcClient<typeof Controls>;
}

/** A simulator on a database of its own, with an account that can trade; it ends with the test file. */
export async function startTestSimulator(fillDelayMs = { min: 1, max: 5 }, funds?: SimulatorConfig['funds']) {
  const database = await createTestDatabase();
  const start = async (port = 0) => {
    const simulator = await startSimulator({
      databaseUrl: database.url,
      port,
      seed: 1,
      defaultFillDelayMs: fillDelayMs,
      funds,
    });
    return { ...connect(simulator.port), port: simulator.port, close: () => simulator.close() };
  };
  let running = await start();
  after(async () => {
    await running.close();
    await database.drop();
  });
  await running.controls.setAccount({ account, status: AccountStatus.ACTIVE }, soon);
  return {
    ...running,
    databaseUrl: database.url,
    /** Stops it and starts another on its record, at the same port. */
    async restart() {
      await running.close();
      running = await start(running.port);
      return running;
    },
  };
}

/** Clients of a simulator; they are closed when the test file ends. */
export function connect(port: number): Clients {
  const address = `127.0.0.1:${port}`;
  const orders = createGrpcClient(Orders, address);
  const applications = createGrpcClient(Applications, address);
  const allocations = createGrpcClient(Allocations, address);
  const withdrawals = createGrpcClient(Withdrawals, address);
  const controls = createGrpcClient(Controls, address);
  after(() => {
    orders.close();
    applications.close();
    allocations.close();
    withdrawals.close();
    controls.close();
  });
  return { orders, applications, allocations, withdrawals, controls };
}

/** An order a test submits. */
export interface TestOrder {
  clientOrderId: string;
  account: string;
  symbol: string;
  side: Side;
  quantity: bigint;
  type: OrderType;
  timeInForce: TimeInForce;
  priceKobo?: bigint | undefined;
  notAfter?: Timestamp;
}

let made = 0;

/** An order to submit: a small buy of a magic symbol at its reference price, unless said otherwise. */
export function newOrder(fields: Partial<TestOrder> = {}): TestOrder {
  made += 1;
  return {
    clientOrderId: `ord_${made}`,
    account,
    symbol: 'SIM-REST',
    side: Side.BUY,
    quantity: 10n,
    type: OrderType.LIMIT,
    timeInForce: TimeInForce.DAY,
    ...(fields.type === OrderType.MARKET ? {} : { priceKobo: 1_000n }),
    ...fields,
  };
}

/** Everything the broker's record says of an order. */
export async function reportsOf(clients: Clients, clientOrderId: string): Promise<Report[]> {
  const { reports } = await clients.orders.lookUpOrder({ clientOrderId }, soon);
  return reports;
}

/** Waits until an order's reports are of these kinds, in this order. */
export function untilReports(clients: Clients, clientOrderId: string, kinds: readonly ReportKind[]) {
  return eventually(async () => {
    const reports = await reportsOf(clients, clientOrderId);
    assert.deepEqual(namesOf(reports), namesOf(kinds.map((kind) => ({ kind }))));
    return reports;
  });
}

/** The exchange's view of an order. */
export async function exchangeOrder(clients: Clients, clientOrderId: string): Promise<ExchangeOrder | undefined> {
  const { orders } = await clients.controls.listExchangeOrders({ clientOrderId }, soon);
  return orders[0];
}

/** Returns the messages that the simulator received about an order. */
export async function messagesOf(clients: Clients, clientOrderId: string) {
  const { messages } = await clients.controls.listMessages({ clientOrderId }, soon);
  return messages;
}

/** A check that an error is a status. */
export function fails(code: status) {
  return (error: unknown) => {
    const actual = (error as { code?: status }).code;
    assert.equal(actual === undefined ? String(error) : status[actual], status[code]);
    return true;
  };
}

function namesOf(reports: readonly { kind: ReportKind }[]): string[] {
  return reports.map((report) => ReportKind[report.kind] ?? '?');
}

/** An allocation to submit. */
export function newAllocation(amountKobo = 5_000n, to = account) {
  made += 1;
  return { clientAllocationId: `alc_${made}`, account: to, amountKobo };
}

/** A withdrawal to submit, to the wallet unless said otherwise. */
export function newWithdrawal(
  amountKobo = 5_000n,
  destination: WithdrawalDestination = WithdrawalDestination.WALLET,
  from = account,
) {
  made += 1;
  return { clientWithdrawalId: `wdr_${made}`, account: from, amountKobo, destination };
}

/** The cash of an account. */
export async function cashOf({ controls }: Pick<Clients, 'controls'>, code: string): Promise<bigint | undefined> {
  const { accounts } = await controls.listAccounts({}, soon);
  return accounts.find((each) => each.account === code)?.cashKobo;
}
