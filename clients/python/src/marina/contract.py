# Made from the OpenAPI document by `make generate`. Change the contract in proto/, not this file.
"""Every type and operation of the contract."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, NamedTuple, Optional, Sequence, Tuple, TypedDict, Union

from .pages import Pages


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


# What a document of an application shows. The list can grow.
#
# - `photo`: A passport photograph.
# - `government_id`: A government-issued ID.
# - `utility_bill`: A utility bill, for the address.
# - `signature`: A specimen of the customer's signature.
#
# The list can grow: accept a value you do not know.
DocumentType = Union[Literal["photo", "government_id", "utility_bill", "signature"], str]


# What an exchange reported about an order.
#
# - `accepted`: It has the order.
# - `rejected`: It does not take the order, or gave it up.
# - `trade`: Shares traded.
# - `cancelled`: What had not traded was cancelled.
# - `expired`: What had not traded expired.
#
# The list can grow: accept a value you do not know.
ExchangeReportKind = Union[Literal["accepted", "rejected", "trade", "cancelled", "expired"], str]


# What kind of instrument a symbol is. The list can grow.
#
# - `equity`: A share of a company.
# - `etf`: A share of an exchange-traded fund. It takes limit orders only.
#
# The list can grow: accept a value you do not know.
InstrumentKind = Union[Literal["equity", "etf"], str]


# What a day is in the exchange's calendar. The list can grow.
#
# - `trading_day`: The exchange trades at its usual hours.
# - `half_day`: It trades, and closes earlier than usual.
# - `weekend`: It is closed, as on every such day of the week.
# - `holiday`: It is closed on a day on which it would trade.
#
# The list can grow: accept a value you do not know.
MarketDayKind = Union[Literal["trading_day", "half_day", "weekend", "holiday"], str]


# What the exchange does now. The list can grow.
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


# What a step of an order's history is. The list can grow.
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


# What a key may be allowed to do. Every operation needs exactly one scope.
#
# - `read`: Every read.
# - `trade`: Create, estimate and cancel orders.
# - `apply`: Create applications and send their documents.
# - `fund`: Create allocations.
# - `keys`: List, create and revoke keys.
#
# The list can grow: accept a value you do not know.
Scope = Union[Literal["read", "trade", "apply", "fund", "keys"], str]


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


# What an entry of the ledger does. The list can grow.
#
# - `credit`: A payment came in: the amount is available.
# - `reserve`: An allocation began: the amount is no longer available, and not yet booked.
# - `post`: The broker booked an allocation: what was reserved is on the account.
# - `return`: An allocation was refused or rejected: what was reserved is available again.
#
# The list can grow: accept a value you do not know.
WalletTransferType = Union[Literal["credit", "reserve", "post", "return"], str]


# Where an event stands at an endpoint.
#
# - `waiting`: To be sent, for the first time or again.
# - `delivered`: The endpoint answered with a 2xx.
# - `expired`: Not delivered within 28 hours and 51 minutes of its change, and no longer sent. The feed has it.
#
# The list can grow: accept a value you do not know.
WebhookDeliveryState = Union[Literal["waiting", "delivered", "expired"], str]


# What came of one attempt to reach an endpoint.
#
# - `delivered`: The endpoint answered with a 2xx in time.
# - `endpoint_failed`: No answer in time, unreachable, a redirect, 408, 429 or 5xx: it counts against the endpoint.
# - `event_failed`: Any other 4xx: it counts against the event only.
#
# The list can grow: accept a value you do not know.
WebhookOutcome = Union[Literal["delivered", "endpoint_failed", "event_failed"], str]


# The families of errors. The list can grow.
ErrorType = Union[Literal["authentication_error", "permission_error", "invalid_request_error", "idempotency_error", "order_error", "application_error", "wallet_error", "limit_error", "rate_limit_error", "api_error"], str]


# What happened. A code never changes its meaning; the list can grow.
ErrorCode = Union[Literal["unauthorized", "insufficient_scope", "feature_not_enabled", "not_found", "method_not_allowed", "unsupported_media_type", "request_too_large", "invalid_request", "missing_required_field", "order_not_found", "account_not_found", "application_not_found", "allocation_not_found", "unknown_account", "application_not_accepting_documents", "document_already_delivered", "document_in_flight", "earlier_document_unconfirmed", "document_too_large", "invalid_document", "duplicate_order", "duplicate_application", "duplicate_allocation", "similar_order_unresolved", "cancel_unconfirmed", "unknown_symbol", "account_not_at_broker", "settlement_lockout", "order_rejected", "order_not_sent", "order_not_cancelable", "application_not_sent", "application_rejected", "document_rejected", "wallet_too_low", "allocation_not_sent", "allocation_rejected", "similar_allocation_unresolved", "limit_exceeded", "too_many_keys", "rate_limited", "exchange_unavailable", "outcome_not_recorded", "internal_error", "trading_paused", "exchange_error", "service_unavailable", "document_unconfirmed"], str]


class Account(TypedDict):
    """One account the partner can trade for."""

    object: Literal["account"]
    """What this is."""
    account: str
    """The account's code, upper-case."""
    application: Optional[str]
    """The id of the application that opened it; null when it was not opened through the gateway."""
    created_at: str
    """Since when the partner can trade for it, UTC, to the second."""


class Allocation(TypedDict):
    """One movement of money from the wallet to an account."""

    object: Literal["allocation"]
    """What this is."""
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
    """What this is."""
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
    """What this is."""
    account: str
    """The account's code, upper-case."""
    currency: str
    """Always `NGN`."""
    opening_kobo: int
    """What was there when the day began, in kobo; can be negative."""
    pending_debits_kobo: int
    """What is still to be paid, in kobo; never negative. A broker may count what waiting orders may cost."""
    available_kobo: int
    """What can be used now, in kobo; negative when the account owes money."""


class ContractNote(TypedDict):
    """One settled trade with its charges."""

    object: Literal["contract_note"]
    """What this is."""
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
    """What the exchange and the state charge, in kobo."""
    other_fees_kobo: int
    """Other charges in kobo."""
    consideration_kobo: int
    """What the trade cost or brought with its charges, in kobo."""
    trade_date: str
    """The day it was executed, in Lagos: YYYY-MM-DD."""
    transaction_date: str
    """The day it was settled, in Lagos: YYYY-MM-DD."""


class Decision(TypedDict):
    """What the broker decided of an application. The application shows it a moment later."""

    object: Literal["sandbox_decision"]
    """What this is."""
    id: str
    """The application's id."""
    outcome: SandboxApplicationOutcome
    """What was decided."""
    account: Optional[str]
    """The code of the account that was opened; null when none was."""


class Directive(TypedDict):
    """A directive that waits for what it is about."""

    object: Literal["sandbox_directive"]
    """What this is."""
    account: Optional[str]
    """The account it waits on; null when it is about one object."""
    id: Optional[str]
    """The object it is about; null when it waits on an account."""
    times: int
    """How many times it is used, unless 24 hours pass or the sandbox starts again before."""


class Document(TypedDict):
    """One document of an application, as the broker has it. The gateway keeps no copy of the file."""

    object: Literal["document"]
    """What this is."""
    application: str
    """The application's id."""
    type: DocumentType
    """What the document shows."""
    state: DocumentState
    """Where the document stands."""
    created_at: str
    """When the document was first sent, UTC, to the second."""
    updated_at: str
    """When its state last changed, UTC, to the second."""


class Event(TypedDict):
    """One change to one object."""

    object: Literal["event"]
    """What this is."""
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
    `allocation.booked`, `allocation.uncertain`, `allocation.rejected` or `allocation.refused`. That an object was stored
    (`sending`) makes no event. New types can appear: ignore those you do not handle.
    """
    timestamp: str
    """When the object changed: its `updated_at`."""
    version: int
    """The event's number among the partner's events: 1, 2, 3 … without a gap. Compare versions per object and ignore an
    event whose version is lower than the last one applied to that object.
    """
    data: Union[Order, Application, Allocation]
    """One order to buy or sell shares.

    One application for a customer's account. It never has the customer's data of the request.

    One movement of money from the wallet to an account.

    Objects of other kinds may come: accept one that you do not know.
    """


class ExchangeReport(TypedDict):
    """What the exchange reported about an order. The order shows it a moment later."""

    object: Literal["sandbox_report"]
    """What this is."""
    id: str
    """The order's id."""
    kind: ExchangeReportKind
    """What was reported."""
    quantity: Optional[int]
    """How many shares traded; null when none did."""
    price_kobo: Optional[int]
    """The price of one share in kobo; null when none traded."""


class GetOrderHistoryResponse(TypedDict):
    """A page of an order's history."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More steps follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[OrderStep]
    """The steps, oldest first."""


class Instrument(TypedDict):
    """What an order for a symbol needs to know. Prices are those of one share, in kobo."""

    object: Literal["instrument"]
    """What this is."""
    symbol: str
    """The symbol, upper-case."""
    name: str
    """The name of the company or fund."""
    kind: InstrumentKind
    """What kind it is."""
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
    """What this is."""
    id: str
    """The key's id: `key_` and 20 characters from a-z and 2-7."""
    scopes: List[Scope]
    """What the key may do."""
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
    """What this is."""
    code: str
    """Its code, upper-case, unique over all states."""
    name: str
    """Its name."""


class ListAccountsResponse(TypedDict):
    """A page of accounts."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[Account]
    """The accounts, newest first."""


class ListAllocationsResponse(TypedDict):
    """A page of allocations."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More allocations follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[Allocation]
    """The allocations, newest first."""


class ListApplicationsResponse(TypedDict):
    """A page of applications."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More applications follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[Application]
    """The applications, newest first."""


class ListContractNotesResponse(TypedDict):
    """A page of contract notes."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[ContractNote]
    """The notes, newest trade date first; of the same date, the greatest ticket first."""


class ListDocumentsResponse(TypedDict):
    """All documents of an application that the broker has, in the order in which they were first sent."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """Never true: an application has at most four documents, which come in one page."""
    next_cursor: Optional[str]
    """Always absent."""
    data: List[Document]
    """The documents."""


class ListEventsResponse(TypedDict):
    """A page of events."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More events follow this page."""
    next_cursor: str
    """What to pass as `cursor` for what follows this page: always there, also where nothing follows yet."""
    data: List[Event]
    """The events, oldest first."""


class ListInstrumentsResponse(TypedDict):
    """A page of instruments."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More instruments follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[Instrument]
    """The instruments, by symbol."""


class ListKeysResponse(TypedDict):
    """A page of the partner's keys."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More keys follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[Key]
    """The keys, newest first."""


class ListLatestEventsResponse(TypedDict):
    """A page of the last events, and where the feed goes on."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """Earlier events follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[Event]
    """The events, newest first."""
    feed_cursor: Optional[str]
    """What to pass as `cursor` to ListEvents or WatchEvents to get what comes after the newest event of this page; null when the page
    has none: then begin without a cursor.
    """


class ListLgasResponse(TypedDict):
    """A page of a state's local government areas: all of them."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[Lga]
    """The areas, by name."""


class ListMarketDaysResponse(TypedDict):
    """A page of the exchange's calendar."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More days follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[MarketDay]
    """The days, oldest first, without a gap."""


class ListObjectEventsResponse(TypedDict):
    """A page of the events of one object."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More events follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[Event]
    """The events, oldest first."""


class ListOrdersResponse(TypedDict):
    """A page of orders."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More orders follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[Order]
    """The orders, newest first."""


class ListPositionsResponse(TypedDict):
    """A page of stocks an account holds."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[Position]
    """The positions, by symbol."""


class ListRequestsResponse(TypedDict):
    """A page of requests."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More requests follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[RequestRecord]
    """The requests, newest first."""


class ListStatesResponse(TypedDict):
    """A page of states: all of them."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[State]
    """The states, by name."""


class ListTradesResponse(TypedDict):
    """A page of trades."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[Trade]
    """The trades, newest first; of the same time, the greatest id first."""


class ListTransfersResponse(TypedDict):
    """A page of a wallet's ledger."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More entries follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[WalletTransfer]
    """The entries, newest first."""


class ListWebhookDeliveriesResponse(TypedDict):
    """A page of deliveries."""

    object: Literal["list"]
    """What this is."""
    has_more: bool
    """More deliveries follow this page."""
    next_cursor: Optional[str]
    """What to pass as `cursor` for the next page; null when there is none."""
    data: List[WebhookDelivery]
    """The deliveries, newest first."""


class Market(TypedDict):
    """The exchange's session, and whether this service accepts orders."""

    object: Literal["market"]
    """What this is."""
    session: MarketSession
    """What it does now."""
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
    """What this is."""
    date: str
    """The day, in Lagos: YYYY-MM-DD."""
    kind: MarketDayKind
    """What it is."""
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
    """What this is."""
    id: str
    """The key's id: `key_` and 20 characters from a-z and 2-7."""
    scopes: List[Scope]
    """What the key may do."""
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
    """What this is."""
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
    """What an order would cost or bring. The broker computes it, and the gateway passes on every digit.

    Every decimal is exact: digits, a decimal point and 1 to 12 places, a minus in front where it is below zero, and
    never an exponent. Commission, statutory and other fees together are all charges, which `fees` lists one by one. A
    buy's total is the amount plus the charges, a sale's the amount less them. Rounding happens once, on the total.
    """

    object: Literal["order_estimate"]
    """What this is."""
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
    """What the order costs (a buy) or brings (a sale) in kobo, charges included, a decimal."""
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
    """What this is."""
    sequence: int
    """The step's place in the history: 1, 2, 3 …"""
    kind: OrderStepKind
    """What the step is."""
    at: str
    """When it was recorded, UTC, to the second."""
    state: OrderState
    """The order's state after it."""
    detail: str
    """What happened, in a sentence for people."""
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
    """What a partner may use. All of the partner's keys count together."""

    object: Literal["limits"]
    """What this is."""
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
    """What an account holds of one stock."""

    object: Literal["position"]
    """What this is."""
    account: str
    """The account's code, upper-case."""
    symbol: str
    """The stock's symbol, upper-case."""
    name: str
    """The stock's name."""
    quantity: int
    """How many shares."""
    average_cost_kobo_decimal: str
    """What one share cost on average, as an exact decimal of kobo."""
    price_kobo: int
    """The price of one share now, in kobo."""
    market_value_kobo: int
    """The quantity times the price, in kobo."""


class RequestBounds(TypedDict):
    """The largest that one request may be."""

    order_quantity: int
    """Shares of one order."""
    allocation_kobo: int
    """Kobo of one allocation."""
    request_body_bytes: int
    """Bytes of a request's body, other than a document."""


class RequestRate(TypedDict):
    """A rate of requests: a bucket of `burst` requests that is refilled by `limit` each second."""

    limit: int
    """Requests a second."""
    burst: int
    """Requests at once."""


class RequestRecord(TypedDict):
    """A request, and how it was answered."""

    object: Literal["sandbox_request"]
    """What this is."""
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


class SandboxClock(TypedDict):
    """The sandbox's time."""

    object: Literal["sandbox_clock"]
    """What this is."""
    now: str
    """The time now."""
    ahead_seconds: int
    """How many seconds it is ahead of real time, because an operator has moved it."""
    day: str
    """The day in Lagos, which the limits of a day count."""


class SandboxFunds(TypedDict):
    """What an account has now."""

    object: Literal["sandbox_funds"]
    """What this is."""
    account: str
    """The account's code, upper-case."""
    cash_kobo: int
    """Its cash in kobo, without the cost and the proceeds of its trades."""
    shares_elsewhere: Optional[int]
    """How many shares of each stock it can sell that its positions do not show; null when the request left that as it
    was.
    """


class State(TypedDict):
    """One state."""

    object: Literal["state"]
    """What this is."""
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
    """What this is."""
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


class WalletTotals(TypedDict):
    """The balances of a wallet. Every kobo that ever came in is in exactly one of the three."""

    object: Literal["wallet"]
    """What this is."""
    available_kobo: int
    """What allocations can use, in kobo; never negative."""
    reserved_kobo: int
    """What allocations hold that are neither booked nor refused nor rejected yet, in kobo."""
    posted_kobo: int
    """What was booked to accounts so far, in kobo."""


class WalletTransfer(TypedDict):
    """One entry of a wallet's ledger."""

    object: Literal["wallet_transfer"]
    """What this is."""
    id: str
    """The entry's id: `wtr_` and 20 characters from a-z and 2-7."""
    type: WalletTransferType
    """What the entry does."""
    amount_kobo: int
    """The amount in kobo, always positive."""
    available_change_kobo: int
    """By how much the available balance changed, in kobo: the amount for `credit` and `return`, minus the amount for
    `reserve`, 0 for `post`.
    """
    allocation: Optional[str]
    """The id of the allocation the entry belongs to; null on a `credit`."""
    account: Optional[str]
    """The code of the account the amount was booked to; null unless the type is `post`."""
    bank_reference: Optional[str]
    """The bank's reference of the payment; null unless the type is `credit`."""
    created_at: str
    """When the entry was made, UTC, to the second."""


class WebhookDelivery(TypedDict):
    """An event on its way to an endpoint."""

    object: Literal["sandbox_webhook_delivery"]
    """What this is."""
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
    """What came of it."""
    status: Optional[int]
    """The HTTP status the endpoint answered with; null when no answer came."""
    error: Optional[str]
    """Why it failed, as in a test; null when it was delivered."""
    duration_ms: int
    """How long it took, in milliseconds."""


class WebhookTest(TypedDict):
    """What an endpoint made of a test event."""

    object: Literal["sandbox_webhook_test"]
    """What this is."""
    id: str
    """The test's id, which was its `webhook-id`: `msg_` and 24 hexadecimal digits."""
    outcome: WebhookOutcome
    """What came of it."""
    status: Optional[int]
    """The HTTP status the endpoint answered with; null when no answer came."""
    error: Optional[str]
    """Why it failed: `timeout`, `dns`, `blocked_address`, `unreachable`, `tls`, `invalid_url`, `invalid_response`, `redirect` or
    `status`; null when it was delivered. The list can grow.
    """
    duration_ms: int
    """How long it took, in milliseconds."""


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


GET_WALLET = Operation("get_wallet", "GET", "/v1/wallet", (), (), "none", False)


LIST_TRANSFERS = Operation("list_transfers", "GET", "/v1/wallet/transfers", (), ("limit", "cursor",), "none", False)


CREATE_APPLICATION = Operation("create_application", "POST", "/v1/applications", (), (), "json", True)


LIST_APPLICATIONS = Operation("list_applications", "GET", "/v1/applications", (), ("limit", "cursor",), "none", False)


GET_APPLICATION = Operation("get_application", "GET", "/v1/applications/{id}", ("id",), (), "none", False)


SEND_DOCUMENT = Operation("send_document", "PUT", "/v1/applications/{id}/documents/{type}", ("id", "type",), (), "file", False)


LIST_DOCUMENTS = Operation("list_documents", "GET", "/v1/applications/{id}/documents", ("id",), (), "none", False)


LIST_ACCOUNTS = Operation("list_accounts", "GET", "/v1/accounts", (), ("limit", "cursor",), "none", False)


GET_BALANCE = Operation("get_balance", "GET", "/v1/accounts/{account}/balance", ("account",), (), "none", False)


LIST_POSITIONS = Operation("list_positions", "GET", "/v1/accounts/{account}/positions", ("account",), ("limit", "cursor",), "none", False)


LIST_TRADES = Operation("list_trades", "GET", "/v1/accounts/{account}/trades", ("account",), ("from", "to", "limit", "cursor",), "none", False)


LIST_CONTRACT_NOTES = Operation("list_contract_notes", "GET", "/v1/accounts/{account}/contract-notes", ("account",), ("from", "to", "limit", "cursor",), "none", False)


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


SET_FUNDS = Operation("set_funds", "POST", "/v1/sandbox/funds", (), (), "json", False)


INJECT_FAULT = Operation("inject_fault", "POST", "/v1/sandbox/faults", (), (), "json", False)


SEND_WEBHOOK_TEST = Operation("send_webhook_test", "POST", "/v1/sandbox/webhook/test", (), (), "json", False)


LIST_WEBHOOK_DELIVERIES = Operation("list_webhook_deliveries", "GET", "/v1/sandbox/webhook/deliveries", (), ("limit", "cursor",), "none", False)


LIST_REQUESTS = Operation("list_requests", "GET", "/v1/sandbox/requests", (), ("limit", "cursor",), "none", False)


LIST_LATEST_EVENTS = Operation("list_latest_events", "GET", "/v1/sandbox/events", (), ("limit", "cursor",), "none", False)


GET_CLOCK = Operation("get_clock", "GET", "/v1/sandbox/clock", (), (), "none", False)


class Operations:
    """A method for each operation."""

    def _call(
        self,
        operation: Operation,
        values: Dict[str, Any],
        idempotency_key: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Any:
        raise NotImplementedError

    def _list(self, operation: Operation, values: Dict[str, Any], deadline: Optional[float]) -> Pages[Any, Any]:
        raise NotImplementedError

    def create_order(
        self,
        *,
        account: str,
        symbol: str,
        side: Literal["buy", "sell"],
        quantity: int,
        type: Literal["limit", "market"],
        time_in_force: Optional[Literal["day", "gtc", "ioc", "fok"]] = None,
        price_kobo: Optional[int] = None,
        client_reference: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Order:
        """Places an order. The order is stored, sent to the exchange once, and returned as it stands then: usually `pending`,
        or `uncertain` when it is unknown whether the exchange received it (the gateway then finds out; do not place it
        again).

        Every request needs an `Idempotency-Key`, a header or metadata of 1 to 255 printable ASCII characters. The same
        request with the same key never places a second order. It is answered with the first order as it is by now and
        `Idempotent-Replayed: true`, or with `order_rejected` or `order_not_sent` again when that was the first answer,
        also while trading is paused or the exchange is away. Two requests are the same when their messages are, once
        defaults are filled in and account and symbol upper-cased. A key is kept for 30 days, and for as long as its order
        is not final.

        Errors that store nothing and leave the key free: `unknown_account`, `unknown_symbol`, `account_not_at_broker`,
        `settlement_lockout`, `trading_paused`, `exchange_unavailable` (it cannot be reached), `exchange_error` (its answer
        about the account or the symbol makes no sense), and these two:
        - `similar_order_unresolved`: there is an order with the same account, symbol, side, type, quantity and price of
          which it is not known whether the exchange has it. It is `uncertain`, or has been `sending` for longer than a
          send may take. Once it is settled, this one can be placed, if it is still wanted.
        - `limit_exceeded`: the orders of one Lagos day would be worth more than was agreed. Each counts its quantity times
          a price that is fixed when it is placed: a limit buy's own `price_kobo`, and for everything else the highest
          price the exchange allows for the symbol that day. A `refused` order counts nothing; a `rejected`, `cancelled` or
          `expired` one only the shares that traded. If an order stops counting, the limit of the day on which it was
          placed gets the value back.

        Errors that leave an order behind, with its path in `Location`: `order_rejected` (the exchange rejected it, see
        `reject_reason`), `order_not_sent` (it is `refused`, and a new try needs a new key), `outcome_not_recorded` (the
        outcome is not stored yet: read the order, or send the request again).

        `duplicate_order`: the key belongs to another request, and nothing was done. After `service_unavailable` and
        `internal_error` the order may be stored or not: the same request with the same key places it, or finds it.

        Needs a key with the scope `trade`. It counts as a request in progress until it is answered.

        account: The code of the account to trade for, one of the partner's. Case does not matter.
        symbol: The stock's symbol. Case does not matter.
        side: `buy` or `sell`.
        quantity: How many shares to trade, 1 to 100,000,000.
        type: `limit` or `market`.
        time_in_force: How long the order lives; `day` when absent.
        price_kobo: The limit price of one share in kobo, 1 to 1,000,000,000. Required on a limit order, absent or null on a market order.
        client_reference: The partner's own reference: 1 to 64 printable ASCII characters, not necessarily unique. It is returned with the order, and orders can be listed by it.
        """
        return self._call(CREATE_ORDER, {"account": account, "symbol": symbol, "side": side, "quantity": quantity, "type": type, "time_in_force": time_in_force, "price_kobo": price_kobo, "client_reference": client_reference}, idempotency_key, deadline)

    def list_orders(
        self,
        *,
        state: Optional[Literal["sending", "pending", "partially_filled", "filled", "uncertain", "rejected", "refused", "cancelled", "expired"]] = None,
        account: Optional[str] = None,
        symbol: Optional[str] = None,
        client_reference: Optional[str] = None,
        updated_since: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListOrdersResponse, Order]:
        """Lists the partner's orders, newest first.

        Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list with these filters;
        another `limit` does no harm.

        Needs a key with the scope `read`.

        state: Only orders in this state.
        account: Only orders of this account. Case does not matter.
        symbol: Only orders of this symbol. Case does not matter.
        client_reference: Only orders placed with this reference.
        updated_since: Only orders that changed at this time or later, as in `2026-03-02T09:30:00Z`.
        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_ORDERS, {"state": state, "account": account, "symbol": symbol, "client_reference": client_reference, "updated_since": updated_since, "limit": limit, "cursor": cursor}, deadline)

    def estimate_order(
        self,
        *,
        account: str,
        symbol: str,
        side: Literal["buy", "sell"],
        quantity: int,
        type: Literal["limit", "market"],
        time_in_force: Optional[Literal["day", "gtc", "ioc", "fok"]] = None,
        price_kobo: Optional[int] = None,
        client_reference: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> OrderEstimate:
        """Estimates what an order would cost or bring, charges included. The broker computes it; nothing is stored, no
        daily limit is used, and it works while trading is paused.

        An order that the exchange would certainly reject because of the instrument is answered with `order_rejected`, its
        `reject_reason` is `price_outside_band`, `price_off_tick` or `quantity_off_lot`, and there is no `Location`.

        Errors: `unknown_account`, `unknown_symbol`, `account_not_at_broker`, `settlement_lockout`, `order_rejected`,
        `exchange_unavailable` (the broker cannot be reached), `exchange_error` (its answer makes no sense).

        Needs a key with the scope `trade`. It counts as a request in progress until it is answered.

        account: The code of the account to trade for, one of the partner's. Case does not matter.
        symbol: The stock's symbol. Case does not matter.
        side: `buy` or `sell`.
        quantity: How many shares to trade, 1 to 100,000,000.
        type: `limit` or `market`.
        time_in_force: How long the order would live; it does not change the estimate.
        price_kobo: The limit price of one share in kobo, 1 to 1,000,000,000. Required on a limit order, absent or null on a market order.
        client_reference: Taken and not used.
        """
        return self._call(ESTIMATE_ORDER, {"account": account, "symbol": symbol, "side": side, "quantity": quantity, "type": type, "time_in_force": time_in_force, "price_kobo": price_kobo, "client_reference": client_reference}, None, deadline)

    def get_order(
        self,
        *,
        id: str,
        deadline: Optional[float] = None,
    ) -> Order:
        """Returns one order as it stands, with everything that has traded. Its history has each report of the exchange.

        Errors: `order_not_found`, also for another partner's order and for a text that is no order's id.

        Needs a key with the scope `read`.

        id: The order's id.
        """
        return self._call(GET_ORDER, {"id": id}, None, deadline)

    def cancel_order(
        self,
        *,
        id: str,
        deadline: Optional[float] = None,
    ) -> Order:
        """Cancels the part of an order that has not traded. Answers with the order once the exchange has confirmed; an order
        already `cancelled` is returned as it is. It works while trading is paused, and takes no `Idempotency-Key`: sending
        a cancel again is safe.

        Errors: `order_not_found`; `order_not_cancelable` (it is final, or it is not yet known whether the exchange has it,
        or the exchange said it was too late); `cancel_unconfirmed` (no clear answer, or another cancel of it is under way:
        send the cancel again, or read the order); `exchange_unavailable` (the service has just started, and the exchange
        cannot be reached; nothing was done).

        Needs a key with the scope `trade`. It counts as a request in progress until it is answered.

        id: The order's id.
        """
        return self._call(CANCEL_ORDER, {"id": id}, None, deadline)

    def get_order_history(
        self,
        *,
        id: str,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[GetOrderHistoryResponse, OrderStep]:
        """Lists what happened to one order, oldest first: stored, sent, each report of the exchange, cancels, and the
        evidence by which an unclear order was settled.

        Errors: `order_not_found`; `invalid_request` with `param` `cursor` when the cursor was not issued for this order's
        history.

        Needs a key with the scope `read`.

        id: The order's id.
        limit: How many steps to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(GET_ORDER_HISTORY, {"id": id, "limit": limit, "cursor": cursor}, deadline)

    def create_allocation(
        self,
        *,
        account: str,
        amount_kobo: int,
        client_reference: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Allocation:
        """Moves an amount from the wallet to an account. The amount is reserved and the allocation stored, sent to the broker
        once, and returned as it stands after that: usually `booked`, or `uncertain` when it is unknown whether the broker
        received it (the gateway then finds out; do not allocate again). While it is `sending` or `uncertain` its amount is
        reserved; when it is `refused` or `rejected` the amount is available again.

        Every request needs an `Idempotency-Key`, a header or metadata of 1 to 255 printable ASCII characters. The same
        request with the same key never makes a second allocation. It is answered with the first allocation as it is by now
        and `Idempotent-Replayed: true`, or with `allocation_rejected` or `allocation_not_sent` again when that was the first
        answer, also while trading is paused or the broker is away. Two requests are the same when their messages are, once
        the account is upper-cased. A key is kept for 30 days, and for as long as its allocation is not final.

        Errors that store nothing and leave the key free: `unknown_account`, `trading_paused`, `exchange_unavailable` (the
        service has just started, and the broker cannot be reached), and these three:
        - `similar_allocation_unresolved`: there is an allocation of the same amount to the same account of which it is not
          known whether the broker has it. It is `uncertain`, or has been `sending` for longer than a send may take. Once it
          is settled, this one can be made, if it is still wanted.
        - `limit_exceeded`: the allocations of one Lagos day would add up to more than was agreed. Every allocation counts
          for the day it was created, except `refused` and `rejected` ones.
        - `wallet_too_low`: less than the amount is available in the wallet.

        Errors that leave an allocation behind, with its path in `Location`: `allocation_rejected` (the broker rejected it, see
        `reject_reason`), `allocation_not_sent` (it is `refused`, and a new try needs a new key), `outcome_not_recorded` (the
        outcome is not stored yet: read the allocation, or send the request again).

        `duplicate_allocation`: the key belongs to another request, and nothing was done. After `service_unavailable` and
        `internal_error` the allocation may be stored or not: the same request with the same key makes it, or finds it.

        Needs a key with the scope `fund`. It counts as a request in progress until it is answered.

        account: The code of the account to fund, one of the partner's. Case does not matter.
        amount_kobo: The amount in kobo, 1 to 10,000,000,000.
        client_reference: The partner's own reference: 1 to 64 printable ASCII characters, not necessarily unique. It is returned with the allocation, and allocations can be listed by it.
        """
        return self._call(CREATE_ALLOCATION, {"account": account, "amount_kobo": amount_kobo, "client_reference": client_reference}, idempotency_key, deadline)

    def list_allocations(
        self,
        *,
        state: Optional[Literal["sending", "booked", "refused", "rejected", "uncertain"]] = None,
        account: Optional[str] = None,
        client_reference: Optional[str] = None,
        updated_since: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListAllocationsResponse, Allocation]:
        """Lists the partner's allocations, newest first.

        Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list with these filters;
        another `limit` does no harm.

        Needs a key with the scope `read`.

        state: Only allocations in this state.
        account: Only allocations to this account. Case does not matter.
        client_reference: Only allocations created with this reference.
        updated_since: Only allocations that changed at this time or later, as in `2026-03-02T09:30:00Z`.
        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_ALLOCATIONS, {"state": state, "account": account, "client_reference": client_reference, "updated_since": updated_since, "limit": limit, "cursor": cursor}, deadline)

    def get_allocation(
        self,
        *,
        id: str,
        deadline: Optional[float] = None,
    ) -> Allocation:
        """Returns one allocation as it stands.

        Errors: `allocation_not_found`, also for another partner's allocation and for a text that is no allocation's id.

        Needs a key with the scope `read`.

        id: The allocation's id.
        """
        return self._call(GET_ALLOCATION, {"id": id}, None, deadline)

    def get_wallet(
        self,
        *,
        deadline: Optional[float] = None,
    ) -> WalletTotals:
        """Returns the wallet's balances now.

        Needs a key with the scope `read`.
        """
        return self._call(GET_WALLET, {}, None, deadline)

    def list_transfers(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListTransfersResponse, WalletTransfer]:
        """Lists the wallet's ledger, newest first. Entries are never changed or removed, so a page never shifts: a cursor goes on
        right after the entries seen, however many are new.

        Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list.

        Needs a key with the scope `read`.

        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_TRANSFERS, {"limit": limit, "cursor": cursor}, deadline)

    def create_application(
        self,
        *,
        first_name: str,
        last_name: str,
        date_of_birth: str,
        gender: str,
        email: str,
        phone: str,
        address: str,
        city: str,
        state: str,
        state_of_origin: str,
        lga_of_origin: str,
        bvn: str,
        next_of_kin_name: str,
        next_of_kin_phone: str,
        next_of_kin_relationship: str,
        title: Optional[str] = None,
        middle_name: Optional[str] = None,
        nin: Optional[str] = None,
        occupation: Optional[str] = None,
        bank_code: Optional[str] = None,
        bank_account_number: Optional[str] = None,
        mothers_maiden_name: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Application:
        """Applies for a customer's account. The application is stored, sent to the broker once, and returned as it stands after
        that: usually `documents_required`, or `uncertain` when it is unknown whether the broker received it (the gateway then
        finds out; do not apply again).

        Every request needs an `Idempotency-Key`, a header or metadata of 1 to 255 printable ASCII characters. The same
        request with the same key never makes a second application. It is answered with the first application as it is by now
        and `Idempotent-Replayed: true`, or with `application_rejected` or `application_not_sent` again when that was the first
        answer, also while trading is paused or the broker is away. A key is kept for 30 days, and for as long as its
        application is not final.

        Errors that store nothing and leave the key free: `feature_not_enabled` (opening accounts is not enabled for the
        partner), `trading_paused`, `exchange_unavailable` (the service has just started, and the broker cannot be reached).

        Errors that leave an application behind, with its path in `Location`: `application_rejected` (the broker rejected it,
        see `reject_reason`, and `param` where the rejection names a field), `application_not_sent` (it is `refused`, and a new
        try needs a new key), `outcome_not_recorded` (the outcome is not stored yet: read the application, or send the request
        again).

        `duplicate_application`: the key belongs to another request, and nothing was done. After `service_unavailable` and
        `internal_error` the application may be stored or not: the same request with the same key makes it, or finds it.

        Needs a key with the scope `apply`. It is enabled partner by partner. It counts as a request in progress until it is answered.

        first_name: The customer's first name.
        last_name: The customer's last name.
        date_of_birth: The day the customer was born, YYYY-MM-DD, from 1900-01-01 to today in Lagos.
        gender: The customer's gender, as the broker writes it.
        email: The customer's e-mail address.
        phone: The customer's phone number: +234 and 10 digits, or 0 and 10 digits; of another country, + with its code. The broker checks it.
        address: Street and house of the customer's address.
        city: City of the customer's address.
        state: The code of the state of the customer's address, from the list of states.
        state_of_origin: The code of the customer's state of origin, from the list of states.
        lga_of_origin: The code of the customer's local government area of origin, from that state's list.
        bvn: The customer's Bank Verification Number (BVN): 11 digits. The broker checks it.
        next_of_kin_name: The name of the customer's next of kin.
        next_of_kin_phone: The phone number of the customer's next of kin, as `phone`.
        next_of_kin_relationship: What the next of kin is to the customer.
        title: How the customer is addressed.
        middle_name: The customer's middle name.
        nin: The customer's National Identification Number (NIN): 11 digits.
        occupation: What the customer works as.
        bank_code: The code of the customer's bank: 3 digits, the Central Bank's, as in 058, or the 6 digits for instant payments.
        bank_account_number: The number of the customer's account there (NUBAN): 10 digits.
        mothers_maiden_name: The maiden name of the customer's mother.
        """
        return self._call(CREATE_APPLICATION, {"first_name": first_name, "last_name": last_name, "date_of_birth": date_of_birth, "gender": gender, "email": email, "phone": phone, "address": address, "city": city, "state": state, "state_of_origin": state_of_origin, "lga_of_origin": lga_of_origin, "bvn": bvn, "next_of_kin_name": next_of_kin_name, "next_of_kin_phone": next_of_kin_phone, "next_of_kin_relationship": next_of_kin_relationship, "title": title, "middle_name": middle_name, "nin": nin, "occupation": occupation, "bank_code": bank_code, "bank_account_number": bank_account_number, "mothers_maiden_name": mothers_maiden_name}, idempotency_key, deadline)

    def list_applications(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListApplicationsResponse, Application]:
        """Lists the partner's applications, newest first.

        Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list; another `limit` does no
        harm.

        Needs a key with the scope `read`.

        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_APPLICATIONS, {"limit": limit, "cursor": cursor}, deadline)

    def get_application(
        self,
        *,
        id: str,
        deadline: Optional[float] = None,
    ) -> Application:
        """Returns one application as it stands.

        Errors: `application_not_found`, also for another partner's application and for a text that is no application's id.

        Needs a key with the scope `read`.

        id: The application's id.
        """
        return self._call(GET_APPLICATION, {"id": id}, None, deadline)

    def send_document(
        self,
        *,
        id: str,
        type: Literal["photo", "government_id", "utility_bill", "signature"],
        file: bytes,
        media_type: Literal["image/jpeg", "image/png"],
        deadline: Optional[float] = None,
    ) -> Document:
        """Delivers one of an application's four documents to the broker, within the request. The file is checked to be the whole
        image its `Content-Type` says, sent once, and not kept. When the broker has all four, the application moves to
        `submitted`. Over REST the body is the file itself, and must arrive whole within 30 seconds.

        Sending a file again is safe: one that the broker has is not sent twice, and is answered as it stands, also while
        trading is paused; one whose earlier delivery was unconfirmed is sent again. A different file for a type that the
        broker has, or whose earlier file is unconfirmed, is refused. At most two of a partner's documents are on their way to
        the broker at once.

        Errors, in the order in which they are looked for: `invalid_request` (`type` is not one of the four);
        `feature_not_enabled`; `application_not_found`; `application_not_accepting_documents` (it is neither
        `documents_required` nor `submitted`); `unsupported_media_type`; `document_too_large`; `invalid_request` (the file is
        empty, or did not arrive whole in time); `invalid_document` (it is not the image its Content-Type says, or too large to
        show); `document_already_delivered` (the broker has a different file of this type); `earlier_document_unconfirmed`
        (it did not confirm a different file: send that one again); `document_in_flight` (send it again shortly);
        `trading_paused`; and of the sending: `document_rejected` (the broker refused it and does not have it),
        `exchange_unavailable` (the broker cannot be reached, nothing was sent), `document_unconfirmed` (the broker did not
        confirm receipt: send the same file again).

        Needs a key with the scope `apply`. It is enabled partner by partner.

        id: The application's id. A text that is no application's id answers `application_not_found`.
        type: What the document shows.
        file: The file itself.
        media_type: What the file is.
        """
        return self._call(SEND_DOCUMENT, {"id": id, "type": type, "file": file, "media_type": media_type}, None, deadline)

    def list_documents(
        self,
        *,
        id: str,
        deadline: Optional[float] = None,
    ) -> Pages[ListDocumentsResponse, Document]:
        """Lists the documents of an application that the broker has, in the order in which they were first sent.

        Errors: `application_not_found`.

        Needs a key with the scope `read`.

        id: The application's id. A text that is no application's id answers `application_not_found`.
        """
        return self._list(LIST_DOCUMENTS, {"id": id}, deadline)

    def list_accounts(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListAccountsResponse, Account]:
        """Lists the accounts the partner can trade for, newest first.

        Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list.

        Needs a key with the scope `read`.

        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_ACCOUNTS, {"limit": limit, "cursor": cursor}, deadline)

    def get_balance(
        self,
        *,
        account: str,
        deadline: Optional[float] = None,
    ) -> Balance:
        """Returns the money of an account, as the broker reports it.

        Errors: `account_not_found`.

        Needs a key with the scope `read`.

        account: The account's code. Case does not matter.
        """
        return self._call(GET_BALANCE, {"account": account}, None, deadline)

    def list_positions(
        self,
        *,
        account: str,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListPositionsResponse, Position]:
        """Lists the stocks an account holds, by symbol.

        Errors: `account_not_found`; `invalid_request` with `param` `cursor` when the cursor was not issued for this list.

        Needs a key with the scope `read`.

        account: The account's code. Case does not matter.
        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_POSITIONS, {"account": account, "limit": limit, "cursor": cursor}, deadline)

    def list_trades(
        self,
        *,
        account: str,
        from_: Optional[str] = None,
        to: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListTradesResponse, Trade]:
        """Lists the trades of an account from one day to another, newest first.

        Errors: `account_not_found`; `invalid_request` with `param` `from` when it is no date, is after `to`, or when there are
        more than 1,000 records in the range, with `to` when it is no date or after today, and with `cursor` when the cursor was
        not issued for this list and this range. A page goes on right after the records seen, however many are new, in the range
        its first page had.

        Needs a key with the scope `read`.

        account: The account's code. Case does not matter.
        from_: The first trade date, YYYY-MM-DD, in Lagos; 30 days before `to` when absent. Not after `to`.
        to: The last trade date, YYYY-MM-DD, in Lagos; today when absent. Not after today.
        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_TRADES, {"account": account, "from": from_, "to": to, "limit": limit, "cursor": cursor}, deadline)

    def list_contract_notes(
        self,
        *,
        account: str,
        from_: Optional[str] = None,
        to: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListContractNotesResponse, ContractNote]:
        """Lists the settled trades of an account with their charges, for trades dated from one day to another, newest first.

        Errors: `account_not_found`; `invalid_request` with `param` `from` when it is no date, is after `to`, or when there are
        more than 1,000 records in the range, with `to` when it is no date or after today, and with `cursor` when the cursor was
        not issued for this list and this range. A page goes on right after the records seen, however many are new, in the range
        its first page had.

        Needs a key with the scope `read`.

        account: The account's code. Case does not matter.
        from_: The first trade date, YYYY-MM-DD, in Lagos; 30 days before `to` when absent. Not after `to`.
        to: The last trade date, YYYY-MM-DD, in Lagos; today when absent. Not after today.
        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_CONTRACT_NOTES, {"account": account, "from": from_, "to": to, "limit": limit, "cursor": cursor}, deadline)

    def list_states(
        self,
        *,
        deadline: Optional[float] = None,
    ) -> Pages[ListStatesResponse, State]:
        """Lists the states, whole in one page.

        Needs a key with the scope `read`.
        """
        return self._list(LIST_STATES, {}, deadline)

    def list_lgas(
        self,
        *,
        state: str,
        deadline: Optional[float] = None,
    ) -> Pages[ListLgasResponse, Lga]:
        """Lists the local government areas of a state, whole in one page. A code from this list is what an application names as
        `lga_of_origin`.

        Errors: `not_found` for an unknown state.

        Needs a key with the scope `read`.

        state: The state's code. Case does not matter.
        """
        return self._list(LIST_LGAS, {"state": state}, deadline)

    def get_market(
        self,
        *,
        deadline: Optional[float] = None,
    ) -> Market:
        """Returns the exchange's session now, and whether this service has paused trading.

        Errors: `exchange_unavailable`, `exchange_error`.

        Needs a key with the scope `read`.
        """
        return self._call(GET_MARKET, {}, None, deadline)

    def list_market_days(
        self,
        *,
        from_: Optional[str] = None,
        to: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListMarketDaysResponse, MarketDay]:
        """Lists days of the exchange's calendar, oldest first: when it opens and closes, its holidays, and when a day's trades
        settle. Ask for at most 366 days at a time. The list ends earlier if the calendar does not reach that far.

        Errors: `exchange_unavailable`, `exchange_error`.

        Needs a key with the scope `read`.

        from_: The first day, YYYY-MM-DD, in Lagos; today when absent. Not after `to`.
        to: The last day, YYYY-MM-DD, in Lagos; 30 days after `from` when absent, and at most 365 days after it.
        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_MARKET_DAYS, {"from": from_, "to": to, "limit": limit, "cursor": cursor}, deadline)

    def list_instruments(
        self,
        *,
        kind: Optional[Literal["equity", "etf"]] = None,
        board: Optional[Literal["main", "premium", "growth", "asem", "etf"]] = None,
        symbol_prefix: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListInstrumentsResponse, Instrument]:
        """Lists the instruments of the exchange, by symbol, with what an order for each needs: the day's price band, the tick,
        the lot, and whether it trades now.

        Errors: `exchange_unavailable`, `exchange_error`.

        Needs a key with the scope `read`.

        kind: Only instruments of this kind.
        board: Only instruments on this board.
        symbol_prefix: Only symbols that begin with this text. Case does not matter.
        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_INSTRUMENTS, {"kind": kind, "board": board, "symbol_prefix": symbol_prefix, "limit": limit, "cursor": cursor}, deadline)

    def get_instrument(
        self,
        *,
        symbol: str,
        deadline: Optional[float] = None,
    ) -> Instrument:
        """Returns one instrument.

        Errors: `not_found` for a symbol that the exchange does not list; `exchange_unavailable`, `exchange_error`.

        Needs a key with the scope `read`.

        symbol: The symbol. Case does not matter.
        """
        return self._call(GET_INSTRUMENT, {"symbol": symbol}, None, deadline)

    def list_events(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListEventsResponse, Event]:
        """Lists every event of the last 30 days, oldest first. Without a cursor the listing starts at the oldest event still
        held. An empty page returns the cursor it was asked with: keep it and ask again.

        Errors: `invalid_request` with `param` `cursor` when events the cursor's holder has not seen were removed (the
        message names the oldest version held; start again without a cursor), or the cursor was not issued for this list.

        Needs a key with the scope `read`.

        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_EVENTS, {"limit": limit, "cursor": cursor}, deadline)

    def list_order_events(
        self,
        *,
        id: str,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListObjectEventsResponse, Event]:
        """Lists the events of one order of the last 30 days, oldest first, as they are in the feed. It shows what became of one
        order. To follow changes, read the whole feed: only there does a missing version mean a missing event.
        An older order may have begun before its first event that is listed, because events older than 30 days are removed.

        Errors: `order_not_found`; `invalid_request` with `param` `cursor` when events that follow the cursor were removed (start again
        without a cursor), or the cursor was not issued for the events of this order.

        Needs a key with the scope `read`.

        id: The order's id.
        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_ORDER_EVENTS, {"id": id, "limit": limit, "cursor": cursor}, deadline)

    def list_application_events(
        self,
        *,
        id: str,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListObjectEventsResponse, Event]:
        """Lists the events of one application of the last 30 days, oldest first, as they are in the feed. It shows what became of one
        application. To follow changes, read the whole feed: only there does a missing version mean a missing event.
        An older application may have begun before its first event that is listed, because events older than 30 days are removed.

        Errors: `application_not_found`; `invalid_request` with `param` `cursor` when events that follow the cursor were removed (start again
        without a cursor), or the cursor was not issued for the events of this application.

        Needs a key with the scope `read`.

        id: The application's id.
        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_APPLICATION_EVENTS, {"id": id, "limit": limit, "cursor": cursor}, deadline)

    def list_allocation_events(
        self,
        *,
        id: str,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListObjectEventsResponse, Event]:
        """Lists the events of one allocation of the last 30 days, oldest first, as they are in the feed. It shows what became of one
        allocation. To follow changes, read the whole feed: only there does a missing version mean a missing event.
        An older allocation may have begun before its first event that is listed, because events older than 30 days are removed.

        Errors: `allocation_not_found`; `invalid_request` with `param` `cursor` when events that follow the cursor were removed (start again
        without a cursor), or the cursor was not issued for the events of this allocation.

        Needs a key with the scope `read`.

        id: The allocation's id.
        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_ALLOCATION_EVENTS, {"id": id, "limit": limit, "cursor": cursor}, deadline)

    def get_limits(
        self,
        *,
        deadline: Optional[float] = None,
    ) -> PartnerLimits:
        """Returns the partner's limits, and how much of each is used now.

        Needs a key with the scope `read`.
        """
        return self._call(GET_LIMITS, {}, None, deadline)

    def list_keys(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListKeysResponse, Key]:
        """Lists the partner's keys, newest first, revoked ones included.

        Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list.

        Needs a key with the scope `keys`.

        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_KEYS, {"limit": limit, "cursor": cursor}, deadline)

    def create_key(
        self,
        *,
        scopes: Sequence[Literal["read", "trade", "apply", "fund", "keys"]],
        addresses: Optional[Sequence[str]] = None,
        deadline: Optional[float] = None,
    ) -> NewKey:
        """Makes a key and returns it with its secret, which is shown this once. The operation takes no `Idempotency-Key`: after
        `service_unavailable` or `internal_error` a key may be there whose secret nobody knows; list the keys and revoke it.

        Errors, none of which leaves a key behind:
        - `insufficient_scope` with `param` `scopes[…]`: the calling key does not have this scope itself.
        - `missing_required_field` with `param` `addresses`: a live key needs at least one, and so does a key that is made with
          a key that has registered addresses itself.
        - `invalid_request` with `param` `addresses`: the ranges of a live key hold more than 65,536 IPv4 addresses together, or
          more IPv6 addresses than a /32.
        - `invalid_request` with `param` `addresses[…]`: it is neither an address nor a range, or the calling key does not
          work from all of it itself.
        - `too_many_keys`: the partner has 10 keys that are not revoked. Revoke one.

        Needs a key with the scope `keys`.

        scopes: What the key may do: one or more of the scopes the calling key has. A scope that occurs twice counts once.
        addresses: The addresses and ranges the key works from, at most 20, such as `192.0.2.1`, `192.0.2.0/24` and `2001:db8::/32`. A range is kept as its first address and its length. Absent or empty: the key works from everywhere, where that is allowed.
        """
        return self._call(CREATE_KEY, {"scopes": scopes, "addresses": addresses}, None, deadline)

    def revoke_key(
        self,
        *,
        id: str,
        with_children: Optional[bool] = None,
        deadline: Optional[float] = None,
    ) -> Key:
        """Ends a key, which may be any of the partner's and also the calling one, and returns it. The key stops at once where this
        is served, elsewhere as fast as a message travels, and within five seconds even when that message is lost. Streams
        opened with it end too. A key that was revoked before stays as it is.

        Of a key that leaked, revoke the keys that were made with it too: `with_children`. All of them end in one step, or none
        does. The list shows which ended.

        Errors: `not_found`, also for another partner's key and for a text that is no key's id.

        Needs a key with the scope `keys`.

        id: The key's id.
        with_children: Revokes also the keys that were made with this one, with those, and so on. That holds when this key was revoked before, too. A calling key that was made so is revoked like the others. `false` when absent.
        """
        return self._call(REVOKE_KEY, {"id": id, "with_children": with_children}, None, deadline)

    def force_order(
        self,
        *,
        account: str,
        outcome: Literal["rest", "fill", "fill_half", "reject", "expire", "accept_then_reject"],
        symbol: Optional[str] = None,
        reject_reason: Optional[Literal["insufficient_funds", "market_closed", "settlement_lockout", "limit_orders_etf_only", "unknown_symbol", "symbol_not_tradable", "account_not_at_broker", "rejected_by_exchange", "price_off_tick", "price_outside_band", "quantity_off_lot"]] = None,
        parts: Optional[int] = None,
        delay_ms: Optional[int] = None,
        times: Optional[int] = None,
        deadline: Optional[float] = None,
    ) -> Directive:
        """Decides what becomes of the next orders on an account, in place of what their symbol would lead to.

        Errors: `unknown_account` when the account is not one of the partner's; `limit_exceeded` when as many directives
        wait as may.

        Needs a key with the scope `trade`.

        account: The account's code, one of the partner's. Case does not matter.
        symbol: Only orders for this symbol; absent: any.
        outcome: What becomes of them.
        reject_reason: Why they are rejected; `rejected_by_exchange` when absent. Of no use with outcomes that reject nothing.
        parts: In how many parts they fill, 1 to 100; 1 when absent.
        delay_ms: How long after acceptance the first fill or the end comes, and each one after that, in milliseconds, 0 to 60,000; 0 when absent.
        times: How many orders, 1 to 100; 1 when absent.
        """
        return self._call(FORCE_ORDER, {"account": account, "symbol": symbol, "outcome": outcome, "reject_reason": reject_reason, "parts": parts, "delay_ms": delay_ms, "times": times}, None, deadline)

    def fill_order(
        self,
        *,
        id: str,
        quantity: Optional[int] = None,
        price_kobo: Optional[int] = None,
        deadline: Optional[float] = None,
    ) -> ExchangeReport:
        """Trades shares of an order now, at a price within its limit. An order that is final can be filled too: the exchange reports
        a late fill.

        Errors: `order_not_found`, also for another partner's order and for one the exchange never had; `invalid_request` when the
        exchange could not make such a trade: of more shares than are left, or at a price through the limit.

        Needs a key with the scope `trade`.

        id: The order's id.
        quantity: How many shares; all that is left when absent.
        price_kobo: The price of one share in kobo, within the order's limit; the order's own or the last price when absent.
        """
        return self._call(FILL_ORDER, {"id": id, "quantity": quantity, "price_kobo": price_kobo}, None, deadline)

    def expire_order(
        self,
        *,
        id: str,
        deadline: Optional[float] = None,
    ) -> ExchangeReport:
        """Ends an order now, as if its time in force ran out.

        Errors: `order_not_found`, as above; `order_not_cancelable` when the order is final.

        Needs a key with the scope `trade`.

        id: The order's id.
        """
        return self._call(EXPIRE_ORDER, {"id": id}, None, deadline)

    def reject_order(
        self,
        *,
        id: str,
        reject_reason: Optional[Literal["insufficient_funds", "market_closed", "settlement_lockout", "limit_orders_etf_only", "unknown_symbol", "symbol_not_tradable", "account_not_at_broker", "rejected_by_exchange", "price_off_tick", "price_outside_band", "quantity_off_lot"]] = None,
        deadline: Optional[float] = None,
    ) -> ExchangeReport:
        """Ends an order now, as if the exchange gave it up: it is rejected, or, when a part has traded, cancelled.

        Errors: `order_not_found`, as above; `order_not_cancelable` when the order is final.

        Needs a key with the scope `trade`.

        id: The order's id.
        reject_reason: Why; `rejected_by_exchange` when absent.
        """
        return self._call(REJECT_ORDER, {"id": id, "reject_reason": reject_reason}, None, deadline)

    def repeat_report(
        self,
        *,
        id: str,
        deadline: Optional[float] = None,
    ) -> ExchangeReport:
        """Makes the exchange report once more what it reported last about an order. It must change nothing: no event, no
        webhook.

        Errors: `order_not_found`, as above.

        Needs a key with the scope `trade`.

        id: The order's id.
        """
        return self._call(REPEAT_REPORT, {"id": id}, None, deadline)

    def decide_application(
        self,
        *,
        id: str,
        outcome: Literal["open", "decline"],
        deadline: Optional[float] = None,
    ) -> Decision:
        """Opens or declines an application now, whatever was planned for it and whichever documents the broker has.

        Errors: `application_not_found`, also for another partner's application and for one the broker does not have;
        `invalid_request` when it is decided already.

        Needs a key with the scope `apply`.

        id: The application's id.
        outcome: What is decided.
        """
        return self._call(DECIDE_APPLICATION, {"id": id, "outcome": outcome}, None, deadline)

    def force_document(
        self,
        *,
        id: str,
        outcome: Literal["delivered", "refused"],
        type: Optional[Literal["photo", "government_id", "utility_bill", "signature"]] = None,
        times: Optional[int] = None,
        deadline: Optional[float] = None,
    ) -> Directive:
        """Decides what becomes of the next documents of an application.

        Errors: `application_not_found`, also for another partner's application; `limit_exceeded` when as many directives wait
        as may.

        Needs a key with the scope `apply`.

        id: The application's id.
        type: Only documents of this type; absent: any.
        outcome: What becomes of them.
        times: How many documents, 1 to 100; 1 when absent.
        """
        return self._call(FORCE_DOCUMENT, {"id": id, "type": type, "outcome": outcome, "times": times}, None, deadline)

    def force_allocation(
        self,
        *,
        account: str,
        outcome: Literal["booked", "rejected"],
        reject_reason: Optional[Literal["account_not_at_broker", "account_restricted", "amount_not_accepted", "rejected_by_broker"]] = None,
        times: Optional[int] = None,
        deadline: Optional[float] = None,
    ) -> Directive:
        """Decides what becomes of the next allocations to an account, in place of what their amount would lead to.

        Errors: `unknown_account` when the account is not one of the partner's; `limit_exceeded` when as many directives
        wait as may.

        Needs a key with the scope `fund`.

        account: The account's code, one of the partner's. Case does not matter.
        outcome: What becomes of them.
        reject_reason: Why they are rejected; `rejected_by_broker` when absent. Of no use when they are booked.
        times: How many allocations, 1 to 100; 1 when absent.
        """
        return self._call(FORCE_ALLOCATION, {"account": account, "outcome": outcome, "reject_reason": reject_reason, "times": times}, None, deadline)

    def set_funds(
        self,
        *,
        account: str,
        cash_kobo: int,
        shares_elsewhere: Optional[int] = None,
        deadline: Optional[float] = None,
    ) -> SandboxFunds:
        """Sets the cash of an account, and how many shares it can sell that it never bought. So you can see an order that is rejected
        as `insufficient_funds`, and one that waits for a settlement.

        Errors: `unknown_account` when the account is not one of the partner's.

        Needs a key with the scope `fund`.

        account: The account's code, one of the partner's. Case does not matter.
        cash_kobo: Its cash in kobo, without the cost and the proceeds of its trades; below 0 it owes money.
        shares_elsewhere: How many shares of each stock it can sell that its positions do not show; as before when absent.
        """
        return self._call(SET_FUNDS, {"account": account, "cash_kobo": cash_kobo, "shares_elsewhere": shares_elsewhere}, None, deadline)

    def inject_fault(
        self,
        *,
        call: Literal["submit_order", "cancel_order", "look_up_order", "submit_allocation", "look_up_allocation", "look_up_application", "send_document"],
        fault: Literal["hang", "lose_answer", "late_answer", "late_receipt", "reset_before", "reset_after", "unavailable_before", "unavailable_after", "nonsense", "too_late"],
        account: Optional[str] = None,
        id: Optional[str] = None,
        delay_ms: Optional[int] = None,
        times: Optional[int] = None,
        deadline: Optional[float] = None,
    ) -> Directive:
        """Lets something go wrong between the gateway and the exchange, the next times one thing is asked of it on behalf of an
        account, or of one order, application or allocation. So an object becomes `uncertain`, and is seen to settle: with
        `unavailable_before` for some seconds, with `unavailable_after` for a moment. What was taken and not answered in time is mostly
        settled by the exchange's report before the request is answered.

        Errors: `missing_required_field` with `param` `account` when neither `account` nor `id` is there, and with `id` when the
        call takes an `id` only; `unknown_account` when
        the account is not one of the partner's; `not_found` when the id is that of no object of the partner's;
        `limit_exceeded` when as many directives wait as may.

        Needs a key with the scope `trade`.

        call: What is asked when it strikes.
        fault: What goes wrong.
        account: Only on behalf of this account, one of the partner's. Needed unless `id` is there. Case does not matter.
        id: Only about this order, application or allocation.
        delay_ms: How late, for the faults that wait, in milliseconds, 0 to 60,000; 0 when absent.
        times: How many times, 1 to 100; 1 when absent.
        """
        return self._call(INJECT_FAULT, {"call": call, "fault": fault, "account": account, "id": id, "delay_ms": delay_ms, "times": times}, None, deadline)

    def send_webhook_test(
        self,
        *,
        deadline: Optional[float] = None,
    ) -> WebhookTest:
        """Sends a test event to the partner's webhook endpoint, paused or not, and waits for its answer, at most 10 seconds. The test
        is signed like every event. Its `object` is `webhook_test` and its `type` `webhook.test`. It has no version, is in no feed
        and in no list of deliveries, is not sent again, and changes nothing of the endpoint's state. An endpoint that fails is not
        an error: `outcome` and `error` tell.

        Errors: `not_found` when no endpoint is registered, which the operator does; `rate_limited` while a test is under way, and
        for a second after it.

        Needs a key with the scope `trade`.
        """
        return self._call(SEND_WEBHOOK_TEST, {}, None, deadline)

    def list_webhook_deliveries(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListWebhookDeliveriesResponse, WebhookDelivery]:
        """Lists the events that were, are or will be sent to the partner's webhook endpoint, newest first, each with its attempts and
        what the endpoint answered. Kept for 30 days.

        Errors: `not_found` when no endpoint is registered; `invalid_request` with `param` `cursor` when the cursor was not issued
        for this list.

        Needs a key with the scope `read`.

        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_WEBHOOK_DELIVERIES, {"limit": limit, "cursor": cursor}, deadline)

    def list_requests(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListRequestsResponse, RequestRecord]:
        """Lists the partner's requests of the last hour with their answers, newest first: those with a valid key, also when they were
        refused. It has at most the last 200, and only those that reached the replica of the gateway which answers; when the
        replica stops they are gone. Bodies are cut at 4,096 bytes. Never kept are credentials, secrets, what describes a customer
        (the body of an application), files, and values of fields that the operation does not have. Of paths, queries, bodies and
        errors only those parts are kept whose form describes nobody; `…` stands for each other one. Requests with the header
        `Marina-Unlisted: true` are left out.

        Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list.

        Needs a key with the scope `read`.

        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_REQUESTS, {"limit": limit, "cursor": cursor}, deadline)

    def list_latest_events(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Pages[ListLatestEventsResponse, Event]:
        """Lists the partner's events, newest first, with the cursor from which the feed goes on after them. It is for tools that show
        what happens now. To follow changes, read the whole feed with ListEvents: only there does a missing version mean a
        missing event. The list ends at the oldest event still held.

        Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list.

        Needs a key with the scope `read`.

        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_LATEST_EVENTS, {"limit": limit, "cursor": cursor}, deadline)

    def get_clock(
        self,
        *,
        deadline: Optional[float] = None,
    ) -> SandboxClock:
        """Returns the sandbox's time. It counts for dates, limits of a day, schedules and what is kept how long. An operator can move
        it forward, for everyone in the sandbox.

        Needs a key with the scope `read`.
        """
        return self._call(GET_CLOCK, {}, None, deadline)
