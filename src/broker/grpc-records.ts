import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { Accounts, type GetBalanceResponse } from '../gen/marina/broker/v1/accounts_pb.ts';
import { type Lga, Reference, type State } from '../gen/marina/broker/v1/reference_pb.ts';
import { ApiError, type ErrorCode } from '../lib/errors.ts';
import { UpstreamCalls } from './calls.ts';
import { Connection, codeOf } from './connection.ts';
import type { ContractNotePlace, ReadTime, RecordRange, RecordsBroker, TradePlace } from './port.ts';
import { isAreaList, isBalance, isMarket, isNotesPage, isPositionsPage, isTradesPage } from './record-checks.ts';

/**
 * A broker's records met over `marina.broker.v1`. Its reads have connections of their own, so that a hanging one stands
 * in no order's way.
 */
export class GrpcRecords implements RecordsBroker {
  readonly #accounts: Connection<typeof Accounts>;
  readonly #reference: Connection<typeof Reference>;

  constructor({ address, calls = new UpstreamCalls() }: { readonly address: string; readonly calls?: UpstreamCalls }) {
    this.#accounts = new Connection(Accounts, address, 'broker', calls);
    this.#reference = new Connection(Reference, address, 'broker', calls);
  }

  async balance(account: string, time: ReadTime): Promise<GetBalanceResponse> {
    const answer = await read('account_not_at_broker', () => this.#accounts.call('getBalance', { account }, time));
    return sensible(answer, isBalance(answer, account));
  }

  async positions(account: string, page: { afterSymbol: string; limit: number }, time: ReadTime) {
    const answer = await read('account_not_at_broker', () =>
      this.#accounts.call('listPositions', { account, ...page }, time),
    );
    return sensible(answer, isPositionsPage(answer, account, page));
  }

  async trades(range: RecordRange<TradePlace>, time: ReadTime) {
    const { account, from: fromDate, to: toDate, limit } = range;
    const after = range.after && { executedAt: timestampFromMs(range.after.executedAtMs), id: range.after.id };
    const answer = await read('account_not_at_broker', () =>
      this.#accounts.call('listTrades', { account, fromDate, toDate, limit, after }, time),
    );
    return sensible(answer, isTradesPage(answer, range));
  }

  async contractNotes(range: RecordRange<ContractNotePlace>, time: ReadTime) {
    const { account, from: fromDate, to: toDate, limit, after } = range;
    const answer = await read('account_not_at_broker', () =>
      this.#accounts.call('listContractNotes', { account, fromDate, toDate, limit, after }, time),
    );
    return sensible(answer, isNotesPage(answer, range));
  }

  async market(time: ReadTime) {
    const answer = await read('exchange_error', () => this.#accounts.call('getMarket', {}, time));
    return sensible(answer, isMarket(answer));
  }

  async states(time: ReadTime): Promise<readonly State[]> {
    const { states } = await read('exchange_error', () => this.#reference.call('listStates', {}, time));
    return sensible(states, isAreaList(states, 32));
  }

  async lgas(state: string, time: ReadTime): Promise<readonly Lga[]> {
    const { lgas } = await read('not_found', () => this.#reference.call('listLgas', { state }, time));
    return sensible(lgas, isAreaList(lgas, 64));
  }

  close(): void {
    this.#accounts.close();
    this.#reference.close();
  }
}

function sensible<Answer>(answer: Answer, makesSense: boolean): Answer {
  if (!makesSense) throw new ApiError('exchange_error');
  return answer;
}

/** A read that fails changed nothing, whatever the reason. */
async function read<T>(notFound: ErrorCode, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const code = codeOf(error);
    if (code === status.NOT_FOUND) throw new ApiError(notFound, { cause: error });
    const makesNoSense = code === status.INTERNAL || code === status.UNIMPLEMENTED;
    throw new ApiError(makesNoSense ? 'exchange_error' : 'exchange_unavailable', { cause: error });
  }
}
