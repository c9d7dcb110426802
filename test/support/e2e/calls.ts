import type { DescMethod } from '@bufbuild/protobuf';
import { Accounts } from '../../../src/gen/marina/gateway/v1/accounts_pb.ts';
import { Allocations } from '../../../src/gen/marina/gateway/v1/allocations_pb.ts';
import { Applications } from '../../../src/gen/marina/gateway/v1/applications_pb.ts';
import { Events } from '../../../src/gen/marina/gateway/v1/events_pb.ts';
import { Keys } from '../../../src/gen/marina/gateway/v1/keys_pb.ts';
import { Limits } from '../../../src/gen/marina/gateway/v1/limits_pb.ts';
import { Orders } from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { Reference } from '../../../src/gen/marina/gateway/v1/reference_pb.ts';
import { Sandbox } from '../../../src/gen/marina/gateway/v1/sandbox_pb.ts';
import { Wallet } from '../../../src/gen/marina/gateway/v1/wallet_pb.ts';
import { Withdrawals } from '../../../src/gen/marina/gateway/v1/withdrawals_pb.ts';
import { Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';

/** One operation as the contract lists it. */
export interface Operation {
  readonly method: string;
  readonly path: (id: string) => string;
  readonly rpc: DescMethod;
  readonly scope: Scope;
  readonly takesBody?: true;
  readonly takesKey?: true;
  /** The body is a file and nothing else; over protobuf it is a field among others. */
  readonly takesFile?: true;
  /** The field that its path names, and a value of it that nobody has; absent: the path names nothing. */
  readonly names?: readonly [field: 'id' | 'account' | 'state' | 'symbol', nobodys: string];
}

/** An order's id that nobody has. */
export const nobodysOrder = 'ord_abcdefghijklmnopqrst';
const nobodysApplication = 'app_abcdefghijklmnopqrst';
const nobodysWithdrawal = 'wdr_abcdefghijklmnopqrst';

const { method: orders } = Orders;
const { method: keys } = Keys;

const { method: applications } = Applications;

/** The operations on applications, which have tables of their own. */
const applicationTable = {
  createApplication: {
    method: 'POST',
    path: () => '/v1/applications',
    rpc: applications.createApplication,
    scope: Scope.APPLY,
    takesBody: true,
    takesKey: true,
  },
  listApplications: {
    method: 'GET',
    path: () => '/v1/applications',
    rpc: applications.listApplications,
    scope: Scope.READ,
  },
  getApplication: {
    method: 'GET',
    path: (id) => `/v1/applications/${id}`,
    rpc: applications.getApplication,
    scope: Scope.READ,
    names: ['id', nobodysApplication],
  },
  listApplicationEvents: {
    method: 'GET',
    path: (id) => `/v1/applications/${id}/events`,
    rpc: Events.method.listApplicationEvents,
    scope: Scope.READ,
    names: ['id', nobodysApplication],
  },
  sendDocument: {
    method: 'PUT',
    path: (id) => `/v1/applications/${id}/documents/photo`,
    rpc: applications.sendDocument,
    scope: Scope.APPLY,
    takesFile: true,
    names: ['id', nobodysApplication],
  },
  listDocuments: {
    method: 'GET',
    path: (id) => `/v1/applications/${id}/documents`,
    rpc: applications.listDocuments,
    scope: Scope.READ,
    names: ['id', nobodysApplication],
  },
} satisfies Record<string, Operation>;

/** The operations on the wallet, allocations and withdrawals, which have tables of their own. */
const moneyTable = {
  createAllocation: {
    method: 'POST',
    path: () => '/v1/allocations',
    rpc: Allocations.method.createAllocation,
    scope: Scope.FUND,
    takesBody: true,
    takesKey: true,
  },
  listAllocations: {
    method: 'GET',
    path: () => '/v1/allocations',
    rpc: Allocations.method.listAllocations,
    scope: Scope.READ,
  },
  getAllocation: {
    method: 'GET',
    path: (id) => `/v1/allocations/${id}`,
    rpc: Allocations.method.getAllocation,
    scope: Scope.READ,
    names: ['id', 'alc_abcdefghijklmnopqrst'],
  },
  listAllocationEvents: {
    method: 'GET',
    path: (id) => `/v1/allocations/${id}/events`,
    rpc: Events.method.listAllocationEvents,
    scope: Scope.READ,
    names: ['id', 'alc_abcdefghijklmnopqrst'],
  },
  createWithdrawal: {
    method: 'POST',
    path: () => '/v1/withdrawals',
    rpc: Withdrawals.method.createWithdrawal,
    scope: Scope.WITHDRAW,
    takesBody: true,
    takesKey: true,
  },
  listWithdrawals: {
    method: 'GET',
    path: () => '/v1/withdrawals',
    rpc: Withdrawals.method.listWithdrawals,
    scope: Scope.READ,
  },
  getWithdrawal: {
    method: 'GET',
    path: (id) => `/v1/withdrawals/${id}`,
    rpc: Withdrawals.method.getWithdrawal,
    scope: Scope.READ,
    names: ['id', nobodysWithdrawal],
  },
  getWithdrawalHistory: {
    method: 'GET',
    path: (id) => `/v1/withdrawals/${id}/history`,
    rpc: Withdrawals.method.getWithdrawalHistory,
    scope: Scope.READ,
    names: ['id', nobodysWithdrawal],
  },
  listWithdrawalEvents: {
    method: 'GET',
    path: (id) => `/v1/withdrawals/${id}/events`,
    rpc: Events.method.listWithdrawalEvents,
    scope: Scope.READ,
    names: ['id', nobodysWithdrawal],
  },
  getWallet: { method: 'GET', path: () => '/v1/wallet', rpc: Wallet.method.getWallet, scope: Scope.READ },
  listTransfers: {
    method: 'GET',
    path: () => '/v1/wallet/transfers',
    rpc: Wallet.method.listTransfers,
    scope: Scope.READ,
  },
} satisfies Record<string, Operation>;

/** The operations on orders and events. */
const table = {
  createOrder: {
    method: 'POST',
    path: () => '/v1/orders',
    rpc: orders.createOrder,
    scope: Scope.TRADE,
    takesBody: true,
    takesKey: true,
  },
  estimateOrder: {
    method: 'POST',
    path: () => '/v1/orders/estimate',
    rpc: orders.estimateOrder,
    scope: Scope.TRADE,
    takesBody: true,
  },
  listOrders: { method: 'GET', path: () => '/v1/orders', rpc: orders.listOrders, scope: Scope.READ },
  getOrder: {
    method: 'GET',
    path: (id) => `/v1/orders/${id}`,
    rpc: orders.getOrder,
    scope: Scope.READ,
    names: ['id', nobodysOrder],
  },
  getOrderHistory: {
    method: 'GET',
    path: (id) => `/v1/orders/${id}/history`,
    rpc: orders.getOrderHistory,
    scope: Scope.READ,
    names: ['id', nobodysOrder],
  },
  cancelOrder: {
    method: 'DELETE',
    path: (id) => `/v1/orders/${id}`,
    rpc: orders.cancelOrder,
    scope: Scope.TRADE,
    names: ['id', nobodysOrder],
  },
  listEvents: { method: 'GET', path: () => '/v1/events', rpc: Events.method.listEvents, scope: Scope.READ },
  listOrderEvents: {
    method: 'GET',
    path: (id) => `/v1/orders/${id}/events`,
    rpc: Events.method.listOrderEvents,
    scope: Scope.READ,
    names: ['id', nobodysOrder],
  },
} satisfies Record<string, Operation>;

/** The operations on keys and limits, which have tests of their own. */
const keyTable = {
  listKeys: { method: 'GET', path: () => '/v1/keys', rpc: keys.listKeys, scope: Scope.KEYS },
  createKey: { method: 'POST', path: () => '/v1/keys', rpc: keys.createKey, scope: Scope.KEYS, takesBody: true },
  revokeKey: {
    method: 'DELETE',
    path: (id) => `/v1/keys/${id}`,
    rpc: keys.revokeKey,
    scope: Scope.KEYS,
    names: ['id', 'key_abcdefghijklmnopqrst'],
  },
  getLimits: { method: 'GET', path: () => '/v1/limits', rpc: Limits.method.getLimits, scope: Scope.READ },
} satisfies Record<string, Operation>;

const { method: accounts } = Accounts;

/** The reads of the broker's records and lists, and the accounts they are about. */
const recordTable = {
  listAccounts: { method: 'GET', path: () => '/v1/accounts', rpc: accounts.listAccounts, scope: Scope.READ },
  getAccount: {
    method: 'GET',
    path: (account) => `/v1/accounts/${account}`,
    rpc: accounts.getAccount,
    scope: Scope.READ,
    names: ['account', 'NOBODYS'],
  },
  getAccountStatus: {
    method: 'GET',
    path: (account) => `/v1/accounts/${account}/status`,
    rpc: accounts.getAccountStatus,
    scope: Scope.READ,
    names: ['account', 'NOBODYS'],
  },
  getBalance: {
    method: 'GET',
    path: (account) => `/v1/accounts/${account}/balance`,
    rpc: accounts.getBalance,
    scope: Scope.READ,
    names: ['account', 'NOBODYS'],
  },
  listPositions: {
    method: 'GET',
    path: (account) => `/v1/accounts/${account}/positions`,
    rpc: accounts.listPositions,
    scope: Scope.READ,
    names: ['account', 'NOBODYS'],
  },
  listTrades: {
    method: 'GET',
    path: (account) => `/v1/accounts/${account}/trades`,
    rpc: accounts.listTrades,
    scope: Scope.READ,
    names: ['account', 'NOBODYS'],
  },
  listContractNotes: {
    method: 'GET',
    path: (account) => `/v1/accounts/${account}/contract-notes`,
    rpc: accounts.listContractNotes,
    scope: Scope.READ,
    names: ['account', 'NOBODYS'],
  },
  listAccountTransactions: {
    method: 'GET',
    path: (account) => `/v1/accounts/${account}/transactions`,
    rpc: accounts.listAccountTransactions,
    scope: Scope.READ,
    names: ['account', 'NOBODYS'],
  },
  listStates: {
    method: 'GET',
    path: () => '/v1/reference/states',
    rpc: Reference.method.listStates,
    scope: Scope.READ,
  },
  listLgas: {
    method: 'GET',
    path: (state) => `/v1/reference/states/${state}/lgas`,
    rpc: Reference.method.listLgas,
    scope: Scope.READ,
    names: ['state', 'NOWHERE'],
  },
  getMarket: { method: 'GET', path: () => '/v1/market', rpc: Reference.method.getMarket, scope: Scope.READ },
  listMarketDays: {
    method: 'GET',
    path: () => '/v1/market/calendar',
    rpc: Reference.method.listMarketDays,
    scope: Scope.READ,
  },
  listInstruments: {
    method: 'GET',
    path: () => '/v1/instruments',
    rpc: Reference.method.listInstruments,
    scope: Scope.READ,
  },
  getInstrument: {
    method: 'GET',
    path: (symbol) => `/v1/instruments/${symbol}`,
    rpc: Reference.method.getInstrument,
    scope: Scope.READ,
    names: ['symbol', 'NOTHING'],
  },
} satisfies Record<string, Operation>;

const { method: sandbox } = Sandbox;

/** The operations that steer the sandbox. */
const sandboxTable = {
  forceOrder: {
    method: 'POST',
    path: () => '/v1/sandbox/orders/next',
    rpc: sandbox.forceOrder,
    scope: Scope.TRADE,
    takesBody: true,
  },
  fillOrder: {
    method: 'POST',
    path: (id) => `/v1/sandbox/orders/${id}/fill`,
    rpc: sandbox.fillOrder,
    scope: Scope.TRADE,
    takesBody: true,
    names: ['id', nobodysOrder],
  },
  expireOrder: {
    method: 'POST',
    path: (id) => `/v1/sandbox/orders/${id}/expire`,
    rpc: sandbox.expireOrder,
    scope: Scope.TRADE,
    takesBody: true,
    names: ['id', nobodysOrder],
  },
  rejectOrder: {
    method: 'POST',
    path: (id) => `/v1/sandbox/orders/${id}/reject`,
    rpc: sandbox.rejectOrder,
    scope: Scope.TRADE,
    takesBody: true,
    names: ['id', nobodysOrder],
  },
  repeatReport: {
    method: 'POST',
    path: (id) => `/v1/sandbox/orders/${id}/repeat`,
    rpc: sandbox.repeatReport,
    scope: Scope.TRADE,
    takesBody: true,
    names: ['id', nobodysOrder],
  },
  decideApplication: {
    method: 'POST',
    path: (id) => `/v1/sandbox/applications/${id}/decide`,
    rpc: sandbox.decideApplication,
    scope: Scope.APPLY,
    takesBody: true,
    names: ['id', nobodysApplication],
  },
  forceDocument: {
    method: 'POST',
    path: (id) => `/v1/sandbox/applications/${id}/documents/next`,
    rpc: sandbox.forceDocument,
    scope: Scope.APPLY,
    takesBody: true,
    names: ['id', nobodysApplication],
  },
  setAccountState: {
    method: 'POST',
    path: () => '/v1/sandbox/accounts/state',
    rpc: sandbox.setAccountState,
    scope: Scope.FUND,
    takesBody: true,
  },
  settleTrades: {
    method: 'POST',
    path: () => '/v1/sandbox/settlement',
    rpc: sandbox.settleTrades,
    scope: Scope.FUND,
    takesBody: true,
  },
  setFunds: {
    method: 'POST',
    path: () => '/v1/sandbox/funds',
    rpc: sandbox.setFunds,
    scope: Scope.FUND,
    takesBody: true,
  },
  forceAllocation: {
    method: 'POST',
    path: () => '/v1/sandbox/allocations/next',
    rpc: sandbox.forceAllocation,
    scope: Scope.FUND,
    takesBody: true,
  },
  forceWithdrawal: {
    method: 'POST',
    path: () => '/v1/sandbox/withdrawals/next',
    rpc: sandbox.forceWithdrawal,
    scope: Scope.WITHDRAW,
    takesBody: true,
  },
  decideWithdrawal: {
    method: 'POST',
    path: (id) => `/v1/sandbox/withdrawals/${id}/decide`,
    rpc: sandbox.decideWithdrawal,
    scope: Scope.WITHDRAW,
    takesBody: true,
    names: ['id', nobodysWithdrawal],
  },
  injectFault: {
    method: 'POST',
    path: () => '/v1/sandbox/faults',
    rpc: sandbox.injectFault,
    scope: Scope.TRADE,
    takesBody: true,
  },
  sendWebhookTest: {
    method: 'POST',
    path: () => '/v1/sandbox/webhook/test',
    rpc: sandbox.sendWebhookTest,
    scope: Scope.TRADE,
    takesBody: true,
  },
  listWebhookDeliveries: {
    method: 'GET',
    path: () => '/v1/sandbox/webhook/deliveries',
    rpc: sandbox.listWebhookDeliveries,
    scope: Scope.READ,
  },
  listRequests: {
    method: 'GET',
    path: () => '/v1/sandbox/requests',
    rpc: sandbox.listRequests,
    scope: Scope.READ,
  },
  listLatestEvents: {
    method: 'GET',
    path: () => '/v1/sandbox/events',
    rpc: sandbox.listLatestEvents,
    scope: Scope.READ,
  },
  getClock: { method: 'GET', path: () => '/v1/sandbox/clock', rpc: sandbox.getClock, scope: Scope.READ },
} satisfies Record<string, Operation>;

export type OperationName =
  | keyof typeof table
  | keyof typeof applicationTable
  | keyof typeof moneyTable
  | keyof typeof keyTable
  | keyof typeof recordTable
  | keyof typeof sandboxTable;
export const operations: Readonly<Record<OperationName, Operation>> = {
  ...table,
  ...applicationTable,
  ...moneyTable,
  ...keyTable,
  ...recordTable,
  ...sandboxTable,
};
/** All operations of one request and one answer: `paths.test.ts` compares them with the protos. */
export const operationNames = Object.keys(operations) as OperationName[];

/** A number, or anything else, that stands in a body letter by letter. */
export class Raw {
  constructor(readonly text: string) {}
}

export function raw(text: string): Raw {
  return new Raw(text);
}

/** The members of a body; undefined: the member is left out. */
export type Members = Readonly<Record<string, unknown>>;

/** One call, whichever protocol it goes through. */
export interface Call {
  readonly operation: OperationName;
  /** The text of an API key. */
  readonly key?: string;
  /** The values of Authorization, instead of the key. */
  readonly authorization?: readonly string[];
  /** The values of Idempotency-Key. */
  readonly idempotencyKey?: readonly string[];
  /** The id, account or state in the path. */
  readonly id?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Members;
  /** More headers, or more metadata. */
  readonly headers?: readonly (readonly [string, string])[];
}

/** A body of which nothing is wrong; the order rests at the exchange. */
export function goodBody(account: string): Members {
  return { account, symbol: 'SIM-REST', side: 'buy', quantity: 100, type: 'limit', price_kobo: 1000 };
}

/** A body the operation can read, of which nothing is wrong but that nobody has the account. */
export function sampleBody(operation: OperationName, account = 'NOBODYS'): Members | undefined {
  if (operations[operation].takesBody !== true) return undefined;
  if (operation === 'createAllocation') return { account, amount_kobo: 1_000 };
  if (operation === 'createWithdrawal') return { account, amount_kobo: 1_000, destination: 'wallet' };
  if (operation === 'createKey') return { scopes: ['read'] };
  if (operation in sandboxTable) return sandboxBodies[operation as keyof typeof sandboxTable](account);
  return operation === 'createApplication' ? { first_name: 'Ada' } : goodBody(account);
}

const sandboxBodies: Readonly<Record<keyof typeof sandboxTable, (account: string) => Members>> = {
  forceOrder: (account) => ({ account, outcome: 'rest' }),
  fillOrder: () => ({ quantity: 100 }),
  expireOrder: () => ({}),
  rejectOrder: () => ({}),
  repeatReport: () => ({}),
  decideApplication: () => ({ outcome: 'open' }),
  forceDocument: () => ({ outcome: 'refused' }),
  setAccountState: (account) => ({ account, state: 'active' }),
  settleTrades: (account) => ({ account }),
  setFunds: (account) => ({ account, cash_kobo: 1_000 }),
  forceAllocation: (account) => ({ account, outcome: 'booked' }),
  forceWithdrawal: (account) => ({ account, outcome: 'hold' }),
  decideWithdrawal: () => ({ decision: 'paid' }),
  injectFault: (account) => ({ call: 'submit_order', fault: 'hang', account }),
  sendWebhookTest: () => ({}),
  listWebhookDeliveries: () => ({}),
  listRequests: () => ({}),
  listLatestEvents: () => ({}),
  getClock: () => ({}),
};

/** Writes a body as JSON. */
export function toJson(members: Members): string {
  const written = Object.entries(members)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${JSON.stringify(name)}:${value instanceof Raw ? value.text : JSON.stringify(value)}`);
  return `{${written.join(',')}}`;
}
