import type { GetCapabilitiesResponse } from '../../../gen/marina/broker/v1/orders_pb.ts';
import {
  type WithdrawalDestination,
  WithdrawalDestinationSchema,
  type WithdrawalReport,
  WithdrawalReportKind,
} from '../../../gen/marina/broker/v1/withdrawals_pb.ts';
import {
  type CreateWithdrawalRequest,
  CreateWithdrawalRequestSchema,
} from '../../../gen/marina/gateway/v1/withdrawals_pb.ts';
import { type Clock, statedInstant } from '../../../kit/clock.ts';
import { enumWords } from '../../../kit/enums.ts';
import { ApiError } from '../../edge/errors.ts';
import type { IdMaker } from '../../edge/ids.ts';
import type { Origin } from '../../edge/origin.ts';
import { existsFact } from '../../store/facts.ts';
import type { PartnerTransaction } from '../../store/partner-transaction.ts';
import { type Statement, statement } from '../../store/statement.ts';
import { accounts } from '../accounts/store.ts';
import type { BrokerOrders, BrokerWithdrawals, LookedUp, Sent } from '../broker/broker.ts';
import { StatedCapabilities } from '../broker/stated-capabilities.ts';
import { type StoredFields, storedFields } from '../shown-message.ts';
import type { CreatedKind, Precondition, Prepared } from '../submission/kind.ts';
import type { ReportedKind } from '../submission/report-session.ts';
import { noSimilar, type SimilarTo } from '../submission/similar.ts';
import { objectHistory } from '../submission/table.ts';
import { transfer, type WalletSeals, wallet } from '../wallet/store.ts';
import { isPaidToWallet, withdrawalStates } from './rules.ts';
import { applyReport } from './settlement/rules.ts';
import {
  notedWithdrawal,
  type ShownWithdrawal,
  type StoredWithdrawal,
  toWithdrawalMessage,
  withdrawals,
} from './table.ts';

/** A withdrawal a partner wants. */
type WantedWithdrawal = Pick<ShownWithdrawal, keyof StoredFields<CreateWithdrawalRequest>>;

const destinations = enumWords<typeof WithdrawalDestination>(WithdrawalDestinationSchema);

/** How withdrawals use the mechanism that stores, sends once, records and reconciles. */
export class WithdrawalKind
  implements
    CreatedKind<StoredWithdrawal, WithdrawalReport, CreateWithdrawalRequest>,
    ReportedKind<StoredWithdrawal, WithdrawalReport>
{
  readonly name = 'withdrawal';
  readonly prefix = 'wdr';
  readonly table = withdrawals;
  readonly history = objectHistory;
  readonly upstream = 'broker';
  readonly accepted = 'accepted';
  readonly states = withdrawalStates;
  readonly absent = { state: 'refused', reason: 'It never reached the broker.' } as const;
  readonly noted = notedWithdrawal;
  readonly applyReport = applyReport<StoredWithdrawal>;
  readonly blank = {
    ...{ brokerReference: null, lastReport: 0n, missedReport: 0n, heldUntil: null, releasedAt: null },
    evidence: 'stored, before it is sent',
  };
  readonly shared = (partnerId: string) => [wallet(partnerId, this.walletSeals)];

  readonly #capabilities: StatedCapabilities;

  constructor(
    private readonly broker: BrokerWithdrawals,
    orders: Pick<BrokerOrders, 'capabilities'>,
    private readonly clock: Clock,
    private readonly ids: IdMaker,
    private readonly walletSeals: WalletSeals,
  ) {
    this.#capabilities = new StatedCapabilities(orders);
  }

  prepare(origin: Origin, request: CreateWithdrawalRequest): Prepared<StoredWithdrawal> {
    const wanted = storedFields(CreateWithdrawalRequestSchema, request) as WantedWithdrawal;
    const draft = { ...this.blank, ...wanted };
    const offers = ({ withdrawalDestinations }: GetCapabilitiesResponse) =>
      withdrawalDestinations.some((value) => destinations.find(value) === wanted.destination);
    return {
      draft: this.#capabilities.isKnown(offers) ? draft : undefined,
      reads: [],
      prepare: async () => {
        if (await this.#capabilities.has(offers, { origin })) return draft;
        throw new ApiError('feature_not_enabled', { message: 'The broker pays no withdrawals to this destination.' });
      },
    };
  }

  affects({ partnerId, account }: StoredWithdrawal) {
    return { action: 'withdraw', partnerId, account } as const;
  }

  preconditions(row: StoredWithdrawal): Precondition[] {
    const { partnerId, account } = row;
    return [
      {
        fact: existsFact(accounts.find({ partnerId, account }), true),
        mustBe: true,
        otherwise: () => new ApiError('unknown_account', { param: 'account' }),
      },
      noSimilar('withdrawal', similarWithdrawals(row), this.clock),
    ];
  }

  /** One whose outcome is known does not wait, whatever a restored database had of it. */
  cleared() {
    return { heldUntil: null };
  }

  /** Above the amount that is agreed with the partner. */
  mustWait({ partnerId, amountKobo }: StoredWithdrawal) {
    return existsFact(
      statement('SELECT 1 FROM partners WHERE id = ? AND withdrawal_release_above_kobo < ?', partnerId, amountKobo),
      false,
    );
  }

  toMessage(row: StoredWithdrawal) {
    return toWithdrawalMessage(row);
  }

  send(row: StoredWithdrawal, _: CreateWithdrawalRequest, note: Buffer): Promise<Sent<WithdrawalReport>> {
    return this.broker.submitWithdrawal({ ...row, origin: row, note }, row.notAfter);
  }

  isRejection({ kind }: WithdrawalReport): boolean {
    return kind === WithdrawalReportKind.REJECTED;
  }

  lookUp(row: StoredWithdrawal): Promise<LookedUp<readonly WithdrawalReport[]>> {
    return this.broker.lookUpWithdrawal(row.id, row.lastReport, row);
  }

  streamReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly WithdrawalReport[]> {
    return this.broker.streamWithdrawalReports(afterNumber, signal);
  }

  objectIdOf({ clientWithdrawalId }: WithdrawalReport): string {
    return clientWithdrawalId;
  }

  describeReport({ kind, brokerReference }: WithdrawalReport) {
    return { report: (WithdrawalReportKind[kind] ?? String(kind)).toLowerCase(), reference: brokerReference };
  }

  reportStep({ number, at }: WithdrawalReport) {
    return { reportNumber: number, upstreamAt: statedInstant(at) };
  }

  /** A withdrawal to the wallet is credited in the commit that records that it was paid. */
  settle(before: StoredWithdrawal, after: StoredWithdrawal, partner: PartnerTransaction): Statement[] {
    if (!isPaidToWallet(before, after)) return [];
    const { id, amountKobo, account } = after;
    const paid = {
      ...({ id: this.ids.object('wtr'), type: 'withdrawal', amountKobo, account } as const),
      ...{ allocation: null, withdrawal: id, bankReference: null, createdAt: this.clock.now() },
    };
    transfer(partner, paid, this.walletSeals);
    return [];
  }
}

/** The earlier withdrawals that a new one is held back by while they are not settled. */
export function similarWithdrawals(withdrawal: StoredWithdrawal): SimilarTo<StoredWithdrawal> {
  const { partnerId, account, amountKobo, destination } = withdrawal;
  return { table: withdrawals, alike: { partnerId, account, amountKobo, destination } };
}
