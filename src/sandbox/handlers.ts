import { create } from '@bufbuild/protobuf';
import { findAccount } from '../accounts/store.ts';
import type { Call, Handler } from '../auth/call.ts';
import type { Database } from '../db/database.ts';
import { type Report, ReportKind } from '../gen/marina/broker/v1/orders_pb.ts';
import {
  type DecideApplicationRequest,
  type Decision,
  DecisionSchema,
  type Directive,
  DirectiveSchema,
  type ExchangeReport,
  ExchangeReportSchema,
  type ExpireOrderRequest,
  type FillOrderRequest,
  type ForceAllocationRequest,
  type ForceDocumentRequest,
  type ForceOrderRequest,
  type InjectFaultRequest,
  type RejectOrderRequest,
  type RepeatReportRequest,
  SandboxCall,
} from '../gen/marina/gateway/v1/sandbox_pb.ts';
import type { Controls } from '../gen/marina/simulator/v1/controls_pb.ts';
import { ApiError, type ErrorCode } from '../lib/errors.ts';
import type { GrpcClient } from '../lib/grpc-client.ts';
import type { Kinds } from '../submission/kind.ts';
import { steered } from './steering.ts';
import * as words from './words.ts';

export interface SandboxHandlerParts {
  readonly database: Database;
  readonly kinds: Kinds;
  readonly simulator: GrpcClient<typeof Controls>;
  /** How long the simulator may take to answer. */
  readonly timeoutMs: number;
}

/** What the simulator's refusals come to. */
const orderRefusals = { notFound: 'order_not_found', final: 'order_not_cancelable' } as const;
const applicationRefusals = { notFound: 'application_not_found' } as const;

/** What is asked on behalf of no account. */
const byIdOnly: ReadonlySet<SandboxCall | undefined> = new Set([
  SandboxCall.LOOK_UP_APPLICATION,
  SandboxCall.SEND_DOCUMENT,
]);

/** The operations that steer a sandbox: each on what is the caller's own, and nothing else. */
export function sandboxHandlers({ database, kinds, simulator, timeoutMs }: SandboxHandlerParts) {
  const within = { timeoutMs };

  const forceOrder: Handler<ForceOrderRequest, Directive> = async (request, call) => {
    const { account = '', symbol = '', parts = 1, delayMs = 0, times = 1 } = request;
    await checkAccount(account, call);
    const outcome = words.orderOutcome(request.outcome);
    const rejectReason = words.orderRejectReason(request.rejectReason);
    const directive = { account, symbol, outcome, rejectReason, parts, delayMs, times };
    await steered(simulator.forceOutcome(directive, within), orderRefusals);
    return create(DirectiveSchema, { account, times });
  };

  /** Makes the exchange report on an order of the caller's. */
  async function report(
    id: string | undefined,
    call: Call,
    steer: (clientOrderId: string) => Promise<{ report?: Report | undefined }>,
  ): Promise<ExchangeReport> {
    const clientOrderId = await ownOrder(id, call);
    const { report } = await steered(steer(clientOrderId), orderRefusals);
    return toReport(clientOrderId, report);
  }

  const fillOrder: Handler<FillOrderRequest, ExchangeReport> = ({ id, quantity = 0n, priceKobo = 0n }, call) =>
    report(id, call, (clientOrderId) => simulator.fillOrder({ clientOrderId, quantity, priceKobo }, within));

  const expireOrder: Handler<ExpireOrderRequest, ExchangeReport> = ({ id }, call) =>
    report(id, call, (clientOrderId) => simulator.expireOrder({ clientOrderId }, within));

  const rejectOrder: Handler<RejectOrderRequest, ExchangeReport> = ({ id, rejectReason: reason }, call) => {
    const rejectReason = words.orderRejectReason(reason);
    return report(id, call, (clientOrderId) => simulator.rejectOrder({ clientOrderId, rejectReason }, within));
  };

  const repeatReport: Handler<RepeatReportRequest, ExchangeReport> = ({ id }, call) =>
    report(id, call, (clientOrderId) => simulator.repeatReport({ clientOrderId }, within));

  const decideApplication: Handler<DecideApplicationRequest, Decision> = async (request, call) => {
    const id = await ownApplication(request.id, call);
    const outcome = words.applicationOutcome(request.outcome);
    const decided = simulator.decideApplication({ clientApplicationId: id, outcome }, within);
    const { report } = await steered(decided, applicationRefusals);
    return create(DecisionSchema, { id, outcome: request.outcome, account: report?.account || undefined });
  };

  const forceDocument: Handler<ForceDocumentRequest, Directive> = async (request, call) => {
    const { times = 1 } = request;
    const id = await ownApplication(request.id, call);
    const directive = {
      clientApplicationId: id,
      type: words.documentType(request.type),
      outcome: words.documentOutcome(request.outcome),
      times,
    };
    await steered(simulator.forceDocument(directive, within), applicationRefusals);
    return create(DirectiveSchema, { id, times });
  };

  const forceAllocation: Handler<ForceAllocationRequest, Directive> = async (request, call) => {
    const { account = '', times = 1 } = request;
    await checkAccount(account, call);
    const outcome = words.allocationOutcome(request.outcome);
    const rejectReason = words.allocationRejectReason(request.rejectReason);
    const directive = { account, outcome, rejectReason, times };
    await steered(simulator.forceAllocation(directive, within), { notFound: 'not_found' });
    return create(DirectiveSchema, { account, times });
  };

  const injectFault: Handler<InjectFaultRequest, Directive> = async (request, call) => {
    const { account, id, delayMs = 0, times = 1 } = request;
    if (account === undefined && id === undefined) {
      const message = '`account` is required where there is no `id`.';
      throw new ApiError('missing_required_field', { param: 'account', message });
    }
    if (id === undefined && byIdOnly.has(request.call)) {
      throw new ApiError('missing_required_field', { param: 'id', message: '`id` is required with this `call`.' });
    }
    if (account !== undefined) await checkAccount(account, call);
    if (id !== undefined) await checkOwn(id, call, 'not_found');
    const directive = {
      call: words.call(request.call),
      fault: words.fault(request.fault),
      account: account ?? '',
      clientId: id ?? '',
      delayMs,
      times,
    };
    await steered(simulator.injectFault(directive, within), { notFound: 'not_found' });
    return create(DirectiveSchema, { account, id, times });
  };

  async function checkAccount(account: string, { caller }: Call): Promise<void> {
    const [known] = await database.read(findAccount(caller.partnerId, account));
    if (known === undefined) throw new ApiError('unknown_account', { param: 'account' });
  }

  /** Another partner's object is found exactly as little as one that does not exist. */
  async function checkOwn(id: string, { caller }: Call, notFound: ErrorCode): Promise<void> {
    const kind = kinds.ofId(id);
    const known = kind && (await database.read(kind.table.find({ partnerId: caller.partnerId, id })))[0];
    if (known === undefined) throw new ApiError(notFound);
  }

  async function ownOrder(id = '', call: Call): Promise<string> {
    await checkOwn(id.startsWith('ord_') ? id : '', call, 'order_not_found');
    return id;
  }

  async function ownApplication(id = '', call: Call): Promise<string> {
    await checkOwn(id.startsWith('app_') ? id : '', call, 'application_not_found');
    return id;
  }

  return {
    forceOrder,
    fillOrder,
    expireOrder,
    rejectOrder,
    repeatReport,
    decideApplication,
    forceDocument,
    forceAllocation,
    injectFault,
  };
}

function toReport(id: string, report: Report | undefined): ExchangeReport {
  const traded = report?.kind === ReportKind.TRADE;
  return create(ExchangeReportSchema, {
    id,
    kind: words.reportKind(report?.kind),
    quantity: traded ? report.quantity : undefined,
    priceKobo: traded ? report.priceKobo : undefined,
  });
}
