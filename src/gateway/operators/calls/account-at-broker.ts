import { status } from '@grpc/grpc-js';
import type { GetAccountStatusResponse } from '../../../gen/marina/broker/v1/accounts_pb.ts';
import { ApiError, type ErrorCode } from '../../edge/errors.ts';
import type { BrokerOrders, BrokerRecords } from '../../trading/broker/broker.ts';
import type { ReadQueue } from '../../trading/broker/read-queue.ts';
import { StatedCapabilities } from '../../trading/broker/stated-capabilities.ts';
import { operatorsReader } from './call.ts';
import { AdminError } from './errors.ts';

interface AccountReads {
  readonly records: Pick<BrokerRecords, 'accountStatusWithHolder'>;
  readonly orders: Pick<BrokerOrders, 'capabilities'>;
  readonly reads: Pick<ReadQueue, 'readFor'>;
  /** The longest wait for the broker's answer, with the wait for the question's turn. */
  readonly timeoutMs: number;
}

/** The broker's answer about an account, by the names of `BrokerAnswer`. */
export type AccountAtBroker = ReturnType<typeof toFound> | { readonly answer: 'not_found' | 'not_offered' | 'none' };

/** The errors of a read after which it is unknown whether the broker has the account. */
const withoutAnswer: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['exchange_unavailable', 'exchange_error']);

/** Asks the broker about accounts for operators. Its answer has the initials of a customer: never store or log it. */
export class AccountsAtBroker {
  readonly #capabilities: StatedCapabilities;

  constructor(private readonly parts: AccountReads) {
    this.#capabilities = new StatedCapabilities(parts.orders);
  }

  /** Asks about one account. Throws only if something is wrong here, not at the broker. */
  async ask(account: string): Promise<AccountAtBroker> {
    const { reads, records, timeoutMs } = this.parts;
    try {
      return await reads.readFor(
        operatorsReader,
        async (time) => {
          if (!(await this.#capabilities.has((stated) => stated.accountStatus, time))) return { answer: 'not_offered' };
          return toFound(await records.accountStatusWithHolder(account, time));
        },
        timeoutMs,
      );
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 'account_not_at_broker') return { answer: 'not_found' };
      if (withoutAnswer.has(error.code)) return { answer: 'none' };
      throw error;
    }
  }
}

/** Throws unless the broker has the account, or nobody can tell and the operator links it unchecked. */
export function requireAtBroker({ answer }: AccountAtBroker, isUnchecked: boolean): void {
  if (answer === 'not_found') {
    throw new AdminError(status.FAILED_PRECONDITION, 'the broker does not have this account; nothing was stored');
  }
  if (answer === 'found' || isUnchecked) return;
  const why = answer === 'none' ? 'the broker gave no answer' : 'the broker does not offer the status of accounts';
  const rest = 'so nobody knows whether it has this account; nothing was stored: call again, or set `unchecked`';
  throw new AdminError(status.UNAVAILABLE, `${why}, ${rest}`);
}

function toFound({ state, restrictions, chn, asOf, holderInitials }: GetAccountStatusResponse) {
  return { answer: 'found' as const, state, restrictions, hasChn: chn !== '', holderInitials, asOf };
}
