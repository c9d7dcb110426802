import { AllocationOutcome, type AllocationRecord } from '../../../gen/marina/broker/v1/allocations_pb.ts';
import {
  type CreateAllocationRequest,
  CreateAllocationRequestSchema,
} from '../../../gen/marina/gateway/v1/allocations_pb.ts';
import { type Clock, lagosDay, statedInstant } from '../../../kit/clock.ts';
import { toDayLimits } from '../../edge/auth/store.ts';
import { ApiError } from '../../edge/errors.ts';
import type { IdMaker } from '../../edge/ids.ts';
import { type Fact, sharing, together, whether } from '../../store/facts.ts';
import type { PartnerTransaction } from '../../store/partner-transaction.ts';
import type { Statement } from '../../store/statement.ts';
import { accounts } from '../accounts/store.ts';
import type { AllocationBroker } from '../broker/back-office.ts';
import type { LookedUp, Sent } from '../broker/port.ts';
import { type StoredFields, storedFields } from '../shown-message.ts';
import type { CreatedKind, Draft } from '../submission/kind.ts';
import { checkDayLimit } from '../submission/rules.ts';
import { isSimilarUnsettled } from '../submission/similar.ts';
import { objectHistory, usage } from '../submission/table.ts';
import type { TransferTypeWord } from '../wallet/rules.ts';
import { transfer, usableWallet, type WalletSeals, wallet } from '../wallet/store.ts';
import { allocationStates, countedKobo, settlementOf } from './rules.ts';
import { applyReport } from './settlement/rules.ts';
import {
  allocations,
  notedAllocation,
  type ShownAllocation,
  type StoredAllocation,
  similarAllocations,
  toAllocationMessage,
} from './table.ts';

/** The parts of the gateway that allocations need. */
export interface AllocationParts {
  readonly broker: AllocationBroker;
  readonly clock: Clock;
  readonly ids: IdMaker;
  readonly walletSeals: WalletSeals;
}

/** An allocation a partner wants. */
type WantedAllocation = Pick<ShownAllocation, keyof StoredFields<CreateAllocationRequest>>;

interface AllocationFacts {
  readonly isOwnAccount: boolean;
  readonly isSimilar: boolean;
}

/** How allocations use the mechanism that stores, sends once, records and reconciles. */
export class AllocationKind
  implements CreatedKind<StoredAllocation, AllocationRecord, CreateAllocationRequest, AllocationFacts>
{
  readonly name = 'allocation';
  readonly prefix = 'alc';
  readonly path = '/v1/allocations';
  readonly codes = {
    duplicate: 'duplicate_allocation',
    rejected: 'allocation_rejected',
    notSent: 'allocation_not_sent',
  } as const;
  readonly table = allocations;
  readonly history = objectHistory;
  readonly upstream = 'broker';
  readonly accepted = 'booked';
  readonly states = allocationStates;
  readonly absent = { state: 'refused', reason: 'It never reached the broker.' } as const;
  readonly noted = notedAllocation;
  readonly applyReport = applyReport<StoredAllocation>;
  readonly blank = { brokerReference: null, evidence: 'stored, before it is sent' };
  readonly shared = (partnerId: string) => [wallet(partnerId, this.parts.walletSeals)];

  constructor(private readonly parts: AllocationParts) {}

  /** It needs no other system: everything is decided in the transaction that stores it. */
  prepareCached(_: string, request: CreateAllocationRequest): Draft<StoredAllocation> {
    const wanted = storedFields(CreateAllocationRequestSchema, request) as WantedAllocation;
    // What is decided here comes last, whatever a request holds.
    return { ...this.blank, ...wanted };
  }

  dated(createdAt: number) {
    return { countedDay: lagosDay(createdAt) };
  }

  facts(row: StoredAllocation): Fact<AllocationFacts> {
    const { partnerId, account, countedDay } = row;
    return together({
      isOwnAccount: whether(accounts.find({ partnerId, account }), true),
      isSimilar: isSimilarUnsettled(similarAllocations(row), this.parts.clock),
      shared: sharing(usage(partnerId, countedDay, 'allocations'), wallet(partnerId, this.parts.walletSeals)),
    });
  }

  check(row: StoredAllocation, { isOwnAccount, isSimilar }: AllocationFacts, partner: PartnerTransaction): void {
    const { partnerId, amountKobo, countedDay } = row;
    if (!isOwnAccount) throw new ApiError('unknown_account', { param: 'account' });
    if (isSimilar) throw new ApiError('similar_allocation_unresolved');
    const { allocationsKoboPerDay } = toDayLimits(partner.row);
    const used = partner.get(usage(partnerId, countedDay, 'allocations'));
    checkDayLimit('allocations per day', allocationsKoboPerDay, used, amountKobo, row.createdAt);
  }

  take(row: StoredAllocation, partner: PartnerTransaction): void {
    const { availableKobo } = usableWallet(partner, this.parts.walletSeals).head;
    if (availableKobo < row.amountKobo) {
      throw new ApiError('wallet_too_low', {
        message: `The wallet has ${availableKobo} kobo available, and this allocation needs ${row.amountKobo}.`,
      });
    }
    this.#transfer('reserve', row, partner);
    partner.add(usage(row.partnerId, row.countedDay, 'allocations'), countedKobo(row));
  }

  send(row: StoredAllocation, _: CreateAllocationRequest, note: Buffer): Promise<Sent<AllocationRecord>> {
    return this.parts.broker.submitAllocation({ origin: row, note, ...row }, row.notAfter);
  }

  isRejection({ outcome }: AllocationRecord): boolean {
    return outcome === AllocationOutcome.REJECTED;
  }

  async lookUp(row: StoredAllocation): Promise<LookedUp<readonly AllocationRecord[]>> {
    const looked = await this.parts.broker.lookUpAllocation(row.id, row);
    return looked.found ? { ...looked, answer: [looked.answer] } : looked;
  }

  reportStep({ at }: AllocationRecord) {
    return { upstreamAt: statedInstant(at) };
  }

  settle(before: StoredAllocation, after: StoredAllocation, partner: PartnerTransaction): Statement[] {
    const { partnerId, countedDay } = after;
    partner.add(usage(partnerId, countedDay, 'allocations'), countedKobo(after) - countedKobo(before));
    const settlement = settlementOf(before.state, after.state);
    if (settlement !== undefined) this.#transfer(settlement, after, partner);
    return [];
  }

  toEvent(row: StoredAllocation) {
    return { data: { case: 'allocation' as const, value: toAllocationMessage(row) } };
  }

  #transfer(type: TransferTypeWord, { id, amountKobo, account }: StoredAllocation, partner: PartnerTransaction): void {
    const { ids, clock, walletSeals } = this.parts;
    const transferred = {
      id: ids.object('wtr'),
      type,
      amountKobo,
      allocation: id,
      account: type === 'post' ? account : null,
      bankReference: null,
      createdAt: clock.now(),
    };
    transfer(partner, transferred, walletSeals);
  }
}
