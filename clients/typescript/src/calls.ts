// Made from the OpenAPI document by `make generate`. Change the contract in proto/, not this file.

import {
  type Account,
  type AccountStatus,
  type AccountTransaction,
  type Allocation,
  type Application,
  type Balance,
  type CallOptions,
  type CancelOrderInput,
  type ContractNote,
  type CreateAllocationRequest,
  type CreateApplicationRequest,
  type CreateKeyRequest,
  type CreateOptions,
  type CreateOrderRequest,
  type CreateWithdrawalRequest,
  type DecideApplicationInput,
  type DecideWithdrawalInput,
  type Decision,
  type Directive,
  type Document,
  type EstimateOrderRequest,
  type Event,
  type ExchangeReport,
  type ExpireOrderInput,
  type FillOrderInput,
  type ForceAllocationRequest,
  type ForceDocumentInput,
  type ForceOrderRequest,
  type ForceWithdrawalRequest,
  type GetAccountInput,
  type GetAccountStatusInput,
  type GetAllocationInput,
  type GetApplicationInput,
  type GetBalanceInput,
  type GetInstrumentInput,
  type GetOrderHistoryInput,
  type GetOrderHistoryResponse,
  type GetOrderInput,
  type GetWithdrawalHistoryInput,
  type GetWithdrawalHistoryResponse,
  type GetWithdrawalInput,
  type InjectFaultRequest,
  type Instrument,
  type Key,
  type Lga,
  type ListAccountTransactionsInput,
  type ListAccountTransactionsResponse,
  type ListAccountsInput,
  type ListAccountsResponse,
  type ListAllocationEventsInput,
  type ListAllocationsInput,
  type ListAllocationsResponse,
  type ListApplicationEventsInput,
  type ListApplicationsInput,
  type ListApplicationsResponse,
  type ListContractNotesInput,
  type ListContractNotesResponse,
  type ListDocumentsInput,
  type ListDocumentsResponse,
  type ListEventsInput,
  type ListEventsResponse,
  type ListInstrumentsInput,
  type ListInstrumentsResponse,
  type ListKeysInput,
  type ListKeysResponse,
  type ListLatestEventsInput,
  type ListLatestEventsResponse,
  type ListLgasInput,
  type ListLgasResponse,
  type ListMarketDaysInput,
  type ListMarketDaysResponse,
  type ListObjectEventsResponse,
  type ListOrderEventsInput,
  type ListOrdersInput,
  type ListOrdersResponse,
  type ListPositionsInput,
  type ListPositionsResponse,
  type ListRequestsInput,
  type ListRequestsResponse,
  type ListStatesResponse,
  type ListTradesInput,
  type ListTradesResponse,
  type ListTransfersInput,
  type ListTransfersResponse,
  type ListWebhookDeliveriesInput,
  type ListWebhookDeliveriesResponse,
  type ListWithdrawalEventsInput,
  type ListWithdrawalsInput,
  type ListWithdrawalsResponse,
  type Market,
  type MarketDay,
  type NewKey,
  type Operation,
  type Order,
  type OrderEstimate,
  type OrderStep,
  type PartnerLimits,
  type Position,
  type RejectOrderInput,
  type RepeatReportInput,
  type RequestRecord,
  type RevokeKeyInput,
  type SandboxAccountState,
  type SandboxClock,
  type SandboxFunds,
  type SandboxSettlement,
  type SendDocumentInput,
  type SendWebhookTestRequest,
  type SetAccountStateRequest,
  type SetFundsRequest,
  type SettleTradesRequest,
  type State,
  type Trade,
  type WalletTotals,
  type WalletTransfer,
  type WebhookDelivery,
  type WebhookTest,
  type Withdrawal,
  type WithdrawalDecision,
  type WithdrawalStep,
  operations,
} from './contract.ts';
import type { IntegerMode, WithIntegers } from './integers.ts';
import type { EventFeed, FeedOptions, Pages } from './pages.ts';

/** A method for each operation. */
export abstract class Operations<Mode extends IntegerMode = 'bigint'> {
  protected abstract call<Answer>(operation: Operation, input: object, options?: CreateOptions): Promise<Answer>;
  protected abstract list<Page, Item>(operation: Operation, input: object, options?: CallOptions): Pages<Page, Item>;

  /** Follows the event feed: every event from a cursor on, in order and without a gap. It does not end by itself. */
  abstract followEvents(options?: FeedOptions): EventFeed<WithIntegers<Event, Mode>>;

  /**
   * Places an order. The order is stored, sent to the exchange once, and returned as it stands then: usually `pending`,
   * or `uncertain` when it is unknown whether the exchange received it (the gateway then finds out; do not place it
   * again).
   *
   * Every request needs an `Idempotency-Key`, a header or metadata of 1 to 255 printable ASCII characters. The same
   * request with the same key never places a second order. It is answered with the first order as it is by now and
   * `Idempotent-Replayed: true`, or with `order_rejected` or `order_not_sent` again when that was the first answer,
   * also while trading is paused or the exchange is away. Two requests are the same when their messages are, once
   * defaults are filled in and account and symbol upper-cased. A key is kept for 30 days, and for as long as its order
   * is not final.
   *
   * Errors that store nothing and leave the key free: `unknown_account`, `unknown_symbol`, `account_not_at_broker`,
   * `settlement_lockout`, `trading_paused`, `exchange_unavailable` (it cannot be reached), `exchange_error` (its answer
   * about the account or the symbol makes no sense), and these two:
   * - `similar_order_unresolved`: there is an order with the same account, symbol, side, type, quantity and price of
   *   which it is not known whether the exchange has it. It is `uncertain`, or has been `sending` for longer than a
   *   send may take. Once it is settled, this one can be placed, if it is still wanted.
   * - `limit_exceeded`: the orders of one Lagos day would be worth more than was agreed. Each counts its quantity times
   *   a price that is fixed when it is placed: a limit buy's own `price_kobo`, and for everything else the highest
   *   price the exchange allows for the symbol that day. A `refused` order counts nothing; a `rejected`, `cancelled` or
   *   `expired` one only the shares that traded. If an order stops counting, the limit of the day on which it was
   *   placed gets the value back.
   *
   * Errors that leave an order behind, with its path in `Location`: `order_rejected` (the exchange rejected it, see
   * `reject_reason`), `order_not_sent` (it is `refused`, and a new try needs a new key), `outcome_not_recorded` (the
   * outcome is not stored yet: read the order, or send the request again).
   *
   * `duplicate_order`: the key belongs to another request, and nothing was done. After `service_unavailable` and
   * `internal_error` the order may be stored or not: the same request with the same key places it, or finds it.
   *
   * Needs a key with the scope `trade`. It counts as a request in progress until it is answered.
   */
  createOrder(input: CreateOrderRequest, options?: CreateOptions): Promise<WithIntegers<Order, Mode>> {
    return this.call(operations.createOrder, input, options);
  }

  /**
   * Lists the partner's orders, newest first.
   *
   * Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list with these filters;
   * another `limit` does no harm.
   *
   * Needs a key with the scope `read`.
   */
  listOrders(input: ListOrdersInput = {}, options?: CallOptions): Pages<WithIntegers<ListOrdersResponse, Mode>, WithIntegers<Order, Mode>> {
    return this.list(operations.listOrders, input, options);
  }

  /**
   * Estimates what an order would cost or bring, charges included. The broker computes it; nothing is stored, no
   * daily limit is used, and it works while trading is paused.
   *
   * An order that the exchange would certainly reject because of the instrument is answered with `order_rejected`, its
   * `reject_reason` is `price_outside_band`, `price_off_tick` or `quantity_off_lot`, and there is no `Location`.
   *
   * Errors: `unknown_account`, `unknown_symbol`, `account_not_at_broker`, `settlement_lockout`, `order_rejected`,
   * `exchange_unavailable` (the broker cannot be reached), `exchange_error` (its answer makes no sense).
   *
   * Needs a key with the scope `trade`. It counts as a request in progress until it is answered.
   */
  estimateOrder(input: EstimateOrderRequest, options?: CallOptions): Promise<WithIntegers<OrderEstimate, Mode>> {
    return this.call(operations.estimateOrder, input, options);
  }

  /**
   * Returns one order as it stands, with everything that has traded. Its history has each report of the exchange.
   *
   * Errors: `order_not_found`, also for another partner's order and for a text that is no order's id.
   *
   * Needs a key with the scope `read`.
   */
  getOrder(input: GetOrderInput, options?: CallOptions): Promise<WithIntegers<Order, Mode>> {
    return this.call(operations.getOrder, input, options);
  }

  /**
   * Cancels the part of an order that has not traded. Answers with the order once the exchange has confirmed; an order
   * already `cancelled` is returned as it is. It works while trading is paused, and takes no `Idempotency-Key`: sending
   * a cancel again is safe.
   *
   * Errors: `order_not_found`; `order_not_cancelable` (it is final, or it is not yet known whether the exchange has it,
   * or the exchange said it was too late); `cancel_unconfirmed` (no clear answer, or another cancel of it is under way:
   * send the cancel again, or read the order); `exchange_unavailable` (the service has just started, and the exchange
   * cannot be reached; nothing was done).
   *
   * Needs a key with the scope `trade`. It counts as a request in progress until it is answered.
   */
  cancelOrder(input: CancelOrderInput, options?: CallOptions): Promise<WithIntegers<Order, Mode>> {
    return this.call(operations.cancelOrder, input, options);
  }

  /**
   * Lists what happened to one order, oldest first: stored, sent, each report of the exchange, cancels, and the
   * evidence by which an unclear order was settled.
   *
   * Errors: `order_not_found`; `invalid_request` with `param` `cursor` when the cursor was not issued for this order's
   * history.
   *
   * Needs a key with the scope `read`.
   */
  getOrderHistory(input: GetOrderHistoryInput, options?: CallOptions): Pages<WithIntegers<GetOrderHistoryResponse, Mode>, WithIntegers<OrderStep, Mode>> {
    return this.list(operations.getOrderHistory, input, options);
  }

  /**
   * Moves an amount from the wallet to an account. The amount is reserved and the allocation stored, sent to the broker
   * once, and returned as it stands after that: usually `booked`, or `uncertain` when it is unknown whether the broker
   * received it (the gateway then finds out; do not allocate again). While it is `sending` or `uncertain` its amount is
   * reserved; when it is `refused` or `rejected` the amount is available again.
   *
   * Every request needs an `Idempotency-Key`, a header or metadata of 1 to 255 printable ASCII characters. The same
   * request with the same key never makes a second allocation. It is answered with the first allocation as it is by now
   * and `Idempotent-Replayed: true`, or with `allocation_rejected` or `allocation_not_sent` again when that was the first
   * answer, also while trading is paused or the broker is away. Two requests are the same when their messages are, once
   * the account is upper-cased. A key is kept for 30 days, and for as long as its allocation is not final.
   *
   * Errors that store nothing and leave the key free: `unknown_account`, `trading_paused`, `exchange_unavailable` (the
   * service has just started, and the broker cannot be reached), and these three:
   * - `similar_allocation_unresolved`: there is an allocation of the same amount to the same account of which it is not
   *   known whether the broker has it. It is `uncertain`, or has been `sending` for longer than a send may take. Once it
   *   is settled, this one can be made, if it is still wanted.
   * - `limit_exceeded`: the allocations of one Lagos day would add up to more than was agreed. Every allocation counts
   *   for the day it was created, except `refused` and `rejected` ones.
   * - `wallet_too_low`: less than the amount is available in the wallet.
   *
   * Errors that leave an allocation behind, with its path in `Location`: `allocation_rejected` (the broker rejected it, see
   * `reject_reason`), `allocation_not_sent` (it is `refused`, and a new try needs a new key), `outcome_not_recorded` (the
   * outcome is not stored yet: read the allocation, or send the request again).
   *
   * `duplicate_allocation`: the key belongs to another request, and nothing was done. After `service_unavailable` and
   * `internal_error` the allocation may be stored or not: the same request with the same key makes it, or finds it.
   *
   * Needs a key with the scope `fund`. It counts as a request in progress until it is answered.
   */
  createAllocation(input: CreateAllocationRequest, options?: CreateOptions): Promise<WithIntegers<Allocation, Mode>> {
    return this.call(operations.createAllocation, input, options);
  }

  /**
   * Lists the partner's allocations, newest first.
   *
   * Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list with these filters;
   * another `limit` does no harm.
   *
   * Needs a key with the scope `read`.
   */
  listAllocations(input: ListAllocationsInput = {}, options?: CallOptions): Pages<WithIntegers<ListAllocationsResponse, Mode>, WithIntegers<Allocation, Mode>> {
    return this.list(operations.listAllocations, input, options);
  }

  /**
   * Returns one allocation as it stands.
   *
   * Errors: `allocation_not_found`, also for another partner's allocation and for a text that is no allocation's id.
   *
   * Needs a key with the scope `read`.
   */
  getAllocation(input: GetAllocationInput, options?: CallOptions): Promise<WithIntegers<Allocation, Mode>> {
    return this.call(operations.getAllocation, input, options);
  }

  /**
   * Takes an amount out of an account. The withdrawal is stored, sent to the broker once, and returned as it stands after that:
   * usually `processing` or `completed`, or `uncertain` when it is unknown whether the broker received it (the gateway then finds
   * out; do not withdraw again).
   *
   * Every request needs an `Idempotency-Key`, a header or metadata of 1 to 255 printable ASCII characters. The same
   * request with the same key never makes a second withdrawal. It is answered with the first withdrawal as it is by now
   * and `Idempotent-Replayed: true`, or with `withdrawal_rejected` or `withdrawal_not_sent` again when that was the first
   * answer, also while trading is paused or the broker is away. Two requests are the same when their messages are, once
   * the account is upper-cased. A key is kept for 30 days, and for as long as its withdrawal can still be paid or rejected.
   *
   * Errors that store nothing and leave the key free: `feature_not_enabled` (also when the broker does not pay to this
   * destination), `unknown_account`, `trading_paused`, `exchange_unavailable` (the service has just started, and the broker
   * cannot be reached), `exchange_error`, and `similar_withdrawal_unresolved`: there is a withdrawal of the same amount from the
   * same account to the same destination of which it is not known whether the broker has it. It is `uncertain`, or has been
   * `sending` for longer than a send may take. Once it is settled, this one can be made, if it is still wanted.
   *
   * Errors that leave a withdrawal behind, with its path in `Location`: `withdrawal_rejected` (the broker rejected it, see
   * `reject_reason`), `withdrawal_not_sent` (it is `refused`, and a new try needs a new key), `outcome_not_recorded` (the
   * outcome is not stored yet: read the withdrawal, or send the request again).
   *
   * `duplicate_withdrawal`: the key belongs to another request, and nothing was done. After `service_unavailable` and
   * `internal_error` the withdrawal may be stored or not: the same request with the same key makes it, or finds it.
   *
   * Needs a key with the scope `withdraw`. It is enabled partner by partner. It counts as a request in progress until it is answered.
   */
  createWithdrawal(input: CreateWithdrawalRequest, options?: CreateOptions): Promise<WithIntegers<Withdrawal, Mode>> {
    return this.call(operations.createWithdrawal, input, options);
  }

  /**
   * Lists the partner's withdrawals, newest first.
   *
   * Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list with these filters;
   * another `limit` does no harm.
   *
   * Needs a key with the scope `read`.
   */
  listWithdrawals(input: ListWithdrawalsInput = {}, options?: CallOptions): Pages<WithIntegers<ListWithdrawalsResponse, Mode>, WithIntegers<Withdrawal, Mode>> {
    return this.list(operations.listWithdrawals, input, options);
  }

  /**
   * Returns one withdrawal as it stands.
   *
   * Errors: `withdrawal_not_found`, also for another partner's withdrawal and for a text that is no withdrawal's id.
   *
   * Needs a key with the scope `read`.
   */
  getWithdrawal(input: GetWithdrawalInput, options?: CallOptions): Promise<WithIntegers<Withdrawal, Mode>> {
    return this.call(operations.getWithdrawal, input, options);
  }

  /**
   * Lists the steps of a withdrawal's history, oldest first: when it was stored and sent, each report of the broker, and what
   * the reconciliation found out.
   *
   * Errors: `withdrawal_not_found`; `invalid_request` with `param` `cursor` when the cursor was not issued for this withdrawal's
   * history.
   *
   * Needs a key with the scope `read`.
   */
  getWithdrawalHistory(input: GetWithdrawalHistoryInput, options?: CallOptions): Pages<WithIntegers<GetWithdrawalHistoryResponse, Mode>, WithIntegers<WithdrawalStep, Mode>> {
    return this.list(operations.getWithdrawalHistory, input, options);
  }

  /**
   * Returns the wallet's balances now.
   *
   * Needs a key with the scope `read`.
   */
  getWallet(options?: CallOptions): Promise<WithIntegers<WalletTotals, Mode>> {
    return this.call(operations.getWallet, {}, options);
  }

  /**
   * Lists the wallet's ledger, newest first. Entries are never changed or removed, so a page never shifts: a cursor goes on
   * right after the entries seen, however many are new.
   *
   * Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list.
   *
   * Needs a key with the scope `read`.
   */
  listTransfers(input: ListTransfersInput = {}, options?: CallOptions): Pages<WithIntegers<ListTransfersResponse, Mode>, WithIntegers<WalletTransfer, Mode>> {
    return this.list(operations.listTransfers, input, options);
  }

  /**
   * Applies for a customer's account. The application is stored, sent to the broker once, and returned as it stands after
   * that: usually `documents_required`, or `uncertain` when it is unknown whether the broker received it (the gateway then
   * finds out; do not apply again).
   *
   * Every request needs an `Idempotency-Key`, a header or metadata of 1 to 255 printable ASCII characters. The same
   * request with the same key never makes a second application. It is answered with the first application as it is by now
   * and `Idempotent-Replayed: true`, or with `application_rejected` or `application_not_sent` again when that was the first
   * answer, also while trading is paused or the broker is away. A key is kept for 30 days, and for as long as its
   * application is not final.
   *
   * Errors that store nothing and leave the key free: `feature_not_enabled` (opening accounts is not enabled for the
   * partner), `trading_paused`, `exchange_unavailable` (the service has just started, and the broker cannot be reached).
   *
   * Errors that leave an application behind, with its path in `Location`: `application_rejected` (the broker rejected it,
   * see `reject_reason`, and `param` where the rejection names a field), `application_not_sent` (it is `refused`, and a new
   * try needs a new key), `outcome_not_recorded` (the outcome is not stored yet: read the application, or send the request
   * again).
   *
   * `duplicate_application`: the key belongs to another request, and nothing was done. After `service_unavailable` and
   * `internal_error` the application may be stored or not: the same request with the same key makes it, or finds it.
   *
   * Needs a key with the scope `apply`. It is enabled partner by partner. It counts as a request in progress until it is answered.
   */
  createApplication(input: CreateApplicationRequest, options?: CreateOptions): Promise<WithIntegers<Application, Mode>> {
    return this.call(operations.createApplication, input, options);
  }

  /**
   * Lists the partner's applications, newest first.
   *
   * Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list; another `limit` does no
   * harm.
   *
   * Needs a key with the scope `read`.
   */
  listApplications(input: ListApplicationsInput = {}, options?: CallOptions): Pages<WithIntegers<ListApplicationsResponse, Mode>, WithIntegers<Application, Mode>> {
    return this.list(operations.listApplications, input, options);
  }

  /**
   * Returns one application as it stands.
   *
   * Errors: `application_not_found`, also for another partner's application and for a text that is no application's id.
   *
   * Needs a key with the scope `read`.
   */
  getApplication(input: GetApplicationInput, options?: CallOptions): Promise<WithIntegers<Application, Mode>> {
    return this.call(operations.getApplication, input, options);
  }

  /**
   * Delivers one of an application's four documents to the broker, within the request. The file is checked to be the whole
   * image its `Content-Type` says, sent once, and not kept. When the broker has all four, the application moves to
   * `submitted`. Over REST the body is the file itself, and must arrive whole within 30 seconds.
   *
   * Sending a file again is safe: one that the broker has is not sent twice, and is answered as it stands, also while
   * trading is paused; one whose earlier delivery was unconfirmed is sent again. A different file for a type that the
   * broker has, or whose earlier file is unconfirmed, is refused. At most two of a partner's documents are on their way to
   * the broker at once.
   *
   * Errors, in the order in which they are looked for: `invalid_request` (`type` is not one of the four);
   * `feature_not_enabled`; `application_not_found`; `application_not_accepting_documents` (it is neither
   * `documents_required` nor `submitted`); `unsupported_media_type`; `document_too_large`; `invalid_request` (the file is
   * empty, or did not arrive whole in time); `invalid_document` (it is not the image its Content-Type says, or too large to
   * show); `document_already_delivered` (the broker has a different file of this type); `earlier_document_unconfirmed`
   * (it did not confirm a different file: send that one again); `document_in_flight` (send it again shortly);
   * `trading_paused`; and of the sending: `document_rejected` (the broker refused it and does not have it),
   * `exchange_unavailable` (the broker cannot be reached, nothing was sent), `document_unconfirmed` (the broker did not
   * confirm receipt: send the same file again).
   *
   * Needs a key with the scope `apply`. It is enabled partner by partner.
   */
  sendDocument(input: SendDocumentInput, options?: CallOptions): Promise<WithIntegers<Document, Mode>> {
    return this.call(operations.sendDocument, input, options);
  }

  /**
   * Lists the documents of an application that the broker has, in the order in which they were first sent.
   *
   * Errors: `application_not_found`.
   *
   * Needs a key with the scope `read`.
   */
  listDocuments(input: ListDocumentsInput, options?: CallOptions): Pages<WithIntegers<ListDocumentsResponse, Mode>, WithIntegers<Document, Mode>> {
    return this.list(operations.listDocuments, input, options);
  }

  /**
   * Lists the accounts the partner can trade for, newest first.
   *
   * Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list.
   *
   * Needs a key with the scope `read`.
   */
  listAccounts(input: ListAccountsInput = {}, options?: CallOptions): Pages<WithIntegers<ListAccountsResponse, Mode>, WithIntegers<Account, Mode>> {
    return this.list(operations.listAccounts, input, options);
  }

  /**
   * Returns one account the partner can trade for, as it is in the list.
   *
   * Errors: `account_not_found`.
   *
   * Needs a key with the scope `read`.
   */
  getAccount(input: GetAccountInput, options?: CallOptions): Promise<WithIntegers<Account, Mode>> {
    return this.call(operations.getAccount, input, options);
  }

  /**
   * Returns what an account may do, as the broker reports it.
   *
   * Errors: `account_not_found`; `feature_not_enabled` when the broker does not offer this.
   *
   * Needs a key with the scope `read`.
   */
  getAccountStatus(input: GetAccountStatusInput, options?: CallOptions): Promise<WithIntegers<AccountStatus, Mode>> {
    return this.call(operations.getAccountStatus, input, options);
  }

  /**
   * Returns the money of an account, as the broker reports it.
   *
   * Errors: `account_not_found`.
   *
   * Needs a key with the scope `read`.
   */
  getBalance(input: GetBalanceInput, options?: CallOptions): Promise<WithIntegers<Balance, Mode>> {
    return this.call(operations.getBalance, input, options);
  }

  /**
   * Lists the stocks an account holds, by symbol.
   *
   * Errors: `account_not_found`; `invalid_request` with `param` `cursor` when the cursor was not issued for this list.
   *
   * Needs a key with the scope `read`.
   */
  listPositions(input: ListPositionsInput, options?: CallOptions): Pages<WithIntegers<ListPositionsResponse, Mode>, WithIntegers<Position, Mode>> {
    return this.list(operations.listPositions, input, options);
  }

  /**
   * Lists the trades of an account from one day to another, newest first.
   *
   * Errors: `account_not_found`; `invalid_request` with `param` `from` when it is no date, is after `to`, or when there are
   * more than 1,000 records in the range, with `to` when it is no date or after today, and with `cursor` when the cursor was
   * not issued for this list and this range. A page goes on right after the records seen, however many are new, in the range
   * its first page had.
   *
   * Needs a key with the scope `read`.
   */
  listTrades(input: ListTradesInput, options?: CallOptions): Pages<WithIntegers<ListTradesResponse, Mode>, WithIntegers<Trade, Mode>> {
    return this.list(operations.listTrades, input, options);
  }

  /**
   * Lists the settled trades of an account with their charges, for trades dated from one day to another, newest first.
   *
   * Errors: `account_not_found`; `invalid_request` with `param` `from` when it is no date, is after `to`, or when there are
   * more than 1,000 records in the range, with `to` when it is no date or after today, and with `cursor` when the cursor was
   * not issued for this list and this range. A page goes on right after the records seen, however many are new, in the range
   * its first page had.
   *
   * Needs a key with the scope `read`.
   */
  listContractNotes(input: ListContractNotesInput, options?: CallOptions): Pages<WithIntegers<ListContractNotesResponse, Mode>, WithIntegers<ContractNote, Mode>> {
    return this.list(operations.listContractNotes, input, options);
  }

  /**
   * Lists the bookings that changed the money of an account from one day to another, newest first.
   *
   * They add up: of two neighbours in the list without `type`, the newer one's `balance_kobo` less its `amount_kobo` is the
   * older one's `balance_kobo`. `opening_kobo` of today's balance plus today's amounts is the newest `balance_kobo`.
   *
   * Errors: `account_not_found`; `feature_not_enabled` when the broker does not offer this; `invalid_request` with `param`
   * `from` when it is no date, is after `to`, or when there are more than 1,000 records in the range, with `to` when it is no
   * date or after today, and with `cursor` when the cursor was not issued for this list, this range and this type. A page goes
   * on right after the records seen, however many are new, in the range its first page had.
   *
   * Needs a key with the scope `read`.
   */
  listAccountTransactions(input: ListAccountTransactionsInput, options?: CallOptions): Pages<WithIntegers<ListAccountTransactionsResponse, Mode>, WithIntegers<AccountTransaction, Mode>> {
    return this.list(operations.listAccountTransactions, input, options);
  }

  /**
   * Lists the states, whole in one page.
   *
   * Needs a key with the scope `read`.
   */
  listStates(options?: CallOptions): Pages<WithIntegers<ListStatesResponse, Mode>, WithIntegers<State, Mode>> {
    return this.list(operations.listStates, {}, options);
  }

  /**
   * Lists the local government areas of a state, whole in one page. A code from this list is what an application names as
   * `lga_of_origin`.
   *
   * Errors: `not_found` for an unknown state.
   *
   * Needs a key with the scope `read`.
   */
  listLgas(input: ListLgasInput, options?: CallOptions): Pages<WithIntegers<ListLgasResponse, Mode>, WithIntegers<Lga, Mode>> {
    return this.list(operations.listLgas, input, options);
  }

  /**
   * Returns the exchange's session now, and whether this service has paused trading.
   *
   * Errors: `exchange_unavailable`, `exchange_error`.
   *
   * Needs a key with the scope `read`.
   */
  getMarket(options?: CallOptions): Promise<WithIntegers<Market, Mode>> {
    return this.call(operations.getMarket, {}, options);
  }

  /**
   * Lists days of the exchange's calendar, oldest first: when it opens and closes, its holidays, and when a day's trades
   * settle. Ask for at most 366 days at a time. The list ends earlier if the calendar does not reach that far.
   *
   * Errors: `exchange_unavailable`, `exchange_error`.
   *
   * Needs a key with the scope `read`.
   */
  listMarketDays(input: ListMarketDaysInput = {}, options?: CallOptions): Pages<WithIntegers<ListMarketDaysResponse, Mode>, WithIntegers<MarketDay, Mode>> {
    return this.list(operations.listMarketDays, input, options);
  }

  /**
   * Lists the instruments of the exchange, by symbol, with what an order for each needs: the day's price band, the tick,
   * the lot, and whether it trades now.
   *
   * Errors: `exchange_unavailable`, `exchange_error`.
   *
   * Needs a key with the scope `read`.
   */
  listInstruments(input: ListInstrumentsInput = {}, options?: CallOptions): Pages<WithIntegers<ListInstrumentsResponse, Mode>, WithIntegers<Instrument, Mode>> {
    return this.list(operations.listInstruments, input, options);
  }

  /**
   * Returns one instrument.
   *
   * Errors: `not_found` for a symbol that the exchange does not list; `exchange_unavailable`, `exchange_error`.
   *
   * Needs a key with the scope `read`.
   */
  getInstrument(input: GetInstrumentInput, options?: CallOptions): Promise<WithIntegers<Instrument, Mode>> {
    return this.call(operations.getInstrument, input, options);
  }

  /**
   * Lists every event of the last 30 days, oldest first. Without a cursor the listing starts at the oldest event still
   * held. An empty page returns the cursor it was asked with: keep it and ask again.
   *
   * Errors: `invalid_request` with `param` `cursor` when events the cursor's holder has not seen were removed (the
   * message names the oldest version held; start again without a cursor), or the cursor was not issued for this list.
   *
   * Needs a key with the scope `read`.
   */
  listEvents(input: ListEventsInput = {}, options?: CallOptions): Pages<WithIntegers<ListEventsResponse, Mode>, WithIntegers<Event, Mode>> {
    return this.list(operations.listEvents, input, options);
  }

  /**
   * Lists the events of one order of the last 30 days, oldest first, as they are in the feed. It shows what became of one
   * order. To follow changes, read the whole feed: only there does a missing version mean a missing event.
   * An older order may have begun before its first event that is listed, because events older than 30 days are removed.
   *
   * Errors: `order_not_found`; `invalid_request` with `param` `cursor` when events that follow the cursor were removed (start again
   * without a cursor), or the cursor was not issued for the events of this order.
   *
   * Needs a key with the scope `read`.
   */
  listOrderEvents(input: ListOrderEventsInput, options?: CallOptions): Pages<WithIntegers<ListObjectEventsResponse, Mode>, WithIntegers<Event, Mode>> {
    return this.list(operations.listOrderEvents, input, options);
  }

  /**
   * Lists the events of one application of the last 30 days, oldest first, as they are in the feed. It shows what became of one
   * application. To follow changes, read the whole feed: only there does a missing version mean a missing event.
   * An older application may have begun before its first event that is listed, because events older than 30 days are removed.
   *
   * Errors: `application_not_found`; `invalid_request` with `param` `cursor` when events that follow the cursor were removed (start again
   * without a cursor), or the cursor was not issued for the events of this application.
   *
   * Needs a key with the scope `read`.
   */
  listApplicationEvents(input: ListApplicationEventsInput, options?: CallOptions): Pages<WithIntegers<ListObjectEventsResponse, Mode>, WithIntegers<Event, Mode>> {
    return this.list(operations.listApplicationEvents, input, options);
  }

  /**
   * Lists the events of one allocation of the last 30 days, oldest first, as they are in the feed. It shows what became of one
   * allocation. To follow changes, read the whole feed: only there does a missing version mean a missing event.
   * An older allocation may have begun before its first event that is listed, because events older than 30 days are removed.
   *
   * Errors: `allocation_not_found`; `invalid_request` with `param` `cursor` when events that follow the cursor were removed (start again
   * without a cursor), or the cursor was not issued for the events of this allocation.
   *
   * Needs a key with the scope `read`.
   */
  listAllocationEvents(input: ListAllocationEventsInput, options?: CallOptions): Pages<WithIntegers<ListObjectEventsResponse, Mode>, WithIntegers<Event, Mode>> {
    return this.list(operations.listAllocationEvents, input, options);
  }

  /**
   * Lists the events of one withdrawal of the last 30 days, oldest first, as they are in the feed. It shows what became of one
   * withdrawal. To follow changes, read the whole feed: only there does a missing version mean a missing event.
   * An older withdrawal may have begun before its first event that is listed, because events older than 30 days are removed.
   *
   * Errors: `withdrawal_not_found`; `invalid_request` with `param` `cursor` when events that follow the cursor were removed (start again
   * without a cursor), or the cursor was not issued for the events of this withdrawal.
   *
   * Needs a key with the scope `read`.
   */
  listWithdrawalEvents(input: ListWithdrawalEventsInput, options?: CallOptions): Pages<WithIntegers<ListObjectEventsResponse, Mode>, WithIntegers<Event, Mode>> {
    return this.list(operations.listWithdrawalEvents, input, options);
  }

  /**
   * Returns the partner's limits, and how much of each is used now.
   *
   * Needs a key with the scope `read`.
   */
  getLimits(options?: CallOptions): Promise<WithIntegers<PartnerLimits, Mode>> {
    return this.call(operations.getLimits, {}, options);
  }

  /**
   * Lists the partner's keys, newest first, revoked ones included.
   *
   * Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list.
   *
   * Needs a key with the scope `keys`.
   */
  listKeys(input: ListKeysInput = {}, options?: CallOptions): Pages<WithIntegers<ListKeysResponse, Mode>, WithIntegers<Key, Mode>> {
    return this.list(operations.listKeys, input, options);
  }

  /**
   * Makes a key and returns it with its secret, which is shown this once. The operation takes no `Idempotency-Key`: after
   * `service_unavailable` or `internal_error` a key may be there whose secret nobody knows; list the keys and revoke it.
   *
   * Errors, none of which leaves a key behind:
   * - `insufficient_scope` with `param` `scopes[…]`: the calling key does not have this scope itself.
   * - `missing_required_field` with `param` `addresses`: a live key needs at least one, and so does a key that is made with
   *   a key that has registered addresses itself.
   * - `invalid_request` with `param` `addresses`: the ranges of a live key hold more than 65,536 IPv4 addresses together, or
   *   more IPv6 addresses than a /32.
   * - `invalid_request` with `param` `addresses[…]`: it is neither an address nor a range, or the calling key does not
   *   work from all of it itself.
   * - `too_many_keys`: the partner has 10 keys that are not revoked. Revoke one.
   *
   * Needs a key with the scope `keys`.
   */
  createKey(input: CreateKeyRequest, options?: CallOptions): Promise<WithIntegers<NewKey, Mode>> {
    return this.call(operations.createKey, input, options);
  }

  /**
   * Ends a key, which may be any of the partner's and also the calling one, and returns it. The key stops at once where this
   * is served, elsewhere as fast as a message travels, and within five seconds even when that message is lost. Streams
   * opened with it end too. A key that was revoked before stays as it is.
   *
   * Of a key that leaked, revoke the keys that were made with it too: `with_children`. All of them end in one step, or none
   * does. The list shows which ended.
   *
   * Errors: `not_found`, also for another partner's key and for a text that is no key's id.
   *
   * Needs a key with the scope `keys`.
   */
  revokeKey(input: RevokeKeyInput, options?: CallOptions): Promise<WithIntegers<Key, Mode>> {
    return this.call(operations.revokeKey, input, options);
  }

  /**
   * Decides what becomes of the next orders on an account, in place of what their symbol would lead to.
   *
   * Errors: `unknown_account` when the account is not one of the partner's; `limit_exceeded` when as many directives
   * wait as may.
   *
   * Needs a key with the scope `trade`.
   */
  forceOrder(input: ForceOrderRequest, options?: CallOptions): Promise<WithIntegers<Directive, Mode>> {
    return this.call(operations.forceOrder, input, options);
  }

  /**
   * Trades shares of an order now, at a price within its limit. An order that is final can be filled too: the exchange reports
   * a late fill.
   *
   * Errors: `order_not_found`, also for another partner's order and for one the exchange never had; `invalid_request` when the
   * exchange could not make such a trade: of more shares than are left, or at a price through the limit.
   *
   * Needs a key with the scope `trade`.
   */
  fillOrder(input: FillOrderInput, options?: CallOptions): Promise<WithIntegers<ExchangeReport, Mode>> {
    return this.call(operations.fillOrder, input, options);
  }

  /**
   * Ends an order now, as if its time in force ran out.
   *
   * Errors: `order_not_found`, as above; `order_not_cancelable` when the order is final.
   *
   * Needs a key with the scope `trade`.
   */
  expireOrder(input: ExpireOrderInput, options?: CallOptions): Promise<WithIntegers<ExchangeReport, Mode>> {
    return this.call(operations.expireOrder, input, options);
  }

  /**
   * Ends an order now, as if the exchange gave it up: it is rejected, or, when a part has traded, cancelled.
   *
   * Errors: `order_not_found`, as above; `order_not_cancelable` when the order is final.
   *
   * Needs a key with the scope `trade`.
   */
  rejectOrder(input: RejectOrderInput, options?: CallOptions): Promise<WithIntegers<ExchangeReport, Mode>> {
    return this.call(operations.rejectOrder, input, options);
  }

  /**
   * Makes the exchange report once more what it reported last about an order. It must change nothing: no event, no
   * webhook.
   *
   * Errors: `order_not_found`, as above.
   *
   * Needs a key with the scope `trade`.
   */
  repeatReport(input: RepeatReportInput, options?: CallOptions): Promise<WithIntegers<ExchangeReport, Mode>> {
    return this.call(operations.repeatReport, input, options);
  }

  /**
   * Opens or declines an application now, whatever was planned for it and whichever documents the broker has.
   *
   * Errors: `application_not_found`, also for another partner's application and for one the broker does not have;
   * `invalid_request` when it is decided already.
   *
   * Needs a key with the scope `apply`.
   */
  decideApplication(input: DecideApplicationInput, options?: CallOptions): Promise<WithIntegers<Decision, Mode>> {
    return this.call(operations.decideApplication, input, options);
  }

  /**
   * Decides what becomes of the next documents of an application.
   *
   * Errors: `application_not_found`, also for another partner's application; `limit_exceeded` when as many directives wait
   * as may.
   *
   * Needs a key with the scope `apply`.
   */
  forceDocument(input: ForceDocumentInput, options?: CallOptions): Promise<WithIntegers<Directive, Mode>> {
    return this.call(operations.forceDocument, input, options);
  }

  /**
   * Decides what becomes of the next allocations to an account, in place of what their amount would lead to.
   *
   * Errors: `unknown_account` when the account is not one of the partner's; `limit_exceeded` when as many directives
   * wait as may.
   *
   * Needs a key with the scope `fund`.
   */
  forceAllocation(input: ForceAllocationRequest, options?: CallOptions): Promise<WithIntegers<Directive, Mode>> {
    return this.call(operations.forceAllocation, input, options);
  }

  /**
   * Decides what becomes of the next withdrawals from an account, in place of what their amount would lead to.
   *
   * Errors: `unknown_account` when the account is not one of the partner's; `limit_exceeded` when as many directives
   * wait as may.
   *
   * Needs a key with the scope `withdraw`.
   */
  forceWithdrawal(input: ForceWithdrawalRequest, options?: CallOptions): Promise<WithIntegers<Directive, Mode>> {
    return this.call(operations.forceWithdrawal, input, options);
  }

  /**
   * Pays, rejects or returns a withdrawal now, whatever was planned for it. One that is `processing` can be paid or rejected. One
   * to a bank account that is `completed` can be returned.
   *
   * Errors: `withdrawal_not_found`, also for another partner's withdrawal and for one the broker does not have;
   * `invalid_request` when its state does not allow it.
   *
   * Needs a key with the scope `withdraw`.
   */
  decideWithdrawal(input: DecideWithdrawalInput, options?: CallOptions): Promise<WithIntegers<WithdrawalDecision, Mode>> {
    return this.call(operations.decideWithdrawal, input, options);
  }

  /**
   * Sets the cash of an account, and how many shares it can sell that it never bought. So you can see an order that is rejected
   * as `insufficient_funds`, and one that waits for a settlement.
   *
   * Errors: `unknown_account` when the account is not one of the partner's.
   *
   * Needs a key with the scope `fund`.
   */
  setFunds(input: SetFundsRequest, options?: CallOptions): Promise<WithIntegers<SandboxFunds, Mode>> {
    return this.call(operations.setFunds, input, options);
  }

  /**
   * Sets what an account may do at the broker. The broker rejects what is forbidden: an allocation or a withdrawal as
   * `account_restricted`, an order as `rejected_by_exchange`, or with the reason of a lockout when the restriction is one.
   *
   * Errors: `unknown_account` when the account is not one of the partner's; `invalid_request` with `param` `forbids` when an
   * activity is there twice, or the account is not restricted.
   *
   * Needs a key with the scope `fund`.
   */
  setAccountState(input: SetAccountStateRequest, options?: CallOptions): Promise<WithIntegers<SandboxAccountState, Mode>> {
    return this.call(operations.setAccountState, input, options);
  }

  /**
   * Settles now all trades of an account that would settle later: their money, shares and contract notes are there at once.
   *
   * Errors: `unknown_account` when the account is not one of the partner's.
   *
   * Needs a key with the scope `fund`.
   */
  settleTrades(input: SettleTradesRequest, options?: CallOptions): Promise<WithIntegers<SandboxSettlement, Mode>> {
    return this.call(operations.settleTrades, input, options);
  }

  /**
   * Lets something go wrong between the gateway and the exchange, the next times one thing is asked of it on behalf of an
   * account, or of one order, application, allocation or withdrawal. So an object becomes `uncertain`, and is seen to settle: with
   * `unavailable_before` for some seconds, with `unavailable_after` for a moment. What was taken and not answered in time is mostly
   * settled by the exchange's report before the request is answered.
   *
   * Errors: `missing_required_field` with `param` `account` when neither `account` nor `id` is there, and with `id` when the
   * call takes an `id` only; `unknown_account` when
   * the account is not one of the partner's; `not_found` when the id is that of no object of the partner's;
   * `limit_exceeded` when as many directives wait as may.
   *
   * Needs a key with the scope `trade`.
   */
  injectFault(input: InjectFaultRequest, options?: CallOptions): Promise<WithIntegers<Directive, Mode>> {
    return this.call(operations.injectFault, input, options);
  }

  /**
   * Sends a test event to the partner's webhook endpoint, paused or not, and waits for its answer, at most 10 seconds. The test
   * is signed like every event. Its `object` is `webhook_test` and its `type` `webhook.test`. It has no version, is in no feed
   * and in no list of deliveries, is not sent again, and changes nothing of the endpoint's state. An endpoint that fails is not
   * an error: `outcome` and `error` tell.
   *
   * Errors: `not_found` when no endpoint is registered, which the operator does; `rate_limited` while a test is under way, and
   * for a second after it.
   *
   * Needs a key with the scope `trade`.
   */
  sendWebhookTest(input: SendWebhookTestRequest = {}, options?: CallOptions): Promise<WithIntegers<WebhookTest, Mode>> {
    return this.call(operations.sendWebhookTest, input, options);
  }

  /**
   * Lists the events that were, are or will be sent to the partner's webhook endpoint, newest first, each with its attempts and
   * what the endpoint answered. Kept for 30 days.
   *
   * Errors: `not_found` when no endpoint is registered; `invalid_request` with `param` `cursor` when the cursor was not issued
   * for this list.
   *
   * Needs a key with the scope `read`.
   */
  listWebhookDeliveries(input: ListWebhookDeliveriesInput = {}, options?: CallOptions): Pages<WithIntegers<ListWebhookDeliveriesResponse, Mode>, WithIntegers<WebhookDelivery, Mode>> {
    return this.list(operations.listWebhookDeliveries, input, options);
  }

  /**
   * Lists the partner's requests of the last hour with their answers, newest first: those with a valid key, also when they were
   * refused. It has at most the last 200, and only those that reached the replica of the gateway which answers; when the
   * replica stops they are gone. Bodies are cut at 4,096 bytes. Never kept are credentials, secrets, what describes a customer
   * (the body of an application), files, and values of fields that the operation does not have. Of paths, queries, bodies and
   * errors only those parts are kept whose form describes nobody; `…` stands for each other one. Requests with the header
   * `Marina-Unlogged: true` are left out.
   *
   * Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list.
   *
   * Needs a key with the scope `read`.
   */
  listRequests(input: ListRequestsInput = {}, options?: CallOptions): Pages<WithIntegers<ListRequestsResponse, Mode>, WithIntegers<RequestRecord, Mode>> {
    return this.list(operations.listRequests, input, options);
  }

  /**
   * Lists the partner's events, newest first, with the cursor from which the feed goes on after them. It is for tools that show
   * what happens now. To follow changes, read the whole feed with ListEvents: only there does a missing version mean a
   * missing event. The list ends at the oldest event still held.
   *
   * Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list.
   *
   * Needs a key with the scope `read`.
   */
  listLatestEvents(input: ListLatestEventsInput = {}, options?: CallOptions): Pages<WithIntegers<ListLatestEventsResponse, Mode>, WithIntegers<Event, Mode>> {
    return this.list(operations.listLatestEvents, input, options);
  }

  /**
   * Returns the sandbox's time. It counts for dates, limits of a day, schedules and what is kept how long. An operator can move
   * it forward, for everyone in the sandbox.
   *
   * Needs a key with the scope `read`.
   */
  getClock(options?: CallOptions): Promise<WithIntegers<SandboxClock, Mode>> {
    return this.call(operations.getClock, {}, options);
  }
}
