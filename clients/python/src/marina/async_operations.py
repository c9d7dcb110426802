# Made from the OpenAPI document by `make generate`. Change the contract in proto/, not this file.
"""A method for each operation of the contract, for asyncio."""

from __future__ import annotations

from typing import Any, Dict, Literal, Optional, Sequence

from .async_pages import AsyncPages
from .contract import (
    Account,
    AccountStatus,
    AccountTransaction,
    Allocation,
    Application,
    Balance,
    CANCEL_ORDER,
    CREATE_ALLOCATION,
    CREATE_APPLICATION,
    CREATE_KEY,
    CREATE_ORDER,
    CREATE_WITHDRAWAL,
    ContractNote,
    DECIDE_APPLICATION,
    DECIDE_WITHDRAWAL,
    Decision,
    Directive,
    Document,
    ESTIMATE_ORDER,
    EXPIRE_ORDER,
    Event,
    ExchangeReport,
    FILL_ORDER,
    FORCE_ALLOCATION,
    FORCE_DOCUMENT,
    FORCE_ORDER,
    FORCE_WITHDRAWAL,
    GET_ACCOUNT,
    GET_ACCOUNT_STATUS,
    GET_ALLOCATION,
    GET_APPLICATION,
    GET_BALANCE,
    GET_CLOCK,
    GET_INSTRUMENT,
    GET_LIMITS,
    GET_MARKET,
    GET_ORDER,
    GET_ORDER_HISTORY,
    GET_WALLET,
    GET_WITHDRAWAL,
    GET_WITHDRAWAL_HISTORY,
    GetOrderHistoryResponse,
    GetWithdrawalHistoryResponse,
    INJECT_FAULT,
    Instrument,
    Key,
    LIST_ACCOUNTS,
    LIST_ACCOUNT_TRANSACTIONS,
    LIST_ALLOCATIONS,
    LIST_ALLOCATION_EVENTS,
    LIST_APPLICATIONS,
    LIST_APPLICATION_EVENTS,
    LIST_CONTRACT_NOTES,
    LIST_DOCUMENTS,
    LIST_EVENTS,
    LIST_INSTRUMENTS,
    LIST_KEYS,
    LIST_LATEST_EVENTS,
    LIST_LGAS,
    LIST_MARKET_DAYS,
    LIST_ORDERS,
    LIST_ORDER_EVENTS,
    LIST_POSITIONS,
    LIST_REQUESTS,
    LIST_STATES,
    LIST_TRADES,
    LIST_TRANSFERS,
    LIST_WEBHOOK_DELIVERIES,
    LIST_WITHDRAWALS,
    LIST_WITHDRAWAL_EVENTS,
    Lga,
    ListAccountTransactionsResponse,
    ListAccountsResponse,
    ListAllocationsResponse,
    ListApplicationsResponse,
    ListContractNotesResponse,
    ListDocumentsResponse,
    ListEventsResponse,
    ListInstrumentsResponse,
    ListKeysResponse,
    ListLatestEventsResponse,
    ListLgasResponse,
    ListMarketDaysResponse,
    ListObjectEventsResponse,
    ListOrdersResponse,
    ListPositionsResponse,
    ListRequestsResponse,
    ListStatesResponse,
    ListTradesResponse,
    ListTransfersResponse,
    ListWebhookDeliveriesResponse,
    ListWithdrawalsResponse,
    Market,
    MarketDay,
    NewKey,
    Operation,
    Order,
    OrderEstimate,
    OrderStep,
    PartnerLimits,
    Position,
    REJECT_ORDER,
    REPEAT_REPORT,
    REVOKE_KEY,
    RequestRecord,
    SEND_DOCUMENT,
    SEND_WEBHOOK_TEST,
    SETTLE_TRADES,
    SET_ACCOUNT_STATE,
    SET_FUNDS,
    SandboxAccountState,
    SandboxClock,
    SandboxFunds,
    SandboxSettlement,
    State,
    Trade,
    WalletTotals,
    WalletTransfer,
    WebhookDelivery,
    WebhookTest,
    Withdrawal,
    WithdrawalDecision,
    WithdrawalStep,
)


class AsyncOperations:
    """A method for each operation."""

    async def _call(
        self,
        operation: Operation,
        values: Dict[str, Any],
        idempotency_key: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Any:
        raise NotImplementedError

    def _list(
        self, operation: Operation, values: Dict[str, Any], deadline: Optional[float]
    ) -> AsyncPages[Any, Any]:
        raise NotImplementedError

    async def create_order(
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
        return await self._call(CREATE_ORDER, {"account": account, "symbol": symbol, "side": side, "quantity": quantity, "type": type, "time_in_force": time_in_force, "price_kobo": price_kobo, "client_reference": client_reference}, idempotency_key, deadline)

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
    ) -> AsyncPages[ListOrdersResponse, Order]:
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

    async def estimate_order(
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
        return await self._call(ESTIMATE_ORDER, {"account": account, "symbol": symbol, "side": side, "quantity": quantity, "type": type, "time_in_force": time_in_force, "price_kobo": price_kobo, "client_reference": client_reference}, None, deadline)

    async def get_order(
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
        return await self._call(GET_ORDER, {"id": id}, None, deadline)

    async def cancel_order(
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
        return await self._call(CANCEL_ORDER, {"id": id}, None, deadline)

    def get_order_history(
        self,
        *,
        id: str,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> AsyncPages[GetOrderHistoryResponse, OrderStep]:
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

    async def create_allocation(
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
        return await self._call(CREATE_ALLOCATION, {"account": account, "amount_kobo": amount_kobo, "client_reference": client_reference}, idempotency_key, deadline)

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
    ) -> AsyncPages[ListAllocationsResponse, Allocation]:
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

    async def get_allocation(
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
        return await self._call(GET_ALLOCATION, {"id": id}, None, deadline)

    async def create_withdrawal(
        self,
        *,
        account: str,
        amount_kobo: int,
        destination: Literal["wallet", "bank_account"],
        client_reference: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Withdrawal:
        """Takes an amount out of an account. The withdrawal is stored, sent to the broker once, and returned as it stands after that:
        usually `processing` or `completed`, or `uncertain` when it is unknown whether the broker received it (the gateway then finds
        out; do not withdraw again).

        Every request needs an `Idempotency-Key`, a header or metadata of 1 to 255 printable ASCII characters. The same
        request with the same key never makes a second withdrawal. It is answered with the first withdrawal as it is by now
        and `Idempotent-Replayed: true`, or with `withdrawal_rejected` or `withdrawal_not_sent` again when that was the first
        answer, also while trading is paused or the broker is away. Two requests are the same when their messages are, once
        the account is upper-cased. A key is kept for 30 days, and for as long as its withdrawal can still be paid or rejected.

        Errors that store nothing and leave the key free: `feature_not_enabled` (also when the broker does not pay to this
        destination), `unknown_account`, `trading_paused`, `exchange_unavailable` (the service has just started, and the broker
        cannot be reached), `exchange_error`, and `similar_withdrawal_unresolved`: there is a withdrawal of the same amount from the
        same account to the same destination of which it is not known whether the broker has it. It is `uncertain`, or has been
        `sending` for longer than a send may take. Once it is settled, this one can be made, if it is still wanted.

        Errors that leave a withdrawal behind, with its path in `Location`: `withdrawal_rejected` (the broker rejected it, see
        `reject_reason`), `withdrawal_not_sent` (it is `refused`, and a new try needs a new key), `outcome_not_recorded` (the
        outcome is not stored yet: read the withdrawal, or send the request again).

        `duplicate_withdrawal`: the key belongs to another request, and nothing was done. After `service_unavailable` and
        `internal_error` the withdrawal may be stored or not: the same request with the same key makes it, or finds it.

        Needs a key with the scope `withdraw`. It is enabled partner by partner. It counts as a request in progress until it is answered.

        account: The code of the account that pays, one of the partner's. Case does not matter.
        amount_kobo: The amount in kobo, 1 to 10,000,000,000.
        destination: Where the money goes: `wallet` or `bank_account`.
        client_reference: The partner's own reference: 1 to 64 printable ASCII characters, not necessarily unique. It is returned with the withdrawal, and withdrawals can be listed by it.
        """
        return await self._call(CREATE_WITHDRAWAL, {"account": account, "amount_kobo": amount_kobo, "destination": destination, "client_reference": client_reference}, idempotency_key, deadline)

    def list_withdrawals(
        self,
        *,
        state: Optional[Literal["sending", "processing", "completed", "refused", "rejected", "uncertain", "returned"]] = None,
        account: Optional[str] = None,
        client_reference: Optional[str] = None,
        updated_since: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> AsyncPages[ListWithdrawalsResponse, Withdrawal]:
        """Lists the partner's withdrawals, newest first.

        Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list with these filters;
        another `limit` does no harm.

        Needs a key with the scope `read`.

        state: Only withdrawals in this state.
        account: Only withdrawals from this account. Case does not matter.
        client_reference: Only withdrawals created with this reference.
        updated_since: Only withdrawals that changed at this time or later, as in `2026-03-02T09:30:00Z`.
        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_WITHDRAWALS, {"state": state, "account": account, "client_reference": client_reference, "updated_since": updated_since, "limit": limit, "cursor": cursor}, deadline)

    async def get_withdrawal(
        self,
        *,
        id: str,
        deadline: Optional[float] = None,
    ) -> Withdrawal:
        """Returns one withdrawal as it stands.

        Errors: `withdrawal_not_found`, also for another partner's withdrawal and for a text that is no withdrawal's id.

        Needs a key with the scope `read`.

        id: The withdrawal's id.
        """
        return await self._call(GET_WITHDRAWAL, {"id": id}, None, deadline)

    def get_withdrawal_history(
        self,
        *,
        id: str,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> AsyncPages[GetWithdrawalHistoryResponse, WithdrawalStep]:
        """Lists the steps of a withdrawal's history, oldest first: when it was stored and sent, each report of the broker, and what
        the reconciliation found out.

        Errors: `withdrawal_not_found`; `invalid_request` with `param` `cursor` when the cursor was not issued for this withdrawal's
        history.

        Needs a key with the scope `read`.

        id: The withdrawal's id.
        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(GET_WITHDRAWAL_HISTORY, {"id": id, "limit": limit, "cursor": cursor}, deadline)

    async def get_wallet(
        self,
        *,
        deadline: Optional[float] = None,
    ) -> WalletTotals:
        """Returns the wallet's balances now.

        Needs a key with the scope `read`.
        """
        return await self._call(GET_WALLET, {}, None, deadline)

    def list_transfers(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> AsyncPages[ListTransfersResponse, WalletTransfer]:
        """Lists the wallet's ledger, newest first. Entries are never changed or removed, so a page never shifts: a cursor goes on
        right after the entries seen, however many are new.

        Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list.

        Needs a key with the scope `read`.

        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_TRANSFERS, {"limit": limit, "cursor": cursor}, deadline)

    async def create_application(
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
        next_of_kin_relationship: The next of kin's relation to the customer.
        title: How the customer is addressed.
        middle_name: The customer's middle name.
        nin: The customer's National Identification Number (NIN): 11 digits.
        occupation: The customer's occupation.
        bank_code: The code of the customer's bank: 3 digits, the Central Bank's, as in 058, or the 6 digits for instant payments.
        bank_account_number: The number of the customer's account there (NUBAN): 10 digits.
        mothers_maiden_name: The maiden name of the customer's mother.
        """
        return await self._call(CREATE_APPLICATION, {"first_name": first_name, "last_name": last_name, "date_of_birth": date_of_birth, "gender": gender, "email": email, "phone": phone, "address": address, "city": city, "state": state, "state_of_origin": state_of_origin, "lga_of_origin": lga_of_origin, "bvn": bvn, "next_of_kin_name": next_of_kin_name, "next_of_kin_phone": next_of_kin_phone, "next_of_kin_relationship": next_of_kin_relationship, "title": title, "middle_name": middle_name, "nin": nin, "occupation": occupation, "bank_code": bank_code, "bank_account_number": bank_account_number, "mothers_maiden_name": mothers_maiden_name}, idempotency_key, deadline)

    def list_applications(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> AsyncPages[ListApplicationsResponse, Application]:
        """Lists the partner's applications, newest first.

        Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list; another `limit` does no
        harm.

        Needs a key with the scope `read`.

        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_APPLICATIONS, {"limit": limit, "cursor": cursor}, deadline)

    async def get_application(
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
        return await self._call(GET_APPLICATION, {"id": id}, None, deadline)

    async def send_document(
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
        type: The subject of the document.
        file: The file itself.
        media_type: What the file is.
        """
        return await self._call(SEND_DOCUMENT, {"id": id, "type": type, "file": file, "media_type": media_type}, None, deadline)

    def list_documents(
        self,
        *,
        id: str,
        deadline: Optional[float] = None,
    ) -> AsyncPages[ListDocumentsResponse, Document]:
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
    ) -> AsyncPages[ListAccountsResponse, Account]:
        """Lists the accounts the partner can trade for, newest first.

        Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list.

        Needs a key with the scope `read`.

        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_ACCOUNTS, {"limit": limit, "cursor": cursor}, deadline)

    async def get_account(
        self,
        *,
        account: str,
        deadline: Optional[float] = None,
    ) -> Account:
        """Returns one account the partner can trade for, as it is in the list.

        Errors: `account_not_found`.

        Needs a key with the scope `read`.

        account: The account's code. Case does not matter.
        """
        return await self._call(GET_ACCOUNT, {"account": account}, None, deadline)

    async def get_account_status(
        self,
        *,
        account: str,
        deadline: Optional[float] = None,
    ) -> AccountStatus:
        """Returns what an account may do, as the broker reports it.

        Errors: `account_not_found`; `feature_not_enabled` when the broker does not offer this.

        Needs a key with the scope `read`.

        account: The account's code. Case does not matter.
        """
        return await self._call(GET_ACCOUNT_STATUS, {"account": account}, None, deadline)

    async def get_balance(
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
        return await self._call(GET_BALANCE, {"account": account}, None, deadline)

    def list_positions(
        self,
        *,
        account: str,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> AsyncPages[ListPositionsResponse, Position]:
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
    ) -> AsyncPages[ListTradesResponse, Trade]:
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
    ) -> AsyncPages[ListContractNotesResponse, ContractNote]:
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

    def list_account_transactions(
        self,
        *,
        account: str,
        from_: Optional[str] = None,
        to: Optional[str] = None,
        type: Optional[Literal["buy", "sale", "charge", "allocation", "withdrawal", "withdrawal_return", "dividend", "withholding_tax", "fee", "reversal", "adjustment"]] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> AsyncPages[ListAccountTransactionsResponse, AccountTransaction]:
        """Lists the bookings that changed the money of an account from one day to another, newest first.

        They add up: of two neighbours in the list without `type`, the newer one's `balance_kobo` less its `amount_kobo` is the
        older one's `balance_kobo`. `opening_kobo` of today's balance plus today's amounts is the newest `balance_kobo`.

        Errors: `account_not_found`; `feature_not_enabled` when the broker does not offer this; `invalid_request` with `param`
        `from` when it is no date, is after `to`, or when there are more than 1,000 records in the range, with `to` when it is no
        date or after today, and with `cursor` when the cursor was not issued for this list, this range and this type. A page goes
        on right after the records seen, however many are new, in the range its first page had.

        Needs a key with the scope `read`.

        account: The account's code. Case does not matter.
        from_: The first day of booking, YYYY-MM-DD, in Lagos; 30 days before `to` when absent. Not after `to`.
        to: The last day of booking, YYYY-MM-DD, in Lagos; today when absent. Not after today.
        type: Only transactions of this type; all when absent.
        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_ACCOUNT_TRANSACTIONS, {"account": account, "from": from_, "to": to, "type": type, "limit": limit, "cursor": cursor}, deadline)

    def list_states(
        self,
        *,
        deadline: Optional[float] = None,
    ) -> AsyncPages[ListStatesResponse, State]:
        """Lists the states, whole in one page.

        Needs a key with the scope `read`.
        """
        return self._list(LIST_STATES, {}, deadline)

    def list_lgas(
        self,
        *,
        state: str,
        deadline: Optional[float] = None,
    ) -> AsyncPages[ListLgasResponse, Lga]:
        """Lists the local government areas of a state, whole in one page. A code from this list is what an application names as
        `lga_of_origin`.

        Errors: `not_found` for an unknown state.

        Needs a key with the scope `read`.

        state: The state's code. Case does not matter.
        """
        return self._list(LIST_LGAS, {"state": state}, deadline)

    async def get_market(
        self,
        *,
        deadline: Optional[float] = None,
    ) -> Market:
        """Returns the exchange's session now, and whether this service has paused trading.

        Errors: `exchange_unavailable`, `exchange_error`.

        Needs a key with the scope `read`.
        """
        return await self._call(GET_MARKET, {}, None, deadline)

    def list_market_days(
        self,
        *,
        from_: Optional[str] = None,
        to: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> AsyncPages[ListMarketDaysResponse, MarketDay]:
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
    ) -> AsyncPages[ListInstrumentsResponse, Instrument]:
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

    async def get_instrument(
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
        return await self._call(GET_INSTRUMENT, {"symbol": symbol}, None, deadline)

    def list_events(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> AsyncPages[ListEventsResponse, Event]:
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
    ) -> AsyncPages[ListObjectEventsResponse, Event]:
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
    ) -> AsyncPages[ListObjectEventsResponse, Event]:
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
    ) -> AsyncPages[ListObjectEventsResponse, Event]:
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

    def list_withdrawal_events(
        self,
        *,
        id: str,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> AsyncPages[ListObjectEventsResponse, Event]:
        """Lists the events of one withdrawal of the last 30 days, oldest first, as they are in the feed. It shows what became of one
        withdrawal. To follow changes, read the whole feed: only there does a missing version mean a missing event.
        An older withdrawal may have begun before its first event that is listed, because events older than 30 days are removed.

        Errors: `withdrawal_not_found`; `invalid_request` with `param` `cursor` when events that follow the cursor were removed (start again
        without a cursor), or the cursor was not issued for the events of this withdrawal.

        Needs a key with the scope `read`.

        id: The withdrawal's id.
        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_WITHDRAWAL_EVENTS, {"id": id, "limit": limit, "cursor": cursor}, deadline)

    async def get_limits(
        self,
        *,
        deadline: Optional[float] = None,
    ) -> PartnerLimits:
        """Returns the partner's limits, and how much of each is used now.

        Needs a key with the scope `read`.
        """
        return await self._call(GET_LIMITS, {}, None, deadline)

    def list_keys(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> AsyncPages[ListKeysResponse, Key]:
        """Lists the partner's keys, newest first, revoked ones included.

        Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list.

        Needs a key with the scope `keys`.

        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_KEYS, {"limit": limit, "cursor": cursor}, deadline)

    async def create_key(
        self,
        *,
        scopes: Sequence[Literal["read", "trade", "apply", "fund", "keys", "withdraw"]],
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

        scopes: The scopes of the key: one or more of those the calling key has. A scope that occurs twice counts once.
        addresses: The addresses and ranges the key works from, at most 20, such as `192.0.2.1`, `192.0.2.0/24` and `2001:db8::/32`. A range is kept as its first address and its length. Absent or empty: the key works from everywhere, where that is allowed.
        """
        return await self._call(CREATE_KEY, {"scopes": scopes, "addresses": addresses}, None, deadline)

    async def revoke_key(
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
        return await self._call(REVOKE_KEY, {"id": id, "with_children": with_children}, None, deadline)

    async def force_order(
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
        outcome: Their fate.
        reject_reason: Why they are rejected; `rejected_by_exchange` when absent. Of no use with outcomes that reject nothing.
        parts: In how many parts they fill, 1 to 100; 1 when absent.
        delay_ms: How long after acceptance the first fill or the end comes, and each one after that, in milliseconds, 0 to 60,000; 0 when absent.
        times: How many orders, 1 to 100; 1 when absent.
        """
        return await self._call(FORCE_ORDER, {"account": account, "symbol": symbol, "outcome": outcome, "reject_reason": reject_reason, "parts": parts, "delay_ms": delay_ms, "times": times}, None, deadline)

    async def fill_order(
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
        return await self._call(FILL_ORDER, {"id": id, "quantity": quantity, "price_kobo": price_kobo}, None, deadline)

    async def expire_order(
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
        return await self._call(EXPIRE_ORDER, {"id": id}, None, deadline)

    async def reject_order(
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
        return await self._call(REJECT_ORDER, {"id": id, "reject_reason": reject_reason}, None, deadline)

    async def repeat_report(
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
        return await self._call(REPEAT_REPORT, {"id": id}, None, deadline)

    async def decide_application(
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
        outcome: The decision.
        """
        return await self._call(DECIDE_APPLICATION, {"id": id, "outcome": outcome}, None, deadline)

    async def force_document(
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
        outcome: Their fate.
        times: How many documents, 1 to 100; 1 when absent.
        """
        return await self._call(FORCE_DOCUMENT, {"id": id, "type": type, "outcome": outcome, "times": times}, None, deadline)

    async def force_allocation(
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
        outcome: Their fate.
        reject_reason: Why they are rejected; `rejected_by_broker` when absent. Of no use when they are booked.
        times: How many allocations, 1 to 100; 1 when absent.
        """
        return await self._call(FORCE_ALLOCATION, {"account": account, "outcome": outcome, "reject_reason": reject_reason, "times": times}, None, deadline)

    async def force_withdrawal(
        self,
        *,
        account: str,
        outcome: Literal["pay_at_once", "pay_later", "reject", "reject_later", "hold", "return"],
        reject_reason: Optional[Literal["insufficient_withdrawable_funds", "account_restricted", "no_bank_account", "bank_account_mismatch", "account_not_at_broker", "rejected_by_broker"]] = None,
        times: Optional[int] = None,
        deadline: Optional[float] = None,
    ) -> Directive:
        """Decides what becomes of the next withdrawals from an account, in place of what their amount would lead to.

        Errors: `unknown_account` when the account is not one of the partner's; `limit_exceeded` when as many directives
        wait as may.

        Needs a key with the scope `withdraw`.

        account: The account's code, one of the partner's. Case does not matter.
        outcome: Their fate. All but a rejection at once need an account that may pay the amount.
        reject_reason: Why they are rejected; `rejected_by_broker` when absent. Of no use with outcomes that reject nothing.
        times: How many withdrawals, 1 to 100; 1 when absent.
        """
        return await self._call(FORCE_WITHDRAWAL, {"account": account, "outcome": outcome, "reject_reason": reject_reason, "times": times}, None, deadline)

    async def decide_withdrawal(
        self,
        *,
        id: str,
        decision: Literal["paid", "rejected", "returned"],
        reject_reason: Optional[Literal["insufficient_withdrawable_funds", "account_restricted", "no_bank_account", "bank_account_mismatch", "account_not_at_broker", "rejected_by_broker"]] = None,
        deadline: Optional[float] = None,
    ) -> WithdrawalDecision:
        """Pays, rejects or returns a withdrawal now, whatever was planned for it. One that is `processing` can be paid or rejected. One
        to a bank account that is `completed` can be returned.

        Errors: `withdrawal_not_found`, also for another partner's withdrawal and for one the broker does not have;
        `invalid_request` when its state does not allow it.

        Needs a key with the scope `withdraw`.

        id: The withdrawal's id.
        decision: The decision.
        reject_reason: Why it is rejected; `rejected_by_broker` when absent. Of no use with another decision.
        """
        return await self._call(DECIDE_WITHDRAWAL, {"id": id, "decision": decision, "reject_reason": reject_reason}, None, deadline)

    async def set_funds(
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
        return await self._call(SET_FUNDS, {"account": account, "cash_kobo": cash_kobo, "shares_elsewhere": shares_elsewhere}, None, deadline)

    async def set_account_state(
        self,
        *,
        account: str,
        state: Literal["restricted", "active", "closed"],
        code: Optional[Literal["broker_hold", "regulator", "kyc_expired", "settlement_lockout", "deceased", "other"]] = None,
        forbids: Optional[Sequence[Literal["buy", "sell", "fund", "withdraw"]]] = None,
        deadline: Optional[float] = None,
    ) -> SandboxAccountState:
        """Sets what an account may do at the broker. The broker rejects what is forbidden: an allocation or a withdrawal as
        `account_restricted`, an order as `rejected_by_exchange`, or with the reason of a lockout when the restriction is one.

        Errors: `unknown_account` when the account is not one of the partner's; `invalid_request` with `param` `forbids` when an
        activity is there twice, or the account is not restricted.

        Needs a key with the scope `fund`.

        account: The account's code, one of the partner's. Case does not matter.
        state: Its state.
        code: Why it is restricted, from now on.
        forbids: The activities that the restriction forbids, each once; everything when absent. Only when it is restricted.
        """
        return await self._call(SET_ACCOUNT_STATE, {"account": account, "state": state, "code": code, "forbids": forbids}, None, deadline)

    async def settle_trades(
        self,
        *,
        account: str,
        deadline: Optional[float] = None,
    ) -> SandboxSettlement:
        """Settles now all trades of an account that would settle later: their money, shares and contract notes are there at once.

        Errors: `unknown_account` when the account is not one of the partner's.

        Needs a key with the scope `fund`.

        account: The account's code, one of the partner's. Case does not matter.
        """
        return await self._call(SETTLE_TRADES, {"account": account}, None, deadline)

    async def inject_fault(
        self,
        *,
        call: Literal["submit_order", "cancel_order", "look_up_order", "submit_allocation", "look_up_allocation", "look_up_application", "send_document", "submit_withdrawal", "look_up_withdrawal"],
        fault: Literal["hang", "lose_answer", "late_answer", "late_receipt", "reset_before", "reset_after", "unavailable_before", "unavailable_after", "nonsense", "too_late"],
        account: Optional[str] = None,
        id: Optional[str] = None,
        delay_ms: Optional[int] = None,
        times: Optional[int] = None,
        deadline: Optional[float] = None,
    ) -> Directive:
        """Lets something go wrong between the gateway and the exchange, the next times one thing is asked of it on behalf of an
        account, or of one order, application, allocation or withdrawal. So an object becomes `uncertain`, and is seen to settle: with
        `unavailable_before` for some seconds, with `unavailable_after` for a moment. What was taken and not answered in time is mostly
        settled by the exchange's report before the request is answered.

        Errors: `missing_required_field` with `param` `account` when neither `account` nor `id` is there, and with `id` when the
        call takes an `id` only; `unknown_account` when
        the account is not one of the partner's; `not_found` when the id is that of no object of the partner's;
        `limit_exceeded` when as many directives wait as may.

        Needs a key with the scope `trade`.

        call: The call that it strikes.
        fault: The fault.
        account: Only on behalf of this account, one of the partner's. Needed unless `id` is there. Case does not matter.
        id: Only about this order, application, allocation or withdrawal.
        delay_ms: How late, for the faults that wait, in milliseconds, 0 to 60,000; 0 when absent.
        times: How many times, 1 to 100; 1 when absent.
        """
        return await self._call(INJECT_FAULT, {"call": call, "fault": fault, "account": account, "id": id, "delay_ms": delay_ms, "times": times}, None, deadline)

    async def send_webhook_test(
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
        return await self._call(SEND_WEBHOOK_TEST, {}, None, deadline)

    def list_webhook_deliveries(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> AsyncPages[ListWebhookDeliveriesResponse, WebhookDelivery]:
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
    ) -> AsyncPages[ListRequestsResponse, RequestRecord]:
        """Lists the partner's requests of the last hour with their answers, newest first: those with a valid key, also when they were
        refused. It has at most the last 200, and only those that reached the replica of the gateway which answers; when the
        replica stops they are gone. Bodies are cut at 4,096 bytes. Never kept are credentials, secrets, what describes a customer
        (the body of an application), files, and values of fields that the operation does not have. Of paths, queries, bodies and
        errors only those parts are kept whose form describes nobody; `…` stands for each other one. Requests with the header
        `Marina-Unlogged: true` are left out.

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
    ) -> AsyncPages[ListLatestEventsResponse, Event]:
        """Lists the partner's events, newest first, with the cursor from which the feed goes on after them. It is for tools that show
        what happens now. To follow changes, read the whole feed with ListEvents: only there does a missing version mean a
        missing event. The list ends at the oldest event still held.

        Errors: `invalid_request` with `param` `cursor` when the cursor was not issued for this list.

        Needs a key with the scope `read`.

        limit: How many to return at most, 1 to 100; 25 when absent.
        cursor: The `next_cursor` of the previous page, unchanged.
        """
        return self._list(LIST_LATEST_EVENTS, {"limit": limit, "cursor": cursor}, deadline)

    async def get_clock(
        self,
        *,
        deadline: Optional[float] = None,
    ) -> SandboxClock:
        """Returns the sandbox's time. It counts for dates, limits of a day, schedules and what is kept how long. An operator can move
        it forward, for everyone in the sandbox.

        Needs a key with the scope `read`.
        """
        return await self._call(GET_CLOCK, {}, None, deadline)
