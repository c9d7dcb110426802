# Made from the OpenAPI document by `make generate`. Change the contract in proto/, not this file.
"""Every type and operation of the contract."""

from __future__ import annotations

from typing import List, Literal, NamedTuple, Optional, Tuple, TypedDict, Union


# An activity that can be forbidden to an account. The list can grow.
#
# - `buy`: To buy.
# - `sell`: To sell.
# - `fund`: To get money by an allocation.
# - `withdraw`: To withdraw money.
#
# The list can grow: accept a value you do not know.
AccountActivity = Union[Literal["buy", "sell", "fund", "withdraw"], str]


# Why an account is restricted. The list can grow.
#
# - `broker_hold`: The broker holds it: ask the broker.
# - `regulator`: A regulator or a court demands it.
# - `kyc_expired`: The customer's documents have expired, and the broker needs new ones.
# - `settlement_lockout`: It owes money for trades that have settled. Money on the account ends it.
# - `deceased`: The customer is deceased.
# - `other`: Any other reason.
#
# The list can grow: accept a value you do not know.
AccountRestrictionCode = Union[Literal["broker_hold", "regulator", "kyc_expired", "settlement_lockout", "deceased", "other"], str]


# The state of an account. The list can grow.
#
# - `active`: Nothing is forbidden.
# - `restricted`: At least one restriction forbids something.
# - `closed`: It is closed for good, and everything is forbidden.
#
# The list can grow: accept a value you do not know.
AccountState = Union[Literal["active", "restricted", "closed"], str]


# Why the money of an account changed. The list can grow.
#
# - `buy`: Shares were bought: the amount of the trade without charges.
# - `sale`: Shares were sold: the amount of the trade without charges.
# - `charge`: The charges of a trade, booked right after it.
# - `allocation`: An allocation was booked.
# - `withdrawal`: Money was withdrawn.
# - `withdrawal_return`: A withdrawal came back.
# - `dividend`: A company paid a dividend.
# - `withholding_tax`: Tax was withheld from a dividend.
# - `fee`: A fee that belongs to no trade.
# - `reversal`: An earlier transaction was taken back: `reverses` has its id.
# - `adjustment`: The broker corrected the money, for a reason that no other type has.
#
# The list can grow: accept a value you do not know.
AccountTransactionType = Union[Literal["buy", "sale", "charge", "allocation", "withdrawal", "withdrawal_return", "dividend", "withholding_tax", "fee", "reversal", "adjustment"], str]


# Why the broker rejected an allocation. The list can grow.
#
# - `account_not_at_broker`: The broker does not have the account.
# - `account_restricted`: The account takes no money now.
# - `amount_not_accepted`: The broker does not take this amount.
# - `rejected_by_broker`: Any other reason.
#
# The list can grow: accept a value you do not know.
AllocationRejectReason = Union[Literal["account_not_at_broker", "account_restricted", "amount_not_accepted", "rejected_by_broker"], str]


# Where an allocation stands. The list can grow: treat an unknown state as one that may still change.
#
# - `sending`: Stored, its amount reserved; the send to the broker is in progress.
# - `booked`: The money is on the account.
# - `refused`: It is not at the broker and will not be: it never left the gateway, or the broker refused it as too late, or it was proven that the broker's record does not have it. Its amount is available again.
# - `rejected`: The broker rejected it; see `reject_reason`. Its amount is available again.
# - `uncertain`: It is unknown whether the broker received it. The gateway does not send it again and reconciles it against the broker's record; its amount stays reserved.
#
# The list can grow: accept a value you do not know.
AllocationState = Union[Literal["sending", "booked", "refused", "rejected", "uncertain"], str]


# Why the broker rejected an application. The list can grow.
#
# - `invalid_field`: A field is not what the broker accepts; `param` names it where the broker does.
# - `already_at_broker`: The customer already has an account at the broker.
# - `rejected_by_broker`: The broker refused to take it, for any other reason.
# - `declined_by_broker`: The broker's staff looked at it and declined.
#
# The list can grow: accept a value you do not know.
ApplicationRejectReason = Union[Literal["invalid_field", "already_at_broker", "rejected_by_broker", "declined_by_broker"], str]


# Where an application stands. The list can grow: treat an unknown state as one that may still change.
#
# - `sending`: Stored; the send to the broker is in progress.
# - `documents_required`: The broker has it and wants the four documents.
# - `submitted`: The broker has it and its four documents, and decides.
# - `opened`: The account is open: `account` holds its code, and the partner can trade for it.
# - `uncertain`: It is unknown whether the broker received it. The gateway does not send it again and reconciles it against the broker's record.
# - `rejected`: The broker rejected it at once or declined it later; see `reject_reason` and `param`.
# - `refused`: It never reached the broker.
# - `unplaced`: It was unknown whether the broker received it, and it was proven that the broker's record does not have it.
#
# The list can grow: accept a value you do not know.
ApplicationState = Union[Literal["sending", "documents_required", "submitted", "opened", "uncertain", "rejected", "refused", "unplaced"], str]


# A segment of the exchange's list. The list can grow.
#
# - `main`: The main board.
# - `premium`: The premium board.
# - `growth`: The growth board.
# - `asem`: The alternative securities market.
# - `etf`: The board of exchange-traded funds.
#
# The list can grow: accept a value you do not know.
Board = Union[Literal["main", "premium", "growth", "asem", "etf"], str]


# Where a document stands. The list can grow.
#
# - `delivered`: The broker has the file. This does not mean that the broker's staff verified it.
#
# The list can grow: accept a value you do not know.
DocumentState = Union[Literal["delivered"], str]


# The subject of a document of an application. The list can grow.
#
# - `photo`: A passport photograph.
# - `government_id`: A government-issued ID.
# - `utility_bill`: A utility bill, for the address.
# - `signature`: A specimen of the customer's signature.
#
# The list can grow: accept a value you do not know.
DocumentType = Union[Literal["photo", "government_id", "utility_bill", "signature"], str]


# A kind of report of an exchange about an order.
#
# - `accepted`: It has the order.
# - `rejected`: It does not take the order, or gave it up.
# - `trade`: Shares traded.
# - `cancelled`: The rest that had not traded was cancelled.
# - `expired`: The rest that had not traded expired.
#
# The list can grow: accept a value you do not know.
ExchangeReportKind = Union[Literal["accepted", "rejected", "trade", "cancelled", "expired"], str]


# The kind of instrument of a symbol. The list can grow.
#
# - `equity`: A share of a company.
# - `etf`: A share of an exchange-traded fund. It takes limit orders only.
#
# The list can grow: accept a value you do not know.
InstrumentKind = Union[Literal["equity", "etf"], str]


# The kind of a day in the exchange's calendar. The list can grow.
#
# - `trading_day`: The exchange trades at its usual hours.
# - `half_day`: It trades, and closes earlier than usual.
# - `weekend`: It is closed, as on every such day of the week.
# - `holiday`: It is closed on a day on which it would trade.
#
# The list can grow: accept a value you do not know.
MarketDayKind = Union[Literal["trading_day", "half_day", "weekend", "holiday"], str]


# The phase that the exchange is in. The list can grow.
#
# - `open`: It trades.
# - `closed`: Its day is over, or has not begun.
# - `paused`: It pauses within its day.
# - `halted`: It stopped trading out of turn.
#
# The list can grow: accept a value you do not know.
MarketSession = Union[Literal["open", "closed", "paused", "halted"], str]


# Why the exchange rejected an order. The list can grow.
#
# - `insufficient_funds`: The account has too little money, or too few shares.
# - `market_closed`: The market is closed.
# - `settlement_lockout`: The account is locked until an earlier trade settles.
# - `limit_orders_etf_only`: The symbol is an exchange-traded fund, which takes limit orders only.
# - `unknown_symbol`: The exchange does not know the symbol.
# - `symbol_not_tradable`: The symbol cannot be traded now.
# - `account_not_at_broker`: The broker does not have the account.
# - `rejected_by_exchange`: Any other reason.
# - `price_off_tick`: The limit price is no multiple of the instrument's tick. See `tick_sizes` of the instrument.
# - `price_outside_band`: The limit price is outside the day's price band. See `lower_price_kobo` and `upper_price_kobo` of the instrument.
# - `quantity_off_lot`: The quantity is no multiple of the instrument's lot. See `lot_size` of the instrument.
#
# The list can grow: accept a value you do not know.
OrderRejectReason = Union[Literal["insufficient_funds", "market_closed", "settlement_lockout", "limit_orders_etf_only", "unknown_symbol", "symbol_not_tradable", "account_not_at_broker", "rejected_by_exchange", "price_off_tick", "price_outside_band", "quantity_off_lot"], str]


# Which way an order trades.
#
# - `buy`: Buy shares.
# - `sell`: Sell shares.
#
# The list can grow: accept a value you do not know.
OrderSide = Union[Literal["buy", "sell"], str]


# Where an order stands. The list can grow: treat an unknown state as one that may still change.
#
# - `sending`: Stored; the send to the exchange is in progress.
# - `pending`: The exchange has the order.
# - `partially_filled`: Some of the order has traded.
# - `filled`: The order has traded in full.
# - `uncertain`: It is unknown whether the exchange received it. The gateway does not send it again and reconciles it against the exchange's record.
# - `rejected`: The exchange rejected it; see `reject_reason`.
# - `refused`: It is not at the exchange and will not be: it never left the gateway, or the exchange refused it as too late, or it was proven that the exchange's record does not have it.
# - `cancelled`: The part that had not traded was cancelled, and the exchange confirmed it; or the exchange gave up an order of which a part had traded.
# - `expired`: Its time in force ran out before all of it traded.
#
# The list can grow: accept a value you do not know.
OrderState = Union[Literal["sending", "pending", "partially_filled", "filled", "uncertain", "rejected", "refused", "cancelled", "expired"], str]


# The kind of a step of an order's history. The list can grow.
#
# - `stored`: The order was stored.
# - `sent`: The result of sending it to the exchange: accepted, rejected, unknown, or never sent.
# - `report`: The exchange reported something about it.
# - `reconciliation`: The exchange's record was asked about it, or the time to send it ran out without a known outcome.
# - `cancel`: A cancel was sent to the exchange, or its result is known.
# - `contradiction`: The exchange reported something impossible in the order's state, final or not. The state was kept, and the operators are alerted. Shares that traded after `rejected` or `refused` are counted in `filled_quantity` all the same.
# - `settled_by_operator`: The operators settled it with the exchange: what became of the order, a trade that was not reported, or a trade that the exchange took back or corrected.
#
# The list can grow: accept a value you do not know.
OrderStepKind = Union[Literal["stored", "sent", "report", "reconciliation", "cancel", "contradiction", "settled_by_operator"], str]


# How an order is priced.
#
# - `limit`: Trades at `price_kobo` or better.
# - `market`: Trades at the market's price.
#
# The list can grow: accept a value you do not know.
OrderType = Union[Literal["limit", "market"], str]


# How a request came.
#
# - `rest`: Over REST.
# - `grpc`: Over gRPC.
# - `connect`: Over Connect.
#
# The list can grow: accept a value you do not know.
RequestProtocol = Union[Literal["rest", "grpc", "connect"], str]


# The decision on an application.
#
# - `open`: The account is opened.
# - `decline`: The broker's staff declines.
#
# The list can grow: accept a value you do not know.
SandboxApplicationOutcome = Union[Literal["open", "decline"], str]


# The decision on a withdrawal.
#
# - `paid`: The broker pays it.
# - `rejected`: The broker rejects it, with `reject_reason`.
# - `returned`: The bank sends the money back.
#
# The list can grow: accept a value you do not know.
SandboxWithdrawalDecision = Union[Literal["paid", "rejected", "returned"], str]


# A right that a key may have. Every operation needs exactly one scope.
#
# - `read`: Every read.
# - `trade`: Create, estimate and cancel orders.
# - `apply`: Create applications and send their documents.
# - `fund`: Create allocations.
# - `keys`: List, create and revoke keys.
# - `withdraw`: Create withdrawals.
#
# The list can grow: accept a value you do not know.
Scope = Union[Literal["read", "trade", "apply", "fund", "keys", "withdraw"], str]


# How long an order lives.
#
# - `day`: Until the end of the trading day.
# - `gtc`: Until it is cancelled.
# - `ioc`: Immediate or cancel: the part that cannot trade at once expires.
# - `fok`: Fill or kill: it trades in full at once, or expires.
#
# The list can grow: accept a value you do not know.
TimeInForce = Union[Literal["day", "gtc", "ioc", "fok"], str]


# Which side of a trade an account was on. The list can grow.
#
# - `buy`: It bought.
# - `sell`: It sold.
#
# The list can grow: accept a value you do not know.
TradeSide = Union[Literal["buy", "sell"], str]


# Whether an instrument trades now, and if not, why. The list can grow: take a value you do not know for "does not trade".
#
# - `trading`: Orders are taken, and trade.
# - `market_closed`: The exchange's day is over, or has not begun. An order is rejected as `market_closed`.
# - `market_paused`: The exchange pauses within its day, such as before an auction. It takes orders, and trades none.
# - `market_halted`: The exchange stopped all trading out of turn. An order is rejected as `market_closed`.
# - `instrument_halted`: The exchange stopped trading in this instrument. An order is rejected as `symbol_not_tradable`.
#
# The list can grow: accept a value you do not know.
TradingStatus = Union[Literal["trading", "market_closed", "market_paused", "market_halted", "instrument_halted"], str]


# The effect of an entry of the ledger. The list can grow.
#
# - `credit`: A payment came in: the amount is available.
# - `reserve`: An allocation began: the amount is no longer available, and not yet booked.
# - `post`: The broker booked an allocation: what was reserved is on the account.
# - `return`: An allocation was refused or rejected: what was reserved is available again.
# - `withdrawal`: A withdrawal from an account to the wallet was paid: the amount is available.
# - `debit`: Money was paid back to you from the wallet: the amount is no longer available.
# - `credit_reversal`: A credit was wrong, or your bank took the payment back: the amount is no longer available. It may be a part of the credit.
#
# The list can grow: accept a value you do not know.
WalletTransferType = Union[Literal["credit", "reserve", "post", "return", "withdrawal", "debit", "credit_reversal"], str]


# Where an event stands at an endpoint.
#
# - `waiting`: To be sent, for the first time or again.
# - `delivered`: The endpoint answered with a 2xx.
# - `expired`: Not delivered within 28 hours and 51 minutes of its change, and no longer sent. The feed has it.
#
# The list can grow: accept a value you do not know.
WebhookDeliveryState = Union[Literal["waiting", "delivered", "expired"], str]


# The outcome of one attempt to reach an endpoint.
#
# - `delivered`: The endpoint answered with a 2xx in time.
# - `endpoint_failed`: No answer in time, unreachable, a redirect, 408, 429 or 5xx: it counts against the endpoint.
# - `event_failed`: Any other 4xx: it counts against the event only.
#
# The list can grow: accept a value you do not know.
WebhookOutcome = Union[Literal["delivered", "endpoint_failed", "event_failed"], str]


# Where the money of a withdrawal goes.
#
# - `wallet`: To the partner's wallet.
# - `bank_account`: To the bank account that the broker has on file for the customer.
#
# The list can grow: accept a value you do not know.
WithdrawalDestination = Union[Literal["wallet", "bank_account"], str]


# Why the broker rejected a withdrawal. The list can grow.
#
# - `insufficient_withdrawable_funds`: The account has less money that is settled and not promised to orders.
# - `account_restricted`: No money may leave the account now; the account's status says more.
# - `no_bank_account`: The broker has no bank account of the customer on file.
# - `bank_account_mismatch`: The bank account on file is not in the customer's name.
# - `account_not_at_broker`: The broker does not have the account.
# - `rejected_by_broker`: Any other reason.
#
# The list can grow: accept a value you do not know.
WithdrawalRejectReason = Union[Literal["insufficient_withdrawable_funds", "account_restricted", "no_bank_account", "bank_account_mismatch", "account_not_at_broker", "rejected_by_broker"], str]


# Where a withdrawal stands. The list can grow: treat an unknown state as one that may still change.
#
# - `sending`: Stored; the send to the broker is in progress, or it waits for its release, which is agreed for large amounts. Then its `reason` says so, and nothing was sent yet.
# - `processing`: The broker has taken it and not paid yet.
# - `completed`: Paid. To the wallet: the amount is available there. To a bank account: the money has left, and the bank may still send it back (`returned`).
# - `refused`: It is not at the broker and will not be: it never left the gateway, or the broker refused it as too late, or it was proven that the broker's record does not have it.
# - `rejected`: The broker rejected it; see `reject_reason`. The money is on the account.
# - `uncertain`: It is unknown whether the broker received it. The gateway does not send it again and reconciles it against the broker's record.
# - `returned`: The bank sent the money back, and it is on the account again. Only with destination `bank_account`.
#
# The list can grow: accept a value you do not know.
WithdrawalState = Union[Literal["sending", "processing", "completed", "refused", "rejected", "uncertain", "returned"], str]


# The kind of a step of a withdrawal's history. The list can grow.
#
# - `stored`: The withdrawal was stored.
# - `sent`: The result of sending it to the broker: accepted, rejected, unknown, or never sent.
# - `report`: The broker reported something about it.
# - `reconciliation`: The broker's record was asked about it, or the time to send it ran out without a known outcome.
# - `contradiction`: The broker reported something impossible in the withdrawal's state, final or not. The state was kept, and the operators are alerted.
# - `settled_by_operator`: The operators settled it with the broker.
# - `release`: It had waited for a release, as agreed for amounts as large, and the operators released or refused it, or nobody did in time.
#
# The list can grow: accept a value you do not know.
WithdrawalStepKind = Union[Literal["stored", "sent", "report", "reconciliation", "contradiction", "settled_by_operator", "release"], str]


# The families of errors. The list can grow.
ErrorType = Union[Literal["authentication_error", "permission_error", "invalid_request_error", "idempotency_error", "order_error", "application_error", "wallet_error", "limit_error", "rate_limit_error", "api_error"], str]


# What happened. A code never changes its meaning; the list can grow.
ErrorCode = Union[Literal["unauthorized", "insufficient_scope", "feature_not_enabled", "not_found", "method_not_allowed", "unsupported_media_type", "request_too_large", "invalid_request", "missing_required_field", "order_not_found", "account_not_found", "application_not_found", "allocation_not_found", "withdrawal_not_found", "unknown_account", "application_not_accepting_documents", "document_already_delivered", "document_in_flight", "earlier_document_unconfirmed", "document_too_large", "invalid_document", "duplicate_order", "duplicate_application", "duplicate_allocation", "duplicate_withdrawal", "similar_order_unresolved", "cancel_unconfirmed", "unknown_symbol", "account_not_at_broker", "settlement_lockout", "order_rejected", "order_not_sent", "order_not_cancelable", "application_not_sent", "application_rejected", "document_rejected", "wallet_too_low", "allocation_not_sent", "allocation_rejected", "similar_allocation_unresolved", "withdrawal_not_sent", "withdrawal_rejected", "similar_withdrawal_unresolved", "limit_exceeded", "too_many_keys", "rate_limited", "exchange_unavailable", "outcome_not_recorded", "internal_error", "trading_paused", "exchange_error", "service_unavailable", "document_unconfirmed"], str]


class Account(TypedDict):
    """One account the partner can trade for."""

    object: Literal["account"]
    """The kind of this object."""
    account: str
    """The account's code, upper-case."""
    application: Optional[str]
    """The id of the application that opened it; null when it was not opened through the gateway."""
    created_at: str
    """Since when the partner can trade for it, UTC, to the second."""


class AccountRestriction(TypedDict):
    """One restriction of an account."""

    code: AccountRestrictionCode
    """Why it is restricted."""
    forbids: List[AccountActivity]
    """The activities that it forbids: at least one."""
    since: Optional[str]
    """Since when it is in force, UTC, to the second; null when the broker does not say."""


class AccountStatus(TypedDict):
    """The status of an account, as the broker reports it."""

    object: Literal["account_status"]
    """The kind of this object."""
    account: str
    """The account's code, upper-case."""
    state: AccountState
    """Its state."""
    restrictions: List[AccountRestriction]
    """Its restrictions: none of an active account."""
    chn: Optional[str]
    """The investor's number at the clearing house; null when the broker does not say."""
    as_of: Optional[str]
    """The time for which this holds, UTC, to the second; null when the broker does not say."""


class AccountTransaction(TypedDict):
    """One booking that changed the money of an account."""

    object: Literal["account_transaction"]
    """The kind of this object."""
    id: str
    """The broker's id of the transaction."""
    account: str
    """The account's code, upper-case."""
    type: AccountTransactionType
    """Why the money changed."""
    amount_kobo: int
    """By how much the money changed, in kobo: positive is money in."""
    balance_kobo: int
    """The money booked after it, in kobo; can be negative."""
    symbol: Optional[str]
    """The stock's symbol, upper-case; null when it is about none."""
    quantity: Optional[int]
    """How many shares came in, negative when they went out; null when none moved."""
    order: Optional[str]
    """The id of the order that traded; null when there is none, or when it was not placed through the gateway."""
    trade: Optional[str]
    """The broker's id of the trade, of a trade and its charges; null when there is none."""
    contract_note: Optional[str]
    """The ticket of the trade's contract note; null while there is none."""
    allocation: Optional[str]
    """The id of the allocation; null when it is about none of the gateway's."""
    withdrawal: Optional[str]
    """The id of the withdrawal; null when it is about none of the gateway's."""
    reverses: Optional[str]
    """The id of the transaction that this one takes back; null when it takes back none."""
    date: str
    """The day it was booked, in Lagos: YYYY-MM-DD."""
    settlement_date: Optional[str]
    """The day on which the money settles or has settled, in Lagos: YYYY-MM-DD; null when the broker does not say."""
    booked_at: str
    """When it was booked, UTC, to the second."""


class Allocation(TypedDict):
    """One movement of money from the wallet to an account."""

    object: Literal["allocation"]
    """The kind of this object."""
    id: str
    """The allocation's id: `alc_` and 20 characters from a-z and 2-7."""
    state: AllocationState
    """Where the allocation stands."""
    account: str
    """The code of the account it funds, upper-case."""
    amount_kobo: int
    """The amount in kobo."""
    client_reference: Optional[str]
    """The partner's own reference, as given when the allocation was created."""
    broker_reference: Optional[str]
    """The broker's reference, once it is booked."""
    reason: Optional[str]
    """A sentence for people that explains the state; never use it in logic."""
    reject_reason: Optional[AllocationRejectReason]
    """Why the broker rejected it; set only when the state is `rejected`."""
    created_at: str
    """When the allocation was stored, UTC, to the second."""
    updated_at: str
    """When it last changed, UTC, to the second; it never goes back."""


class Allowance(TypedDict):
    """A limit and how much of it is used."""

    limit: int
    """How much there is in all."""
    used: int
    """How much is used now."""
    remaining: int
    """How much a request can use at this moment; never negative."""
    resets_at: Optional[str]
    """When `used` goes back to 0, UTC; null for requests in progress, which have no such time."""


class Application(TypedDict):
    """One application for a customer's account. It never has the customer's data of the request."""

    object: Literal["application"]
    """The kind of this object."""
    id: str
    """The application's id: `app_` and 20 characters from a-z and 2-7."""
    state: ApplicationState
    """Where the application stands."""
    reference: Optional[str]
    """The broker's reference, once the broker has accepted the application."""
    account: Optional[str]
    """The code of the account, once it is open."""
    reason: Optional[str]
    """A sentence for people that explains the state; never use it in logic."""
    reject_reason: Optional[ApplicationRejectReason]
    """Why the broker rejected it; set only when the state is `rejected`."""
    param: Optional[str]
    """The field that caused a rejection, when the rejection names one. Never its value."""
    created_at: str
    """When the application was stored, UTC, to the second."""
    updated_at: str
    """When it last changed, UTC, to the second; it never goes back."""


class Balance(TypedDict):
    """The money of an account, as the broker reports it."""

    object: Literal["balance"]
    """The kind of this object."""
    account: str
    """The account's code, upper-case."""
    currency: str
    """Always `NGN`."""
    opening_kobo: int
    """The money booked when the day began, settled or not, in kobo; can be negative."""
    pending_debits_kobo: int
    """The money still to be paid, in kobo; never negative. A broker may count what waiting orders may cost."""
    available_kobo: int
    """The money that can be used now, in kobo; negative when the account owes money."""
    settled_kobo: Optional[int]
    """The settled part of the money booked, in kobo; can be negative; null when the broker does not say."""
    unsettled_kobo: Optional[int]
    """The part of the money booked that settles later, in kobo; negative when more was bought than sold; null when the broker
    does not say. Together with `settled_kobo` it is the money booked.
    """
    withdrawable_kobo: Optional[int]
    """The money that can be withdrawn now, in kobo: never negative, and never more than `settled_kobo`; null when the broker
    does not say.
    """
    as_of: Optional[str]
    """The time for which these figures hold, UTC, to the second; null when the broker does not say."""


class ContractNote(TypedDict):
    """One settled trade with its charges."""

    object: Literal["contract_note"]
    """The kind of this object."""
    ticket: str
    """The note's number at the broker."""
    symbol: str
    """The stock's symbol, upper-case."""
    name: str
    """The stock's name."""
    side: TradeSide
    """`buy` or `sell`."""
    quantity: int
    """How many shares."""
    price_kobo: int
    """The price of one share in kobo."""
    amount_kobo: int
    """The quantity times the price, in kobo."""
    commission_kobo: int
    """The broker's commission in kobo."""
    statutory_fees_kobo: int
    """The charges of the exchange and the state, in kobo."""
    other_fees_kobo: int
    """Other charges in kobo."""
    consideration_kobo: int
    """The cost or proceeds of the trade with its charges, in kobo."""
    trade_date: str
    """The day it was executed, in Lagos: YYYY-MM-DD."""
    transaction_date: str
    """The day it was settled, in Lagos: YYYY-MM-DD."""


class Decision(TypedDict):
    """The broker's decision on an application. The application shows it a moment later."""

    object: Literal["sandbox_decision"]
    """The kind of this object."""
    id: str
    """The application's id."""
    outcome: SandboxApplicationOutcome
    """The decision."""
    account: Optional[str]
    """The code of the account that was opened; null when none was."""


class Directive(TypedDict):
    """A directive that waits for what it is about."""

    object: Literal["sandbox_directive"]
    """The kind of this object."""
    account: Optional[str]
    """The account it waits on; null when it is about one object."""
    id: Optional[str]
    """The object it is about; null when it waits on an account."""
    times: int
    """How many times it is used, unless 24 hours pass or the sandbox starts again before."""


class Document(TypedDict):
    """One document of an application, as the broker has it. The gateway keeps no copy of the file."""

    object: Literal["document"]
    """The kind of this object."""
    application: str
    """The application's id."""
    type: DocumentType
    """The subject of the document."""
    state: DocumentState
    """Where the document stands."""
    created_at: str
    """When the document was first sent, UTC, to the second."""
    updated_at: str
    """When its state last changed, UTC, to the second."""


class Event(TypedDict):
    """One change to one object."""

    object: Literal["event"]
    """The kind of this object."""
    id: str
    """The event's id: `msg_` and 24 lower-case hex characters. A webhook carries it as
    `webhook-id`.
    """
    type: str
    """The object's kind, a full stop and its state: `order.pending`, `order.partially_filled` (once for each trade that
    leaves something over), `order.filled`, `order.uncertain`, `order.rejected`, `order.refused`, `order.cancelled` or
    `order.expired`. A trade the exchange reports after the order was final repeats the type of its final state, with
    more filled. A settlement by operators makes an event for each trade, first for trades that were taken back. For example, an
    order that loses one trade and gains another goes from `order.filled` to `order.partially_filled` and back to
    `order.filled`. Of applications: `application.documents_required`, `application.submitted`, `application.opened`,
    `application.uncertain`, `application.rejected`, `application.refused` or `application.unplaced`. Of allocations:
    `allocation.booked`, `allocation.uncertain`, `allocation.rejected` or `allocation.refused`. Of withdrawals:
    `withdrawal.processing`, `withdrawal.completed`, `withdrawal.uncertain`, `withdrawal.rejected`, `withdrawal.refused` or
    `withdrawal.returned`. That an object was stored
    (`sending`) makes no event. New types can appear: ignore those you do not handle.
    """
    timestamp: str
    """When the object changed: its `updated_at`."""
    version: int
    """The event's number among the partner's events: 1, 2, 3 … without a gap. Compare versions per object and ignore an
    event whose version is lower than the last one applied to that object.
    """
    data: Union[Order, Application, Allocation, Withdrawal]
    """One order to buy or sell shares.

    One application for a customer's account. It never has the customer's data of the request.

    One movement of money from the wallet to an account.

    One movement of money out of an account.

    Objects of other kinds may come: accept one that you do not know.
    """


class ExchangeReport(TypedDict):
    """A report of the exchange about an order. The order shows it a moment later."""

    object: Literal["sandbox_report"]
    """The kind of this object."""
    id: str
    """The order's id."""
    kind: ExchangeReportKind
    """The kind of the report."""
    quantity: Optional[int]
    """How many shares traded; null when none did."""
    price_kobo: Optional[int]
    """The price of one share in kobo; null when none traded."""


class GetOrderHistoryResponse(TypedDict):
    """A page of an order's history."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More steps follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[OrderStep]
    """The steps, oldest first."""


class GetWithdrawalHistoryResponse(TypedDict):
    """A page of a withdrawal's history."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More steps follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[WithdrawalStep]
    """The steps, oldest first."""


class Instrument(TypedDict):
    """The facts about a symbol that an order needs. Prices are those of one share, in kobo."""

    object: Literal["instrument"]
    """The kind of this object."""
    symbol: str
    """The symbol, upper-case."""
    name: str
    """The name of the company or fund."""
    kind: InstrumentKind
    """The kind of the instrument."""
    board: Board
    """The board it is listed on."""
    lot_size: int
    """An order's quantity must be a multiple of it."""
    tick_sizes: List[TickSize]
    """The ticks within the day's band, by price. There are several when the band reaches over a price at which the tick
    changes: the last entry whose `from_price_kobo` is not above your price is the one that holds.
    """
    lower_price_kobo: int
    """The lowest price an order may have today."""
    upper_price_kobo: int
    """The highest price an order may have today. Orders without a limit and all sales count at it against the day's limit."""
    last_price_kobo: int
    """The price of the last trade, or of the previous close."""
    trading_status: TradingStatus
    """Whether it trades now, and if not, why. This is what the exchange does: whether this service takes orders is
    `trading_paused` of `GET /v1/market`.
    """


class Key(TypedDict):
    """An API key, without its secret."""

    object: Literal["key"]
    """The kind of this object."""
    id: str
    """The key's id: `key_` and 20 characters from a-z and 2-7."""
    scopes: List[Scope]
    """The scopes of the key."""
    addresses: List[str]
    """The addresses and ranges it works from, such as `192.0.2.1` and `2001:db8::/32`. Empty: it works from everywhere."""
    created_at: str
    """When the key was made, UTC, to the second."""
    last_used_at: Optional[str]
    """When a request was last made with it, UTC, to the second; null before the first. It can be some seconds behind."""
    revoked_at: Optional[str]
    """When the key was revoked, UTC, to the second; null while it works."""
    created_by: Optional[str]
    """The id of the key it was made with; null when an operator made it."""


class Lga(TypedDict):
    """One local government area."""

    object: Literal["bank"]
    """The kind of this object."""
    code: str
    """Its code, upper-case, unique over all states."""
    name: str
    """Its name."""


class ListAccountTransactionsResponse(TypedDict):
    """A page of transactions."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[AccountTransaction]
    """The transactions, newest booking first."""


class ListAccountsResponse(TypedDict):
    """A page of accounts."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[Account]
    """The accounts, newest first."""


class ListAllocationsResponse(TypedDict):
    """A page of allocations."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More allocations follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[Allocation]
    """The allocations, newest first."""


class ListApplicationsResponse(TypedDict):
    """A page of applications."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More applications follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[Application]
    """The applications, newest first."""


class ListContractNotesResponse(TypedDict):
    """A page of contract notes."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[ContractNote]
    """The notes, newest trade date first; of the same date, the greatest ticket first."""


class ListDocumentsResponse(TypedDict):
    """All documents of an application that the broker has, in the order in which they were first sent."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """Never true: an application has at most four documents, which come in one page."""
    next_cursor: Optional[str]
    """Always absent."""
    data: List[Document]
    """The documents."""


class ListEventsResponse(TypedDict):
    """A page of events."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More events follow this page."""
    next_cursor: str
    """The value to pass as `cursor` for what follows this page: always there, also where nothing follows yet."""
    data: List[Event]
    """The events, oldest first."""


class ListInstrumentsResponse(TypedDict):
    """A page of instruments."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More instruments follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[Instrument]
    """The instruments, by symbol."""


class ListKeysResponse(TypedDict):
    """A page of the partner's keys."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More keys follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[Key]
    """The keys, newest first."""


class ListLatestEventsResponse(TypedDict):
    """A page of the last events, and where the feed goes on."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """Earlier events follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[Event]
    """The events, newest first."""
    feed_cursor: Optional[str]
    """The value to pass as `cursor` to ListEvents or WatchEvents to get the events after the newest one of this page; null
    when the page has none: then begin without a cursor.
    """


class ListLgasResponse(TypedDict):
    """A page of a state's local government areas: all of them."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[Lga]
    """The areas, by name."""


class ListMarketDaysResponse(TypedDict):
    """A page of the exchange's calendar."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More days follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[MarketDay]
    """The days, oldest first, without a gap."""


class ListObjectEventsResponse(TypedDict):
    """A page of the events of one object."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More events follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[Event]
    """The events, oldest first."""


class ListOrdersResponse(TypedDict):
    """A page of orders."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More orders follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[Order]
    """The orders, newest first."""


class ListPositionsResponse(TypedDict):
    """A page of stocks an account holds."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[Position]
    """The positions, by symbol."""


class ListRequestsResponse(TypedDict):
    """A page of requests."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More requests follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[RequestRecord]
    """The requests, newest first."""


class ListStatesResponse(TypedDict):
    """A page of states: all of them."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[State]
    """The states, by name."""


class ListTradesResponse(TypedDict):
    """A page of trades."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[Trade]
    """The trades, newest first; of the same time, the greatest id first."""


class ListTransfersResponse(TypedDict):
    """A page of a wallet's ledger."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More entries follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[WalletTransfer]
    """The entries, newest first."""


class ListWebhookDeliveriesResponse(TypedDict):
    """A page of deliveries."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More deliveries follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[WebhookDelivery]
    """The deliveries, newest first."""


class ListWithdrawalsResponse(TypedDict):
    """A page of withdrawals."""

    object: Literal["list"]
    """The kind of this object."""
    has_more: bool
    """More withdrawals follow this page."""
    next_cursor: Optional[str]
    """The value to pass as `cursor` for the next page; null when there is none."""
    data: List[Withdrawal]
    """The withdrawals, newest first."""


class Market(TypedDict):
    """The exchange's session, and whether this service accepts orders."""

    object: Literal["market"]
    """The kind of this object."""
    session: MarketSession
    """The phase that it is in."""
    next_open_at: Optional[str]
    """When it opens next, UTC, to the second; null when that is not known, or it never closes."""
    next_close_at: Optional[str]
    """When it closes next, UTC, to the second; null when that is not known, or it never closes."""
    trading_paused: bool
    """Whether this service has paused trading, whatever the exchange does: new orders, applications, documents and
    allocations are answered `trading_paused`. Cancels, estimates and reads still work.
    """


class MarketDay(TypedDict):
    """One day of the exchange's calendar."""

    object: Literal["market_day"]
    """The kind of this object."""
    date: str
    """The day, in Lagos: YYYY-MM-DD."""
    kind: MarketDayKind
    """The kind of the day."""
    name: Optional[str]
    """The holiday's name, or the occasion of a half day; null on any other day, or when it has none."""
    opens_at: Optional[str]
    """When trading opens, UTC, to the second; null on a day without trading."""
    closes_at: Optional[str]
    """When trading closes, UTC, to the second; null on a day without trading."""
    settlement_date: Optional[str]
    """The day on which that day's trades settle, in Lagos: YYYY-MM-DD; null on a day without trading."""


class NewKey(TypedDict):
    """An API key that was just made."""

    object: Literal["key"]
    """The kind of this object."""
    id: str
    """The key's id: `key_` and 20 characters from a-z and 2-7."""
    scopes: List[Scope]
    """The scopes of the key."""
    addresses: List[str]
    """The addresses and ranges it works from. Empty: it works from everywhere."""
    created_at: str
    """When the key was made, UTC, to the second."""
    last_used_at: Optional[str]
    """Always null: no request was made with it yet."""
    revoked_at: Optional[str]
    """Always null: it was not revoked."""
    created_by: Optional[str]
    """The id of the key it was made with, which is the calling one."""
    secret: str
    """The key itself, as `Authorization: Bearer` takes it. It cannot be had again."""


class Order(TypedDict):
    """One order to buy or sell shares."""

    object: Literal["order"]
    """The kind of this object."""
    id: str
    """The order's id: `ord_` and 20 characters from a-z and 2-7."""
    state: OrderState
    """Where the order stands."""
    account: str
    """The code of the account it trades for, upper-case."""
    symbol: str
    """The stock's symbol, upper-case."""
    side: OrderSide
    """`buy` or `sell`."""
    quantity: int
    """How many shares to trade."""
    type: OrderType
    """`limit` or `market`."""
    time_in_force: TimeInForce
    """How long the order lives."""
    price_kobo: Optional[int]
    """The limit price of one share in kobo; null for a market order."""
    filled_quantity: int
    """How many shares have traded so far. It can still grow in a final state, when the exchange reports a trade late."""
    exchange_order_id: Optional[str]
    """The exchange's identifier of the order, once it has one."""
    reason: Optional[str]
    """A sentence for people that explains the state; never use it in logic."""
    reject_reason: Optional[OrderRejectReason]
    """Why the exchange rejected the order; set only when the state is `rejected`."""
    created_at: str
    """When the order was stored, UTC, to the second."""
    updated_at: str
    """When it last changed, UTC, to the second; it never goes back."""
    filled_at: Optional[str]
    """When the last of its shares traded, as the exchange tells; null unless the state is `filled`."""
    average_fill_price_kobo_decimal: Optional[str]
    """The average price of the shares that traded, in kobo: a decimal with a decimal point and 1 to 12 places, rounded
    half up where it has more; null while nothing has traded.
    """
    client_reference: Optional[str]
    """The partner's own reference, as given when the order was placed."""


class OrderEstimate(TypedDict):
    """The cost or the proceeds of an order. The broker computes it, and the gateway passes on every digit.

    Every decimal is exact: digits, a decimal point and 1 to 12 places, a minus in front where it is below zero, and
    never an exponent. Commission, statutory and other fees together are all charges, which `fees` lists one by one. A
    buy's total is the amount plus the charges, a sale's the amount less them. Rounding happens once, on the total.
    """

    object: Literal["order_estimate"]
    """The kind of this object."""
    account: str
    """The account's code, upper-case."""
    symbol: str
    """The stock's symbol, upper-case."""
    side: OrderSide
    """`buy` or `sell`."""
    quantity: int
    """How many shares."""
    type: OrderType
    """`limit` or `market`."""
    price_kobo: int
    """The price of one share used, in kobo: a limit order's own, a market order's the one the broker expects."""
    amount_kobo: int
    """Quantity times price, in kobo, before charges."""
    commission_kobo_decimal: str
    """The broker's commission in kobo, a decimal."""
    statutory_fees_kobo_decimal: str
    """The statutory fees in kobo, a decimal."""
    other_fees_kobo_decimal: str
    """All other fees in kobo, a decimal."""
    fees: List[OrderFee]
    """Each charge on its own, whichever of the three it belongs to."""
    total_kobo_decimal: str
    """The order's cost (a buy) or proceeds (a sale) in kobo, charges included, a decimal."""
    total_kobo: int
    """The same in whole kobo: a buy's cost rounded up, a sale's proceeds rounded down."""


class OrderFee(TypedDict):
    """One charge of an estimate."""

    name: str
    """The charge's name."""
    amount_kobo_decimal: str
    """The charge in kobo, a decimal."""


class OrderStep(TypedDict):
    """One step of an order's history."""

    object: Literal["order_step"]
    """The kind of this object."""
    sequence: int
    """The step's place in the history: 1, 2, 3 …"""
    kind: OrderStepKind
    """The kind of the step."""
    at: str
    """When it was recorded, UTC, to the second."""
    state: OrderState
    """The order's state after it."""
    detail: str
    """The step, in a sentence for people."""
    report_number: Optional[int]
    """The number of the exchange's report, when the step is one: a report or a contradiction."""
    quantity: Optional[int]
    """How many shares traded, when the step is a trade. With `trade_sequence`, how many the trade of that step counts with from
    now on: 0 when the exchange took it back.
    """
    price_kobo: Optional[int]
    """The price of one share in kobo, when the step is a trade; with `trade_sequence`, the trade's price from now on."""
    trade_sequence: Optional[int]
    """The `sequence` of the step with the trade that this step changes or repeats; null when the step is about no earlier trade."""


class PartnerLimits(TypedDict):
    """A partner's limits. All of the partner's keys count together."""

    object: Literal["limits"]
    """The kind of this object."""
    day: str
    """The day the daily limits count, in West Africa Time, as YYYY-MM-DD."""
    requests_per_second: RequestRate
    """How many requests may be made."""
    requests_under_way: Allowance
    """How many requests that create, estimate or cancel may be in progress at once. A request is in progress until it is
    answered or would have been, so also while what it created is `sending`. `resets_at` is null.
    """
    orders_kobo_per_day: Allowance
    """The value of orders placed in a day, in kobo. Exactly the limit is allowed."""
    allocations_kobo_per_day: Allowance
    """The amount allocated in a day, in kobo. Exactly the limit is allowed."""
    per_request: RequestBounds
    """The largest that one request may be, the same for every partner."""


class Position(TypedDict):
    """An account's shares of one stock."""

    object: Literal["position"]
    """The kind of this object."""
    account: str
    """The account's code, upper-case."""
    symbol: str
    """The stock's symbol, upper-case."""
    name: str
    """The stock's name."""
    quantity: int
    """How many shares."""
    average_cost_kobo_decimal: str
    """The average cost of one share, as an exact decimal of kobo."""
    price_kobo: int
    """The price of one share now, in kobo."""
    market_value_kobo: int
    """The quantity times the price, in kobo."""
    settled_quantity: Optional[int]
    """How many shares are settled; null when the broker does not say. More than `quantity` when shares were sold whose sale is
    not settled.
    """
    available_quantity: Optional[int]
    """How many shares can be sold now, at most `quantity`; null when the broker does not say."""


class RequestBounds(TypedDict):
    """The largest that one request may be."""

    order_quantity: int
    """Shares of one order."""
    allocation_kobo: int
    """Kobo of one allocation."""
    request_body_bytes: int
    """Bytes of a request's body, other than a document."""
    withdrawal_kobo: int
    """Kobo of one withdrawal."""


class RequestRate(TypedDict):
    """A rate of requests: a bucket of `burst` requests that is refilled by `limit` each second."""

    limit: int
    """Requests a second."""
    burst: int
    """Requests at once."""


class RequestRecord(TypedDict):
    """A request, and how it was answered."""

    object: Literal["sandbox_request"]
    """The kind of this object."""
    id: str
    """The request's id: the `x-request-id` of its answer."""
    at: str
    """When it was answered, in the sandbox's time."""
    protocol: RequestProtocol
    """How it came."""
    method: str
    """Its HTTP method."""
    path: str
    """Its path and query. `…` stands for each part that is not kept, such as the value of what is no parameter of the path."""
    operation: Optional[str]
    """The operation, as in `Orders.CreateOrder`; null when there is none at this path."""
    key: str
    """The id of the key it came with."""
    status: int
    """The HTTP status it was answered with; over gRPC and Connect the one that belongs to the answer's code."""
    code: Optional[str]
    """The error's code; null when there was no error."""
    about: Optional[str]
    """The id of the object that it is about or made; null when there is none."""
    duration_ms: int
    """How long it took to answer, in milliseconds."""
    request_body: Optional[str]
    """Its body, as JSON; null when it had none, it was no JSON, or it is not kept."""
    answer_body: Optional[str]
    """The answer's body, as JSON; null when it is not kept. A body of more than 4,096 bytes is cut, and ends with `…`."""


class SandboxAccountState(TypedDict):
    """The state of an account."""

    object: Literal["sandbox_account_state"]
    """The kind of this object."""
    account: str
    """The account's code, upper-case."""
    state: AccountState
    """Its state."""
    code: Optional[AccountRestrictionCode]
    """Why it is restricted; null when it is not."""
    forbids: List[AccountActivity]
    """The activities that the restriction forbids; empty when it is not restricted."""


class SandboxClock(TypedDict):
    """The sandbox's time."""

    object: Literal["sandbox_clock"]
    """The kind of this object."""
    now: str
    """The time now."""
    ahead_seconds: int
    """How many seconds it is ahead of real time, because an operator has moved it."""
    day: str
    """The day in Lagos, which the limits of a day count."""


class SandboxFunds(TypedDict):
    """The present money and shares of an account."""

    object: Literal["sandbox_funds"]
    """The kind of this object."""
    account: str
    """The account's code, upper-case."""
    cash_kobo: int
    """Its cash in kobo, without the cost and the proceeds of its trades."""
    shares_elsewhere: Optional[int]
    """How many shares of each stock it can sell that its positions do not show; null when the request left that as it
    was.
    """


class SandboxSettlement(TypedDict):
    """The trades of an account are settled."""

    object: Literal["sandbox_settlement"]
    """The kind of this object."""
    account: str
    """The account's code, upper-case."""


class State(TypedDict):
    """One state."""

    object: Literal["state"]
    """The kind of this object."""
    code: str
    """Its code, upper-case."""
    name: str
    """Its name."""


class TickSize(TypedDict):
    """The tick from a price on."""

    from_price_kobo: int
    """The lowest price in kobo from which the tick holds, up to the next entry's."""
    tick_size_kobo: int
    """The tick in kobo: a limit price must be a multiple of it."""


class Trade(TypedDict):
    """One trade of an account."""

    object: Literal["trade"]
    """The kind of this object."""
    id: str
    """The broker's id of the trade."""
    order: Optional[str]
    """The id of the order that traded; null when it was not placed through the gateway."""
    account: str
    """The account's code, upper-case."""
    symbol: str
    """The stock's symbol, upper-case."""
    side: TradeSide
    """`buy` or `sell`."""
    quantity: int
    """How many shares."""
    price_kobo: int
    """The price of one share in kobo."""
    amount_kobo: int
    """The quantity times the price, in kobo."""
    trade_date: str
    """The day it was executed, in Lagos: YYYY-MM-DD."""
    executed_at: str
    """When it was executed, UTC, to the second."""
    settlement_date: Optional[str]
    """The day on which it settles or has settled, in Lagos: YYYY-MM-DD; null when the broker does not say."""
    settled: Optional[bool]
    """Whether it is settled; null when the broker does not say."""


class WalletTotals(TypedDict):
    """The balances of a wallet. Every kobo that ever came in, by credit or withdrawal, and did not go out again, by debit or
    reversal of a credit, is in exactly one of `available_kobo`, `reserved_kobo` and `posted_kobo`.
    """

    object: Literal["wallet"]
    """The kind of this object."""
    available_kobo: int
    """The amount that allocations can use, in kobo; never negative."""
    reserved_kobo: int
    """The amount held by allocations that are neither booked nor refused nor rejected yet, in kobo."""
    posted_kobo: int
    """The amount booked to accounts so far, in kobo."""
    withdrawn_kobo: int
    """The amount that came in by withdrawals from accounts so far, in kobo: the sum of these entries of the ledger. The three above
    count it too, less what was debited since.
    """


class WalletTransfer(TypedDict):
    """One entry of a wallet's ledger."""

    object: Literal["wallet_transfer"]
    """The kind of this object."""
    id: str
    """The entry's id: `wtr_` and 20 characters from a-z and 2-7."""
    type: WalletTransferType
    """The effect of the entry."""
    amount_kobo: int
    """The amount in kobo, always positive."""
    available_change_kobo: int
    """By how much the available balance changed, in kobo: the amount for `credit`, `return` and `withdrawal`, minus the amount for
    `reserve`, `debit` and `credit_reversal`, 0 for `post`.
    """
    allocation: Optional[str]
    """The id of the allocation the entry belongs to; null unless the type is `reserve`, `post` or `return`."""
    account: Optional[str]
    """The code of the account the amount was booked to or came from; null unless the type is `post` or `withdrawal`."""
    bank_reference: Optional[str]
    """The bank's reference of the payment, or the operator's reference of the correction; null unless the type is `credit`, `debit`
    or `credit_reversal`.
    """
    created_at: str
    """When the entry was made, UTC, to the second."""
    withdrawal: Optional[str]
    """The id of the withdrawal the entry belongs to; null unless the type is `withdrawal`."""


class WebhookDelivery(TypedDict):
    """An event on its way to an endpoint."""

    object: Literal["sandbox_webhook_delivery"]
    """The kind of this object."""
    event: str
    """The event's id, which is its `webhook-id`."""
    type: str
    """The event's type, such as `order.filled`."""
    version: int
    """The event's version."""
    about: Optional[str]
    """The id of the object that the event is about; null when it is no longer held."""
    state: WebhookDeliveryState
    """Where it stands."""
    created_at: str
    """When the object changed. The event is sent for 28 hours and 51 minutes after that."""
    next_attempt_at: Optional[str]
    """When it is sent next; null when that is at once, as soon as the endpoint is no longer paused, or never."""
    attempts: List[WebhookDeliveryAttempt]
    """Its attempts, oldest first, at most the first 100."""


class WebhookDeliveryAttempt(TypedDict):
    """One attempt to deliver an event. Of the endpoint's answer only the status is kept."""

    number: int
    """The number of the attempt of this event, from 1."""
    at: str
    """When it began."""
    is_probe: bool
    """Whether it was made to find out if a paused endpoint is back."""
    outcome: WebhookOutcome
    """The outcome."""
    status: Optional[int]
    """The HTTP status the endpoint answered with; null when no answer came."""
    error: Optional[str]
    """Why it failed, as in a test; null when it was delivered."""
    duration_ms: int
    """How long it took, in milliseconds."""


class WebhookTest(TypedDict):
    """An endpoint's answer to a test event."""

    object: Literal["sandbox_webhook_test"]
    """The kind of this object."""
    id: str
    """The test's id, which was its `webhook-id`: `msg_` and 24 hexadecimal digits."""
    outcome: WebhookOutcome
    """The outcome."""
    status: Optional[int]
    """The HTTP status the endpoint answered with; null when no answer came."""
    error: Optional[str]
    """Why it failed: `timeout`, `dns`, `blocked_address`, `unreachable`, `tls`, `invalid_url`, `invalid_response`, `redirect` or
    `status`; null when it was delivered. The list can grow.
    """
    duration_ms: int
    """How long it took, in milliseconds."""


class Withdrawal(TypedDict):
    """One movement of money out of an account."""

    object: Literal["withdrawal"]
    """The kind of this object."""
    id: str
    """The withdrawal's id: `wdr_` and 20 characters from a-z and 2-7."""
    state: WithdrawalState
    """Where the withdrawal stands."""
    account: str
    """The code of the account that pays, upper-case."""
    amount_kobo: int
    """The amount in kobo."""
    destination: WithdrawalDestination
    """Where the money goes."""
    client_reference: Optional[str]
    """The partner's own reference, as given when the withdrawal was created."""
    broker_reference: Optional[str]
    """The broker's reference, once it has taken the withdrawal."""
    reason: Optional[str]
    """A sentence for people that explains the state; never use it in logic."""
    reject_reason: Optional[WithdrawalRejectReason]
    """Why the broker rejected it; set only when the state is `rejected`."""
    created_at: str
    """When the withdrawal was stored, UTC, to the second."""
    updated_at: str
    """When it last changed, UTC, to the second; it never goes back."""


class WithdrawalDecision(TypedDict):
    """The broker's or the bank's decision on a withdrawal. The withdrawal shows it a moment later."""

    object: Literal["sandbox_withdrawal_decision"]
    """The kind of this object."""
    id: str
    """The withdrawal's id."""
    decision: SandboxWithdrawalDecision
    """The decision."""


class WithdrawalStep(TypedDict):
    """One step of a withdrawal's history."""

    object: Literal["withdrawal_step"]
    """The kind of this object."""
    sequence: int
    """The step's place in the history: 1, 2, 3 …"""
    kind: WithdrawalStepKind
    """The kind of the step."""
    at: str
    """When it was recorded, UTC, to the second."""
    state: WithdrawalState
    """The withdrawal's state after it."""
    detail: str
    """The step, in a sentence for people."""
    report_number: Optional[int]
    """The number of the broker's report, when the step is one: a report or a contradiction."""


class Operation(NamedTuple):
    """What the client has to know about an operation."""

    name: str
    method: str
    path: str
    path_names: Tuple[str, ...]
    query_names: Tuple[str, ...]
    body: Literal["none", "json", "file"]
    takes_key: bool


CREATE_ORDER = Operation("create_order", "POST", "/v1/orders", (), (), "json", True)


LIST_ORDERS = Operation("list_orders", "GET", "/v1/orders", (), ("state", "account", "symbol", "client_reference", "updated_since", "limit", "cursor",), "none", False)


ESTIMATE_ORDER = Operation("estimate_order", "POST", "/v1/orders/estimate", (), (), "json", False)


GET_ORDER = Operation("get_order", "GET", "/v1/orders/{id}", ("id",), (), "none", False)


CANCEL_ORDER = Operation("cancel_order", "DELETE", "/v1/orders/{id}", ("id",), (), "none", False)


GET_ORDER_HISTORY = Operation("get_order_history", "GET", "/v1/orders/{id}/history", ("id",), ("limit", "cursor",), "none", False)


CREATE_ALLOCATION = Operation("create_allocation", "POST", "/v1/allocations", (), (), "json", True)


LIST_ALLOCATIONS = Operation("list_allocations", "GET", "/v1/allocations", (), ("state", "account", "client_reference", "updated_since", "limit", "cursor",), "none", False)


GET_ALLOCATION = Operation("get_allocation", "GET", "/v1/allocations/{id}", ("id",), (), "none", False)


CREATE_WITHDRAWAL = Operation("create_withdrawal", "POST", "/v1/withdrawals", (), (), "json", True)


LIST_WITHDRAWALS = Operation("list_withdrawals", "GET", "/v1/withdrawals", (), ("state", "account", "client_reference", "updated_since", "limit", "cursor",), "none", False)


GET_WITHDRAWAL = Operation("get_withdrawal", "GET", "/v1/withdrawals/{id}", ("id",), (), "none", False)


GET_WITHDRAWAL_HISTORY = Operation("get_withdrawal_history", "GET", "/v1/withdrawals/{id}/history", ("id",), ("limit", "cursor",), "none", False)


GET_WALLET = Operation("get_wallet", "GET", "/v1/wallet", (), (), "none", False)


LIST_TRANSFERS = Operation("list_transfers", "GET", "/v1/wallet/transfers", (), ("limit", "cursor",), "none", False)


CREATE_APPLICATION = Operation("create_application", "POST", "/v1/applications", (), (), "json", True)


LIST_APPLICATIONS = Operation("list_applications", "GET", "/v1/applications", (), ("limit", "cursor",), "none", False)


GET_APPLICATION = Operation("get_application", "GET", "/v1/applications/{id}", ("id",), (), "none", False)


SEND_DOCUMENT = Operation("send_document", "PUT", "/v1/applications/{id}/documents/{type}", ("id", "type",), (), "file", False)


LIST_DOCUMENTS = Operation("list_documents", "GET", "/v1/applications/{id}/documents", ("id",), (), "none", False)


LIST_ACCOUNTS = Operation("list_accounts", "GET", "/v1/accounts", (), ("limit", "cursor",), "none", False)


GET_ACCOUNT = Operation("get_account", "GET", "/v1/accounts/{account}", ("account",), (), "none", False)


GET_ACCOUNT_STATUS = Operation("get_account_status", "GET", "/v1/accounts/{account}/status", ("account",), (), "none", False)


GET_BALANCE = Operation("get_balance", "GET", "/v1/accounts/{account}/balance", ("account",), (), "none", False)


LIST_POSITIONS = Operation("list_positions", "GET", "/v1/accounts/{account}/positions", ("account",), ("limit", "cursor",), "none", False)


LIST_TRADES = Operation("list_trades", "GET", "/v1/accounts/{account}/trades", ("account",), ("from", "to", "limit", "cursor",), "none", False)


LIST_CONTRACT_NOTES = Operation("list_contract_notes", "GET", "/v1/accounts/{account}/contract-notes", ("account",), ("from", "to", "limit", "cursor",), "none", False)


LIST_ACCOUNT_TRANSACTIONS = Operation("list_account_transactions", "GET", "/v1/accounts/{account}/transactions", ("account",), ("from", "to", "type", "limit", "cursor",), "none", False)


LIST_STATES = Operation("list_states", "GET", "/v1/reference/states", (), (), "none", False)


LIST_LGAS = Operation("list_lgas", "GET", "/v1/reference/states/{state}/lgas", ("state",), (), "none", False)


GET_MARKET = Operation("get_market", "GET", "/v1/market", (), (), "none", False)


LIST_MARKET_DAYS = Operation("list_market_days", "GET", "/v1/market/calendar", (), ("from", "to", "limit", "cursor",), "none", False)


LIST_INSTRUMENTS = Operation("list_instruments", "GET", "/v1/instruments", (), ("kind", "board", "symbol_prefix", "limit", "cursor",), "none", False)


GET_INSTRUMENT = Operation("get_instrument", "GET", "/v1/instruments/{symbol}", ("symbol",), (), "none", False)


LIST_EVENTS = Operation("list_events", "GET", "/v1/events", (), ("limit", "cursor",), "none", False)


LIST_ORDER_EVENTS = Operation("list_order_events", "GET", "/v1/orders/{id}/events", ("id",), ("limit", "cursor",), "none", False)


LIST_APPLICATION_EVENTS = Operation("list_application_events", "GET", "/v1/applications/{id}/events", ("id",), ("limit", "cursor",), "none", False)


LIST_ALLOCATION_EVENTS = Operation("list_allocation_events", "GET", "/v1/allocations/{id}/events", ("id",), ("limit", "cursor",), "none", False)


LIST_WITHDRAWAL_EVENTS = Operation("list_withdrawal_events", "GET", "/v1/withdrawals/{id}/events", ("id",), ("limit", "cursor",), "none", False)


GET_LIMITS = Operation("get_limits", "GET", "/v1/limits", (), (), "none", False)


LIST_KEYS = Operation("list_keys", "GET", "/v1/keys", (), ("limit", "cursor",), "none", False)


CREATE_KEY = Operation("create_key", "POST", "/v1/keys", (), (), "json", False)


REVOKE_KEY = Operation("revoke_key", "DELETE", "/v1/keys/{id}", ("id",), ("with_children",), "none", False)


FORCE_ORDER = Operation("force_order", "POST", "/v1/sandbox/orders/next", (), (), "json", False)


FILL_ORDER = Operation("fill_order", "POST", "/v1/sandbox/orders/{id}/fill", ("id",), (), "json", False)


EXPIRE_ORDER = Operation("expire_order", "POST", "/v1/sandbox/orders/{id}/expire", ("id",), (), "json", False)


REJECT_ORDER = Operation("reject_order", "POST", "/v1/sandbox/orders/{id}/reject", ("id",), (), "json", False)


REPEAT_REPORT = Operation("repeat_report", "POST", "/v1/sandbox/orders/{id}/repeat", ("id",), (), "json", False)


DECIDE_APPLICATION = Operation("decide_application", "POST", "/v1/sandbox/applications/{id}/decide", ("id",), (), "json", False)


FORCE_DOCUMENT = Operation("force_document", "POST", "/v1/sandbox/applications/{id}/documents/next", ("id",), (), "json", False)


FORCE_ALLOCATION = Operation("force_allocation", "POST", "/v1/sandbox/allocations/next", (), (), "json", False)


FORCE_WITHDRAWAL = Operation("force_withdrawal", "POST", "/v1/sandbox/withdrawals/next", (), (), "json", False)


DECIDE_WITHDRAWAL = Operation("decide_withdrawal", "POST", "/v1/sandbox/withdrawals/{id}/decide", ("id",), (), "json", False)


SET_FUNDS = Operation("set_funds", "POST", "/v1/sandbox/funds", (), (), "json", False)


SET_ACCOUNT_STATE = Operation("set_account_state", "POST", "/v1/sandbox/accounts/state", (), (), "json", False)


SETTLE_TRADES = Operation("settle_trades", "POST", "/v1/sandbox/settlement", (), (), "json", False)


INJECT_FAULT = Operation("inject_fault", "POST", "/v1/sandbox/faults", (), (), "json", False)


SEND_WEBHOOK_TEST = Operation("send_webhook_test", "POST", "/v1/sandbox/webhook/test", (), (), "json", False)


LIST_WEBHOOK_DELIVERIES = Operation("list_webhook_deliveries", "GET", "/v1/sandbox/webhook/deliveries", (), ("limit", "cursor",), "none", False)


LIST_REQUESTS = Operation("list_requests", "GET", "/v1/sandbox/requests", (), ("limit", "cursor",), "none", False)


LIST_LATEST_EVENTS = Operation("list_latest_events", "GET", "/v1/sandbox/events", (), ("limit", "cursor",), "none", False)


GET_CLOCK = Operation("get_clock", "GET", "/v1/sandbox/clock", (), (), "none", False)
