import { create } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import * as brokerAccounts from '../../../gen/marina/broker/v1/accounts_pb.ts';
import * as allocations from '../../../gen/marina/broker/v1/allocations_pb.ts';
import * as applications from '../../../gen/marina/broker/v1/applications_pb.ts';
import { RejectReason, type Report, ReportKind } from '../../../gen/marina/broker/v1/orders_pb.ts';
import * as brokerWithdrawals from '../../../gen/marina/broker/v1/withdrawals_pb.ts';
import { AccountActivity, AccountRestrictionCode, AccountState } from '../../../gen/marina/gateway/v1/accounts_pb.ts';
import { AllocationRejectReason } from '../../../gen/marina/gateway/v1/allocations_pb.ts';
import { DocumentType } from '../../../gen/marina/gateway/v1/documents_pb.ts';
import { OrderRejectReason } from '../../../gen/marina/gateway/v1/orders_pb.ts';
import * as sandbox from '../../../gen/marina/gateway/v1/sandbox_pb.ts';
import { WithdrawalRejectReason } from '../../../gen/marina/gateway/v1/withdrawals_pb.ts';
import * as simulated from '../../../gen/marina/simulator/v1/controls_pb.ts';
import { translateEnum } from '../../../kit/enums.ts';
import type { GrpcClient } from '../../../kit/grpc-client.ts';
import type { Call, HandlersOf } from '../../edge/call.ts';
import { ApiError, type ErrorCode } from '../../edge/errors.ts';
import type { Database } from '../../store/database.ts';
import { accounts } from '../../trading/accounts/store.ts';
import type { Kinds } from '../../trading/submission/kind.ts';

type SandboxHandlers = HandlersOf<typeof sandbox.Sandbox>;
type Simulator = GrpcClient<typeof simulated.Controls>;

/** The partners' enumerations and the simulator's have the same names, but different numbers. */
const translated = {
  orderOutcome: translateEnum(sandbox.SandboxOrderOutcome, simulated.Outcome),
  orderRejectReason: translateEnum(OrderRejectReason, RejectReason),
  reportKind: translateEnum(ReportKind, sandbox.ExchangeReportKind),
  applicationOutcome: translateEnum(sandbox.SandboxApplicationOutcome, simulated.ApplicationOutcome),
  documentType: translateEnum(DocumentType, applications.DocumentType),
  documentOutcome: translateEnum(sandbox.SandboxDocumentOutcome, applications.DocumentOutcome),
  allocationOutcome: translateEnum(sandbox.SandboxAllocationOutcome, allocations.AllocationOutcome),
  allocationRejectReason: translateEnum(AllocationRejectReason, allocations.AllocationRejectReason),
  withdrawalOutcome: translateEnum(sandbox.SandboxWithdrawalOutcome, simulated.WithdrawalOutcome),
  withdrawalDecision: translateEnum(sandbox.SandboxWithdrawalDecision, brokerWithdrawals.WithdrawalReportKind),
  withdrawalRejectReason: translateEnum(WithdrawalRejectReason, brokerWithdrawals.WithdrawalRejectReason),
  accountState: translateEnum(AccountState, brokerAccounts.AccountState),
  restrictionCode: translateEnum(AccountRestrictionCode, brokerAccounts.AccountRestrictionCode),
  activity: translateEnum(AccountActivity, brokerAccounts.AccountActivity),
  call: translateEnum(sandbox.SandboxCall, simulated.Call),
  fault: translateEnum(sandbox.SandboxFault, simulated.WireFault),
};

/** The error codes for the simulator's refusals. */
interface Refusals {
  /** The simulator does not have the object. */
  readonly notFound: ErrorCode;
  /** The object is in a final state. */
  readonly final?: ErrorCode;
}

/** For the simulator's refusal of a directive of a partner that has too many. */
const tooManyDirectives =
  'As many directives wait as may: 200 of a partner, 20,000 of all. One ends when it was used as often as it says, or after 24 hours.';

const orderRefusals: Refusals = { notFound: 'order_not_found', final: 'order_not_cancelable' };
const applicationRefusals: Refusals = { notFound: 'application_not_found' };

/** All activities: a restriction that names none forbids them. */
const everything = [AccountActivity.BUY, AccountActivity.SELL, AccountActivity.FUND, AccountActivity.WITHDRAW];

/** Calls on behalf of no account. */
const byIdOnly: ReadonlySet<sandbox.SandboxCall | undefined> = new Set([
  sandbox.SandboxCall.LOOK_UP_APPLICATION,
  sandbox.SandboxCall.SEND_DOCUMENT,
]);

/**
 * The operations that decide what becomes of objects. Each acts only on the caller's own. `timeoutMs` is the simulator's
 * deadline.
 */
export function steeringHandlers(
  database: Database,
  kinds: Kinds,
  simulator: Simulator,
  timeoutMs: number,
): Omit<
  SandboxHandlers,
  'sendWebhookTest' | 'listWebhookDeliveries' | 'listRequests' | 'listLatestEvents' | 'getClock'
> {
  const within = { timeoutMs };

  /** Makes the exchange report on an order of the caller's. */
  async function report(
    id: string | undefined,
    call: Call,
    steer: (clientOrderId: string) => Promise<{ report?: Report | undefined }>,
  ): Promise<sandbox.ExchangeReport> {
    const clientOrderId = await ownObject(id, call, 'order_not_found', 'ord_');
    const { report } = await steered(steer(clientOrderId), orderRefusals);
    const traded = report?.kind === ReportKind.TRADE;
    return create(sandbox.ExchangeReportSchema, {
      id: clientOrderId,
      kind: translated.reportKind(report?.kind),
      quantity: traded ? report.quantity : undefined,
      priceKobo: traded ? report.priceKobo : undefined,
    });
  }

  return {
    async forceOrder({ account = '', symbol = '', parts = 1, delayMs = 0, times = 1, ...request }, call) {
      await checkAccount(account, call);
      const outcome = translated.orderOutcome(request.outcome);
      const rejectReason = translated.orderRejectReason(request.rejectReason);
      const partner = call.caller.partnerId;
      const directive = { account, symbol, outcome, rejectReason, parts, delayMs, times, partner };
      await steered(simulator.forceOutcome(directive, within), orderRefusals);
      return create(sandbox.DirectiveSchema, { account, times });
    },

    fillOrder: ({ id, quantity = 0n, priceKobo = 0n }, call) =>
      report(id, call, (clientOrderId) => simulator.fillOrder({ clientOrderId, quantity, priceKobo }, within)),

    expireOrder: ({ id }, call) =>
      report(id, call, (clientOrderId) => simulator.expireOrder({ clientOrderId }, within)),

    rejectOrder({ id, ...request }, call) {
      const rejectReason = translated.orderRejectReason(request.rejectReason);
      return report(id, call, (clientOrderId) => simulator.rejectOrder({ clientOrderId, rejectReason }, within));
    },

    repeatReport: ({ id }, call) =>
      report(id, call, (clientOrderId) => simulator.repeatReport({ clientOrderId }, within)),

    async decideApplication(request, call) {
      const id = await ownObject(request.id, call, 'application_not_found', 'app_');
      const outcome = translated.applicationOutcome(request.outcome);
      const decided = simulator.decideApplication({ clientApplicationId: id, outcome }, within);
      const { report } = await steered(decided, applicationRefusals);
      return create(sandbox.DecisionSchema, { id, outcome: request.outcome, account: report?.account || undefined });
    },

    async forceDocument({ times = 1, ...request }, call) {
      const id = await ownObject(request.id, call, 'application_not_found', 'app_');
      const type = translated.documentType(request.type);
      const outcome = translated.documentOutcome(request.outcome);
      const directive = { clientApplicationId: id, type, outcome, times, partner: call.caller.partnerId };
      await steered(simulator.forceDocument(directive, within), applicationRefusals);
      return create(sandbox.DirectiveSchema, { id, times });
    },

    async forceAllocation({ account = '', times = 1, ...request }, call) {
      await checkAccount(account, call);
      const outcome = translated.allocationOutcome(request.outcome);
      const rejectReason = translated.allocationRejectReason(request.rejectReason);
      const directive = { account, outcome, rejectReason, times, partner: call.caller.partnerId };
      await steered(simulator.forceAllocation(directive, within), { notFound: 'not_found' });
      return create(sandbox.DirectiveSchema, { account, times });
    },

    async forceWithdrawal({ account = '', times = 1, ...request }, call) {
      await checkAccount(account, call);
      const outcome = translated.withdrawalOutcome(request.outcome);
      const rejectReason = translated.withdrawalRejectReason(request.rejectReason);
      const directive = { account, outcome, rejectReason, times, partner: call.caller.partnerId };
      await steered(simulator.forceWithdrawal(directive, within), { notFound: 'not_found' });
      return create(sandbox.DirectiveSchema, { account, times });
    },

    async decideWithdrawal({ decision, ...request }, call) {
      const id = await ownObject(request.id, call, 'withdrawal_not_found', 'wdr_');
      const kind = translated.withdrawalDecision(decision);
      const rejectReason = translated.withdrawalRejectReason(request.rejectReason);
      const decided = simulator.decideWithdrawal({ clientWithdrawalId: id, kind, rejectReason }, within);
      await steered(decided, { notFound: 'withdrawal_not_found' });
      return create(sandbox.WithdrawalDecisionSchema, { id, decision });
    },

    async setFunds({ account = '', cashKobo = 0n, sharesElsewhere }, call) {
      await checkAccount(account, call);
      await steered(simulator.setCash({ account, cashKobo, sharesElsewhere }, within), { notFound: 'not_found' });
      return create(sandbox.SandboxFundsSchema, { account, cashKobo, sharesElsewhere });
    },

    async setAccountState({ account = '', state, code, ...request }, call) {
      await checkAccount(account, call);
      const isRestricted = state === AccountState.RESTRICTED;
      checkForbidden(isRestricted, request.forbids);
      const forbids = isRestricted && request.forbids.length === 0 ? everything : request.forbids;
      const restriction = { code: translated.restrictionCode(code), forbids: forbids.map(translated.activity) };
      const restrictions = isRestricted ? [restriction] : [];
      const set = { account, state: translated.accountState(state), restrictions };
      await steered(simulator.setAccountState(set, within), { notFound: 'not_found' });
      return create(sandbox.SandboxAccountStateSchema, { account, state, code, forbids });
    },

    async settleTrades({ account = '' }, call) {
      await checkAccount(account, call);
      await steered(simulator.settle({ account }, within), { notFound: 'not_found' });
      return create(sandbox.SandboxSettlementSchema, { account });
    },

    async injectFault({ account, id, delayMs = 0, times = 1, ...request }, call) {
      if (account === undefined && id === undefined) {
        const message = '`account` is required where there is no `id`.';
        throw new ApiError('missing_required_field', { param: 'account', message });
      }
      if (id === undefined && byIdOnly.has(request.call)) {
        throw new ApiError('missing_required_field', { param: 'id', message: '`id` is required with this `call`.' });
      }
      if (account !== undefined) await checkAccount(account, call);
      if (id !== undefined) await ownObject(id, call, 'not_found');
      const what = { call: translated.call(request.call), fault: translated.fault(request.fault), delayMs, times };
      const whose = { account: account ?? '', clientId: id ?? '', partner: call.caller.partnerId };
      const injected = simulator.injectFault({ ...what, ...whose }, within);
      await steered(injected, { notFound: 'not_found' });
      return create(sandbox.DirectiveSchema, { account, id, times });
    },
  };

  async function checkAccount(account: string, { caller }: Call): Promise<void> {
    const [known] = await database.read(accounts.find({ partnerId: caller.partnerId, account }));
    if (known === undefined) throw new ApiError('unknown_account', { param: 'account' });
  }

  /** An object's id. Unknown ids, other kinds and other partners' objects get the same answer. */
  async function ownObject(id = '', { caller }: Call, notFound: ErrorCode, prefix = ''): Promise<string> {
    const kind = id.startsWith(prefix) ? kinds.ofId(id) : undefined;
    const known = kind && (await database.read(kind.table.find({ partnerId: caller.partnerId, id })))[0];
    if (known === undefined) throw new ApiError(notFound);
    return id;
  }
}

/** Throws `invalid_request` if activities cannot be those that a restriction forbids. */
function checkForbidden(isRestricted: boolean, forbids: readonly AccountActivity[]): void {
  const wrong = (problem: string) =>
    new ApiError('invalid_request', { param: 'forbids', message: `\`forbids\` ${problem}` });
  if (!isRestricted && forbids.length > 0) throw wrong('must be absent unless `state` is `restricted`.');
  if (new Set(forbids).size < forbids.length) throw wrong('must name each activity once.');
}

/**
 * Waits for the simulator's answer. Throws an error of the catalogue if it refused. If it did not answer, that is
 * `service_unavailable`, because `exchange_unavailable` would promise that nothing was done.
 */
async function steered<Answer>(answer: Promise<Answer>, refusals: Refusals): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    const { code, details: message } = error as ServiceError;
    switch (code) {
      case status.NOT_FOUND:
        throw new ApiError(refusals.notFound, { message });
      case status.FAILED_PRECONDITION:
        throw new ApiError(refusals.final ?? 'invalid_request', { message });
      case status.INVALID_ARGUMENT:
        throw new ApiError('invalid_request', { message });
      case status.RESOURCE_EXHAUSTED:
        throw new ApiError('limit_exceeded', { message: tooManyDirectives });
      default:
        throw new ApiError('service_unavailable', {
          message:
            "The sandbox's exchange did not answer. What was asked may have been done: look before you repeat it.",
          cause: error,
        });
    }
  }
}
