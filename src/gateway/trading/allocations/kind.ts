import { AllocationOutcome, type AllocationRecord } from '../../../gen/marina/broker/v1/allocations_pb.ts';
import {
  type CreateAllocationRequest,
  CreateAllocationRequestSchema,
} from '../../../gen/marina/gateway/v1/allocations_pb.ts';
import { type Clock, statedInstant } from '../../../kit/clock.ts';
import { ApiError } from '../../edge/errors.ts';
import type { IdMaker } from '../../edge/ids.ts';
import type { Origin } from '../../edge/origin.ts';
import { existsFact } from '../../store/facts.ts';
import type { PartnerTransaction } from '../../store/partner-transaction.ts';
import type { Statement } from '../../store/statement.ts';
import { accounts } from '../accounts/store.ts';
import type { BrokerAllocations, LookedUp, Sent } from '../broker/broker.ts';
import { type StoredFields, storedFields } from '../shown-message.ts';
import type { DayLimit } from '../submission/day-limit.ts';
import { type CreatedKind, type Precondition, type Prepared, preparedAs } from '../submission/kind.ts';
import { noSimilar, type SimilarTo } from '../submission/similar.ts';
import { objectHistory } from '../submission/table.ts';
import type { TransferTypeWord } from '../wallet/rules.ts';
import { transfer, usableWallet, type WalletSeals, wallet } from '../wallet/store.ts';
import { allocationStates, countedKobo, settlementOf } from './rules.ts';
import { applyReport } from './settlement/rules.ts';
import {
  allocations,
  notedAllocation,
  type ShownAllocation,
  type StoredAllocation,
  toAllocationMessage,
} from './table.ts';

/** An allocation a partner wants. */
type WantedAllocation = Pick<ShownAllocation, keyof StoredFields<CreateAllocationRequest>>;

/** How allocations use the mechanism that stores, sends once, records and reconciles. */
export class AllocationKind implements CreatedKind<StoredAllocation, AllocationRecord, CreateAllocationRequest> {
  readonly name = 'allocation';
  readonly prefix = 'alc';
  readonly table = allocations;
  readonly history = objectHistory;
  readonly upstream = 'broker';
  readonly accepted = 'booked';
  readonly states = allocationStates;
  readonly absent = { state: 'refused', reason: 'It never reached the broker.' } as const;
  readonly noted = notedAllocation;
  readonly dayLimit: DayLimit<StoredAllocation> = {
    usage: 'allocations',
    name: 'allocations per day',
    limit: 'allocationsKoboPerDay',
    countedKobo,
  };
  readonly applyReport = applyReport<StoredAllocation>;
  readonly blank = { brokerReference: null, evidence: 'stored, before it is sent' };
  readonly shared = (partnerId: string) => [wallet(partnerId, this.walletSeals)];

  constructor(
    private readonly broker: BrokerAllocations,
    private readonly clock: Clock,
    private readonly ids: IdMaker,
    private readonly walletSeals: WalletSeals,
  ) {}

  /** It needs no other system: everything is decided in the transaction that stores it. */
  prepare(_: Origin, request: CreateAllocationRequest): Prepared<StoredAllocation> {
    const wanted = storedFields(CreateAllocationRequestSchema, request) as WantedAllocation;
    // What is decided here comes last, whatever a request holds.
    return preparedAs({ ...this.blank, ...wanted });
  }

  affects({ partnerId, account }: StoredAllocation) {
    return { action: 'fund', partnerId, account } as const;
  }

  preconditions(row: StoredAllocation): Precondition[] {
    const { partnerId, account } = row;
    return [
      {
        fact: existsFact(accounts.find({ partnerId, account }), true),
        mustBe: true,
        otherwise: () => new ApiError('unknown_account', { param: 'account' }),
      },
      noSimilar('allocation', similarAllocations(row), this.clock),
    ];
  }

  take(row: StoredAllocation, partner: PartnerTransaction): void {
    const { availableKobo } = usableWallet(partner, this.walletSeals).head;
    if (availableKobo < row.amountKobo) {
      throw new ApiError('wallet_too_low', {
        message: `The wallet has ${availableKobo} kobo available, and this allocation needs ${row.amountKobo}.`,
      });
    }
    this.#transfer('reserve', row, partner);
  }

  toMessage(row: StoredAllocation) {
    return toAllocationMessage(row);
  }

  send(row: StoredAllocation, _: CreateAllocationRequest, note: Buffer): Promise<Sent<AllocationRecord>> {
    return this.broker.submitAllocation({ origin: row, note, ...row }, row.notAfter);
  }

  isRejection({ outcome }: AllocationRecord): boolean {
    return outcome === AllocationOutcome.REJECTED;
  }

  async lookUp(row: StoredAllocation): Promise<LookedUp<readonly AllocationRecord[]>> {
    const looked = await this.broker.lookUpAllocation(row.id, row);
    return looked.found ? { ...looked, answer: [looked.answer] } : looked;
  }

  reportStep({ at }: AllocationRecord) {
    return { upstreamAt: statedInstant(at) };
  }

  settle(before: StoredAllocation, after: StoredAllocation, partner: PartnerTransaction): Statement[] {
    const settlement = settlementOf(before.state, after.state);
    if (settlement !== undefined) this.#transfer(settlement, after, partner);
    return [];
  }

  #transfer(type: TransferTypeWord, { id, amountKobo, account }: StoredAllocation, partner: PartnerTransaction): void {
    const transferred = {
      id: this.ids.object('wtr'),
      type,
      amountKobo,
      allocation: id,
      account: type === 'post' ? account : null,
      bankReference: null,
      createdAt: this.clock.now(),
    };
    transfer(partner, transferred, this.walletSeals);
  }
}

/** The earlier allocations that a new one is held back by while they are not settled. */
export function similarAllocations(allocation: StoredAllocation): SimilarTo<StoredAllocation> {
  const { partnerId, account, amountKobo } = allocation;
  return { table: allocations, alike: { partnerId, account, amountKobo } };
}
