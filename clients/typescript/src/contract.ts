// Made from the OpenAPI document by `make generate`. Change the contract in proto/, not this file.

/** One account the partner can trade for. */
export interface Account {
  /** The kind of this object. */
  readonly object: 'account';
  /** The account's code, upper-case. */
  readonly account: string;
  /** The id of the application that opened it; null when it was not opened through the gateway. */
  readonly application: string | null;
  /** Since when the partner can trade for it, UTC, to the second. */
  readonly created_at: string;
}

/**
 * An activity that can be forbidden to an account. The list can grow.
 *
 * - `buy`: To buy.
 * - `sell`: To sell.
 * - `fund`: To get money by an allocation.
 * - `withdraw`: To withdraw money.
 *
 * The list can grow: accept a value you do not know.
 */
export type AccountActivity = 'buy' | 'sell' | 'fund' | 'withdraw' | (string & {});

/** One restriction of an account. */
export interface AccountRestriction {
  /** Why it is restricted. */
  readonly code: AccountRestrictionCode;
  /** The activities that it forbids: at least one. */
  readonly forbids: readonly AccountActivity[];
  /** Since when it is in force, UTC, to the second; null when the broker does not say. */
  readonly since: string | null;
}

/**
 * Why an account is restricted. The list can grow.
 *
 * - `broker_hold`: The broker holds it: ask the broker.
 * - `regulator`: A regulator or a court demands it.
 * - `kyc_expired`: The customer's documents have expired, and the broker needs new ones.
 * - `settlement_lockout`: It owes money for trades that have settled. Money on the account ends it.
 * - `deceased`: The customer is deceased.
 * - `other`: Any other reason.
 *
 * The list can grow: accept a value you do not know.
 */
export type AccountRestrictionCode = 'broker_hold' | 'regulator' | 'kyc_expired' | 'settlement_lockout' | 'deceased' | 'other' | (string & {});

/**
 * The state of an account. The list can grow.
 *
 * - `active`: Nothing is forbidden.
 * - `restricted`: At least one restriction forbids something.
 * - `closed`: It is closed for good, and everything is forbidden.
 *
 * The list can grow: accept a value you do not know.
 */
export type AccountState = 'active' | 'restricted' | 'closed' | (string & {});

/** The status of an account, as the broker reports it. */
export interface AccountStatus {
  /** The kind of this object. */
  readonly object: 'account_status';
  /** The account's code, upper-case. */
  readonly account: string;
  /** Its state. */
  readonly state: AccountState;
  /** Its restrictions: none of an active account. */
  readonly restrictions: readonly AccountRestriction[];
  /** The investor's number at the clearing house; null when the broker does not say. */
  readonly chn: string | null;
  /** The time for which this holds, UTC, to the second; null when the broker does not say. */
  readonly as_of: string | null;
}

/** One booking that changed the money of an account. */
export interface AccountTransaction {
  /** The kind of this object. */
  readonly object: 'account_transaction';
  /** The broker's id of the transaction. */
  readonly id: string;
  /** The account's code, upper-case. */
  readonly account: string;
  /** Why the money changed. */
  readonly type: AccountTransactionType;
  /** By how much the money changed, in kobo: positive is money in. */
  readonly amount_kobo: bigint;
  /** The money booked after it, in kobo; can be negative. */
  readonly balance_kobo: bigint;
  /** The stock's symbol, upper-case; null when it is about none. */
  readonly symbol: string | null;
  /** How many shares came in, negative when they went out; null when none moved. */
  readonly quantity: bigint | null;
  /** The id of the order that traded; null when there is none, or when it was not placed through the gateway. */
  readonly order: string | null;
  /** The broker's id of the trade, of a trade and its charges; null when there is none. */
  readonly trade: string | null;
  /** The ticket of the trade's contract note; null while there is none. */
  readonly contract_note: string | null;
  /** The id of the allocation; null when it is about none of the gateway's. */
  readonly allocation: string | null;
  /** The id of the withdrawal; null when it is about none of the gateway's. */
  readonly withdrawal: string | null;
  /** The id of the transaction that this one takes back; null when it takes back none. */
  readonly reverses: string | null;
  /** The day it was booked, in Lagos: YYYY-MM-DD. */
  readonly date: string;
  /** The day on which the money settles or has settled, in Lagos: YYYY-MM-DD; null when the broker does not say. */
  readonly settlement_date: string | null;
  /** When it was booked, UTC, to the second. */
  readonly booked_at: string;
}

/**
 * Why the money of an account changed. The list can grow.
 *
 * - `buy`: Shares were bought: the amount of the trade without charges.
 * - `sale`: Shares were sold: the amount of the trade without charges.
 * - `charge`: The charges of a trade, booked right after it.
 * - `allocation`: An allocation was booked.
 * - `withdrawal`: Money was withdrawn.
 * - `withdrawal_return`: A withdrawal came back.
 * - `dividend`: A company paid a dividend.
 * - `withholding_tax`: Tax was withheld from a dividend.
 * - `fee`: A fee that belongs to no trade.
 * - `reversal`: An earlier transaction was taken back: `reverses` has its id.
 * - `adjustment`: The broker corrected the money, for a reason that no other type has.
 *
 * The list can grow: accept a value you do not know.
 */
export type AccountTransactionType = 'buy' | 'sale' | 'charge' | 'allocation' | 'withdrawal' | 'withdrawal_return' | 'dividend' | 'withholding_tax' | 'fee' | 'reversal' | 'adjustment' | (string & {});

/** One movement of money from the wallet to an account. */
export interface Allocation {
  /** The kind of this object. */
  readonly object: 'allocation';
  /** The allocation's id: `alc_` and 20 characters from a-z and 2-7. */
  readonly id: string;
  /** Where the allocation stands. */
  readonly state: AllocationState;
  /** The code of the account it funds, upper-case. */
  readonly account: string;
  /** The amount in kobo. */
  readonly amount_kobo: bigint;
  /** The partner's own reference, as given when the allocation was created. */
  readonly client_reference: string | null;
  /** The broker's reference, once it is booked. */
  readonly broker_reference: string | null;
  /** A sentence for people that explains the state; never use it in logic. */
  readonly reason: string | null;
  /** Why the broker rejected it; set only when the state is `rejected`. */
  readonly reject_reason: AllocationRejectReason | null;
  /** When the allocation was stored, UTC, to the second. */
  readonly created_at: string;
  /** When it last changed, UTC, to the second; it never goes back. */
  readonly updated_at: string;
}

/**
 * Why the broker rejected an allocation. The list can grow.
 *
 * - `account_not_at_broker`: The broker does not have the account.
 * - `account_restricted`: The account takes no money now.
 * - `amount_not_accepted`: The broker does not take this amount.
 * - `rejected_by_broker`: Any other reason.
 *
 * The list can grow: accept a value you do not know.
 */
export type AllocationRejectReason = 'account_not_at_broker' | 'account_restricted' | 'amount_not_accepted' | 'rejected_by_broker' | (string & {});

/**
 * Where an allocation stands. The list can grow: treat an unknown state as one that may still change.
 *
 * - `sending`: Stored, its amount reserved; the send to the broker is in progress.
 * - `booked`: The money is on the account.
 * - `refused`: It is not at the broker and will not be: it never left the gateway, or the broker refused it as too late, or it was proven that the broker's record does not have it. Its amount is available again.
 * - `rejected`: The broker rejected it; see `reject_reason`. Its amount is available again.
 * - `uncertain`: It is unknown whether the broker received it. The gateway does not send it again and reconciles it against the broker's record; its amount stays reserved.
 *
 * The list can grow: accept a value you do not know.
 */
export type AllocationState = 'sending' | 'booked' | 'refused' | 'rejected' | 'uncertain' | (string & {});

/** A limit and how much of it is used. */
export interface Allowance {
  /** How much there is in all. */
  readonly limit: bigint;
  /** How much is used now. */
  readonly used: bigint;
  /** How much a request can use at this moment; never negative. */
  readonly remaining: bigint;
  /** When `used` goes back to 0, UTC; null for requests in progress, which have no such time. */
  readonly resets_at: string | null;
}

/** One application for a customer's account. It never has the customer's data of the request. */
export interface Application {
  /** The kind of this object. */
  readonly object: 'application';
  /** The application's id: `app_` and 20 characters from a-z and 2-7. */
  readonly id: string;
  /** Where the application stands. */
  readonly state: ApplicationState;
  /** The broker's reference, once the broker has accepted the application. */
  readonly reference: string | null;
  /** The code of the account, once it is open. */
  readonly account: string | null;
  /** A sentence for people that explains the state; never use it in logic. */
  readonly reason: string | null;
  /** Why the broker rejected it; set only when the state is `rejected`. */
  readonly reject_reason: ApplicationRejectReason | null;
  /** The field that caused a rejection, when the rejection names one. Never its value. */
  readonly param: string | null;
  /** When the application was stored, UTC, to the second. */
  readonly created_at: string;
  /** When it last changed, UTC, to the second; it never goes back. */
  readonly updated_at: string;
}

/**
 * Why the broker rejected an application. The list can grow.
 *
 * - `invalid_field`: A field is not what the broker accepts; `param` names it where the broker does.
 * - `already_at_broker`: The customer already has an account at the broker.
 * - `rejected_by_broker`: The broker refused to take it, for any other reason.
 * - `declined_by_broker`: The broker's staff looked at it and declined.
 *
 * The list can grow: accept a value you do not know.
 */
export type ApplicationRejectReason = 'invalid_field' | 'already_at_broker' | 'rejected_by_broker' | 'declined_by_broker' | (string & {});

/**
 * Where an application stands. The list can grow: treat an unknown state as one that may still change.
 *
 * - `sending`: Stored; the send to the broker is in progress.
 * - `documents_required`: The broker has it and wants the four documents.
 * - `submitted`: The broker has it and its four documents, and decides.
 * - `opened`: The account is open: `account` holds its code, and the partner can trade for it.
 * - `uncertain`: It is unknown whether the broker received it. The gateway does not send it again and reconciles it against the broker's record.
 * - `rejected`: The broker rejected it at once or declined it later; see `reject_reason` and `param`.
 * - `refused`: It never reached the broker.
 * - `unplaced`: It was unknown whether the broker received it, and it was proven that the broker's record does not have it.
 *
 * The list can grow: accept a value you do not know.
 */
export type ApplicationState = 'sending' | 'documents_required' | 'submitted' | 'opened' | 'uncertain' | 'rejected' | 'refused' | 'unplaced' | (string & {});

/** The money of an account, as the broker reports it. */
export interface Balance {
  /** The kind of this object. */
  readonly object: 'balance';
  /** The account's code, upper-case. */
  readonly account: string;
  /** Always `NGN`. */
  readonly currency: string;
  /** The money booked when the day began, settled or not, in kobo; can be negative. */
  readonly opening_kobo: bigint;
  /** The money still to be paid, in kobo; never negative. A broker may count what waiting orders may cost. */
  readonly pending_debits_kobo: bigint;
  /** The money that can be used now, in kobo; negative when the account owes money. */
  readonly available_kobo: bigint;
  /** The settled part of the money booked, in kobo; can be negative; null when the broker does not say. */
  readonly settled_kobo: bigint | null;
  /**
   * The part of the money booked that settles later, in kobo; negative when more was bought than sold; null when the broker
   * does not say. Together with `settled_kobo` it is the money booked.
   */
  readonly unsettled_kobo: bigint | null;
  /**
   * The money that can be withdrawn now, in kobo: never negative, and never more than `settled_kobo`; null when the broker
   * does not say.
   */
  readonly withdrawable_kobo: bigint | null;
  /** The time for which these figures hold, UTC, to the second; null when the broker does not say. */
  readonly as_of: string | null;
}

/**
 * A segment of the exchange's list. The list can grow.
 *
 * - `main`: The main board.
 * - `premium`: The premium board.
 * - `growth`: The growth board.
 * - `asem`: The alternative securities market.
 * - `etf`: The board of exchange-traded funds.
 *
 * The list can grow: accept a value you do not know.
 */
export type Board = 'main' | 'premium' | 'growth' | 'asem' | 'etf' | (string & {});

/** One settled trade with its charges. */
export interface ContractNote {
  /** The kind of this object. */
  readonly object: 'contract_note';
  /** The note's number at the broker. */
  readonly ticket: string;
  /** The stock's symbol, upper-case. */
  readonly symbol: string;
  /** The stock's name. */
  readonly name: string;
  /** `buy` or `sell`. */
  readonly side: TradeSide;
  /** How many shares. */
  readonly quantity: bigint;
  /** The price of one share in kobo. */
  readonly price_kobo: bigint;
  /** The quantity times the price, in kobo. */
  readonly amount_kobo: bigint;
  /** The broker's commission in kobo. */
  readonly commission_kobo: bigint;
  /** The charges of the exchange and the state, in kobo. */
  readonly statutory_fees_kobo: bigint;
  /** Other charges in kobo. */
  readonly other_fees_kobo: bigint;
  /** The cost or proceeds of the trade with its charges, in kobo. */
  readonly consideration_kobo: bigint;
  /** The day it was executed, in Lagos: YYYY-MM-DD. */
  readonly trade_date: string;
  /** The day it was settled, in Lagos: YYYY-MM-DD. */
  readonly transaction_date: string;
}

/** An allocation to make. */
export interface CreateAllocationRequest {
  /** The code of the account to fund, one of the partner's. Case does not matter. */
  readonly account: string;
  /** The amount in kobo, 1 to 10,000,000,000. */
  readonly amount_kobo: number | bigint;
  /**
   * The partner's own reference: 1 to 64 printable ASCII characters, not necessarily unique. It is returned with the
   * allocation, and allocations can be listed by it.
   */
  readonly client_reference?: string | null | undefined;
}

/** The personal data that an account is to be opened with. Every value is at most 200 bytes of UTF-8. */
export interface CreateApplicationRequest {
  /** The customer's first name. */
  readonly first_name: string;
  /** The customer's last name. */
  readonly last_name: string;
  /** The day the customer was born, YYYY-MM-DD, from 1900-01-01 to today in Lagos. */
  readonly date_of_birth: string;
  /** The customer's gender, as the broker writes it. */
  readonly gender: string;
  /** The customer's e-mail address. */
  readonly email: string;
  /** The customer's phone number: +234 and 10 digits, or 0 and 10 digits; of another country, + with its code. The broker checks it. */
  readonly phone: string;
  /** Street and house of the customer's address. */
  readonly address: string;
  /** City of the customer's address. */
  readonly city: string;
  /** The code of the state of the customer's address, from the list of states. */
  readonly state: string;
  /** The code of the customer's state of origin, from the list of states. */
  readonly state_of_origin: string;
  /** The code of the customer's local government area of origin, from that state's list. */
  readonly lga_of_origin: string;
  /** The customer's Bank Verification Number (BVN): 11 digits. The broker checks it. */
  readonly bvn: string;
  /** The name of the customer's next of kin. */
  readonly next_of_kin_name: string;
  /** The phone number of the customer's next of kin, as `phone`. */
  readonly next_of_kin_phone: string;
  /** The next of kin's relation to the customer. */
  readonly next_of_kin_relationship: string;
  /** How the customer is addressed. */
  readonly title?: string | null | undefined;
  /** The customer's middle name. */
  readonly middle_name?: string | null | undefined;
  /** The customer's National Identification Number (NIN): 11 digits. */
  readonly nin?: string | null | undefined;
  /** The customer's occupation. */
  readonly occupation?: string | null | undefined;
  /** The code of the customer's bank: 3 digits, the Central Bank's, as in 058, or the 6 digits for instant payments. */
  readonly bank_code?: string | null | undefined;
  /** The number of the customer's account there (NUBAN): 10 digits. */
  readonly bank_account_number?: string | null | undefined;
  /** The maiden name of the customer's mother. */
  readonly mothers_maiden_name?: string | null | undefined;
}

/** A key to make. */
export interface CreateKeyRequest {
  /** The scopes of the key: one or more of those the calling key has. A scope that occurs twice counts once. */
  readonly scopes: readonly ('read' | 'trade' | 'apply' | 'fund' | 'keys' | 'withdraw')[];
  /**
   * The addresses and ranges the key works from, at most 20, such as `192.0.2.1`, `192.0.2.0/24` and `2001:db8::/32`. A range
   * is kept as its first address and its length. Absent or empty: the key works from everywhere, where that is allowed.
   */
  readonly addresses?: readonly string[] | null | undefined;
}

/** An order to place. */
export type CreateOrderRequest = {
  /** The code of the account to trade for, one of the partner's. Case does not matter. */
  readonly account: string;
  /** The stock's symbol. Case does not matter. */
  readonly symbol: string;
  /** `buy` or `sell`. */
  readonly side: 'buy' | 'sell';
  /** How many shares to trade, 1 to 100,000,000. */
  readonly quantity: number | bigint;
  /** `limit` or `market`. */
  readonly type: 'limit';
  /** How long the order lives; `day` when absent. */
  readonly time_in_force?: 'day' | 'gtc' | 'ioc' | 'fok' | null | undefined;
  /**
   * The limit price of one share in kobo, 1 to 1,000,000,000. Required on a limit order, absent or null on a market
   * order.
   */
  readonly price_kobo: number | bigint;
  /**
   * The partner's own reference: 1 to 64 printable ASCII characters, not necessarily unique. It is returned with the
   * order, and orders can be listed by it.
   */
  readonly client_reference?: string | null | undefined;
} | {
  /** The code of the account to trade for, one of the partner's. Case does not matter. */
  readonly account: string;
  /** The stock's symbol. Case does not matter. */
  readonly symbol: string;
  /** `buy` or `sell`. */
  readonly side: 'buy' | 'sell';
  /** How many shares to trade, 1 to 100,000,000. */
  readonly quantity: number | bigint;
  /** `limit` or `market`. */
  readonly type: 'market';
  /** How long the order lives; `day` when absent. */
  readonly time_in_force?: 'day' | 'gtc' | 'ioc' | 'fok' | null | undefined;
  /**
   * The limit price of one share in kobo, 1 to 1,000,000,000. Required on a limit order, absent or null on a market
   * order.
   */
  readonly price_kobo?: null | undefined;
  /**
   * The partner's own reference: 1 to 64 printable ASCII characters, not necessarily unique. It is returned with the
   * order, and orders can be listed by it.
   */
  readonly client_reference?: string | null | undefined;
};

/** A withdrawal to make. */
export interface CreateWithdrawalRequest {
  /** The code of the account that pays, one of the partner's. Case does not matter. */
  readonly account: string;
  /** The amount in kobo, 1 to 10,000,000,000. */
  readonly amount_kobo: number | bigint;
  /** Where the money goes: `wallet` or `bank_account`. */
  readonly destination: 'wallet' | 'bank_account';
  /**
   * The partner's own reference: 1 to 64 printable ASCII characters, not necessarily unique. It is returned with the
   * withdrawal, and withdrawals can be listed by it.
   */
  readonly client_reference?: string | null | undefined;
}

/** An application to decide. */
export interface DecideApplicationRequest {
  /** The decision. */
  readonly outcome: 'open' | 'decline';
}

/** A withdrawal to decide. */
export interface DecideWithdrawalRequest {
  /** The decision. */
  readonly decision: 'paid' | 'rejected' | 'returned';
  /** Why it is rejected; `rejected_by_broker` when absent. Of no use with another decision. */
  readonly reject_reason?: 'insufficient_withdrawable_funds' | 'account_restricted' | 'no_bank_account' | 'bank_account_mismatch' | 'account_not_at_broker' | 'rejected_by_broker' | null | undefined;
}

/** The broker's decision on an application. The application shows it a moment later. */
export interface Decision {
  /** The kind of this object. */
  readonly object: 'sandbox_decision';
  /** The application's id. */
  readonly id: string;
  /** The decision. */
  readonly outcome: SandboxApplicationOutcome;
  /** The code of the account that was opened; null when none was. */
  readonly account: string | null;
}

/** A directive that waits for what it is about. */
export interface Directive {
  /** The kind of this object. */
  readonly object: 'sandbox_directive';
  /** The account it waits on; null when it is about one object. */
  readonly account: string | null;
  /** The object it is about; null when it waits on an account. */
  readonly id: string | null;
  /** How many times it is used, unless 24 hours pass or the sandbox starts again before. */
  readonly times: bigint;
}

/** One document of an application, as the broker has it. The gateway keeps no copy of the file. */
export interface Document {
  /** The kind of this object. */
  readonly object: 'document';
  /** The application's id. */
  readonly application: string;
  /** The subject of the document. */
  readonly type: DocumentType;
  /** Where the document stands. */
  readonly state: DocumentState;
  /** When the document was first sent, UTC, to the second. */
  readonly created_at: string;
  /** When its state last changed, UTC, to the second. */
  readonly updated_at: string;
}

/**
 * Where a document stands. The list can grow.
 *
 * - `delivered`: The broker has the file. This does not mean that the broker's staff verified it.
 *
 * The list can grow: accept a value you do not know.
 */
export type DocumentState = 'delivered' | (string & {});

/**
 * The subject of a document of an application. The list can grow.
 *
 * - `photo`: A passport photograph.
 * - `government_id`: A government-issued ID.
 * - `utility_bill`: A utility bill, for the address.
 * - `signature`: A specimen of the customer's signature.
 *
 * The list can grow: accept a value you do not know.
 */
export type DocumentType = 'photo' | 'government_id' | 'utility_bill' | 'signature' | (string & {});

/** An order to estimate. It takes the members of an order to place, so that the same body does for both. */
export type EstimateOrderRequest = {
  /** The code of the account to trade for, one of the partner's. Case does not matter. */
  readonly account: string;
  /** The stock's symbol. Case does not matter. */
  readonly symbol: string;
  /** `buy` or `sell`. */
  readonly side: 'buy' | 'sell';
  /** How many shares to trade, 1 to 100,000,000. */
  readonly quantity: number | bigint;
  /** `limit` or `market`. */
  readonly type: 'limit';
  /** How long the order would live; it does not change the estimate. */
  readonly time_in_force?: 'day' | 'gtc' | 'ioc' | 'fok' | null | undefined;
  /**
   * The limit price of one share in kobo, 1 to 1,000,000,000. Required on a limit order, absent or null on a market
   * order.
   */
  readonly price_kobo: number | bigint;
  /** Taken and not used. */
  readonly client_reference?: string | null | undefined;
} | {
  /** The code of the account to trade for, one of the partner's. Case does not matter. */
  readonly account: string;
  /** The stock's symbol. Case does not matter. */
  readonly symbol: string;
  /** `buy` or `sell`. */
  readonly side: 'buy' | 'sell';
  /** How many shares to trade, 1 to 100,000,000. */
  readonly quantity: number | bigint;
  /** `limit` or `market`. */
  readonly type: 'market';
  /** How long the order would live; it does not change the estimate. */
  readonly time_in_force?: 'day' | 'gtc' | 'ioc' | 'fok' | null | undefined;
  /**
   * The limit price of one share in kobo, 1 to 1,000,000,000. Required on a limit order, absent or null on a market
   * order.
   */
  readonly price_kobo?: null | undefined;
  /** Taken and not used. */
  readonly client_reference?: string | null | undefined;
};

/** One change to one object. */
export interface Event {
  /** The kind of this object. */
  readonly object: 'event';
  /**
   * The event's id: `msg_` and 24 lower-case hex characters. A webhook carries it as
   * `webhook-id`.
   */
  readonly id: string;
  /**
   * The object's kind, a full stop and its state: `order.pending`, `order.partially_filled` (once for each trade that
   * leaves something over), `order.filled`, `order.uncertain`, `order.rejected`, `order.refused`, `order.cancelled` or
   * `order.expired`. A trade the exchange reports after the order was final repeats the type of its final state, with
   * more filled. A settlement by operators makes an event for each trade, first for trades that were taken back. For example, an
   * order that loses one trade and gains another goes from `order.filled` to `order.partially_filled` and back to
   * `order.filled`. Of applications: `application.documents_required`, `application.submitted`, `application.opened`,
   * `application.uncertain`, `application.rejected`, `application.refused` or `application.unplaced`. Of allocations:
   * `allocation.booked`, `allocation.uncertain`, `allocation.rejected` or `allocation.refused`. Of withdrawals:
   * `withdrawal.processing`, `withdrawal.completed`, `withdrawal.uncertain`, `withdrawal.rejected`, `withdrawal.refused` or
   * `withdrawal.returned`. That an object was stored
   * (`sending`) makes no event. New types can appear: ignore those you do not handle.
   */
  readonly type: string;
  /** When the object changed: its `updated_at`. */
  readonly timestamp: string;
  /**
   * The event's number among the partner's events: 1, 2, 3 … without a gap. Compare versions per object and ignore an
   * event whose version is lower than the last one applied to that object.
   */
  readonly version: bigint;
  /**
   * One order to buy or sell shares.
   *
   * One application for a customer's account. It never has the customer's data of the request.
   *
   * One movement of money from the wallet to an account.
   *
   * One movement of money out of an account.
   *
   * Objects of other kinds may come: accept one that you do not know.
   */
  readonly data: Order | Application | Allocation | Withdrawal;
}

/** A report of the exchange about an order. The order shows it a moment later. */
export interface ExchangeReport {
  /** The kind of this object. */
  readonly object: 'sandbox_report';
  /** The order's id. */
  readonly id: string;
  /** The kind of the report. */
  readonly kind: ExchangeReportKind;
  /** How many shares traded; null when none did. */
  readonly quantity: bigint | null;
  /** The price of one share in kobo; null when none traded. */
  readonly price_kobo: bigint | null;
}

/**
 * A kind of report of an exchange about an order.
 *
 * - `accepted`: It has the order.
 * - `rejected`: It does not take the order, or gave it up.
 * - `trade`: Shares traded.
 * - `cancelled`: The rest that had not traded was cancelled.
 * - `expired`: The rest that had not traded expired.
 *
 * The list can grow: accept a value you do not know.
 */
export type ExchangeReportKind = 'accepted' | 'rejected' | 'trade' | 'cancelled' | 'expired' | (string & {});

/** An order to end. */
export interface ExpireOrderRequest {
}

/** Shares to trade now. */
export interface FillOrderRequest {
  /** How many shares; all that is left when absent. */
  readonly quantity?: number | bigint | null | undefined;
  /** The price of one share in kobo, within the order's limit; the order's own or the last price when absent. */
  readonly price_kobo?: number | bigint | null | undefined;
}

/** The fate of the next allocations to an account. */
export interface ForceAllocationRequest {
  /** The account's code, one of the partner's. Case does not matter. */
  readonly account: string;
  /** Their fate. */
  readonly outcome: 'booked' | 'rejected';
  /** Why they are rejected; `rejected_by_broker` when absent. Of no use when they are booked. */
  readonly reject_reason?: 'account_not_at_broker' | 'account_restricted' | 'amount_not_accepted' | 'rejected_by_broker' | null | undefined;
  /** How many allocations, 1 to 100; 1 when absent. */
  readonly times?: number | bigint | null | undefined;
}

/** The fate of the next documents of an application. */
export interface ForceDocumentRequest {
  /** Only documents of this type; absent: any. */
  readonly type?: 'photo' | 'government_id' | 'utility_bill' | 'signature' | null | undefined;
  /** Their fate. */
  readonly outcome: 'delivered' | 'refused';
  /** How many documents, 1 to 100; 1 when absent. */
  readonly times?: number | bigint | null | undefined;
}

/** The fate of the next orders on an account. */
export interface ForceOrderRequest {
  /** The account's code, one of the partner's. Case does not matter. */
  readonly account: string;
  /** Only orders for this symbol; absent: any. */
  readonly symbol?: string | null | undefined;
  /** Their fate. */
  readonly outcome: 'rest' | 'fill' | 'fill_half' | 'reject' | 'expire' | 'accept_then_reject';
  /** Why they are rejected; `rejected_by_exchange` when absent. Of no use with outcomes that reject nothing. */
  readonly reject_reason?: 'insufficient_funds' | 'market_closed' | 'settlement_lockout' | 'limit_orders_etf_only' | 'unknown_symbol' | 'symbol_not_tradable' | 'account_not_at_broker' | 'rejected_by_exchange' | 'price_off_tick' | 'price_outside_band' | 'quantity_off_lot' | null | undefined;
  /** In how many parts they fill, 1 to 100; 1 when absent. */
  readonly parts?: number | bigint | null | undefined;
  /**
   * How long after acceptance the first fill or the end comes, and each one after that, in milliseconds, 0 to 60,000; 0 when
   * absent.
   */
  readonly delay_ms?: number | bigint | null | undefined;
  /** How many orders, 1 to 100; 1 when absent. */
  readonly times?: number | bigint | null | undefined;
}

/** The fate of the next withdrawals from an account. */
export interface ForceWithdrawalRequest {
  /** The account's code, one of the partner's. Case does not matter. */
  readonly account: string;
  /** Their fate. All but a rejection at once need an account that may pay the amount. */
  readonly outcome: 'pay_at_once' | 'pay_later' | 'reject' | 'reject_later' | 'hold' | 'return';
  /** Why they are rejected; `rejected_by_broker` when absent. Of no use with outcomes that reject nothing. */
  readonly reject_reason?: 'insufficient_withdrawable_funds' | 'account_restricted' | 'no_bank_account' | 'bank_account_mismatch' | 'account_not_at_broker' | 'rejected_by_broker' | null | undefined;
  /** How many withdrawals, 1 to 100; 1 when absent. */
  readonly times?: number | bigint | null | undefined;
}

/** A page of an order's history. */
export interface GetOrderHistoryResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More steps follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The steps, oldest first. */
  readonly data: readonly OrderStep[];
}

/** A page of a withdrawal's history. */
export interface GetWithdrawalHistoryResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More steps follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The steps, oldest first. */
  readonly data: readonly WithdrawalStep[];
}

/** Something to go wrong. */
export interface InjectFaultRequest {
  /** The call that it strikes. */
  readonly call: 'submit_order' | 'cancel_order' | 'look_up_order' | 'submit_allocation' | 'look_up_allocation' | 'look_up_application' | 'send_document' | 'submit_withdrawal' | 'look_up_withdrawal';
  /** The fault. */
  readonly fault: 'hang' | 'lose_answer' | 'late_answer' | 'late_receipt' | 'reset_before' | 'reset_after' | 'unavailable_before' | 'unavailable_after' | 'nonsense' | 'too_late';
  /** Only on behalf of this account, one of the partner's. Needed unless `id` is there. Case does not matter. */
  readonly account?: string | null | undefined;
  /** Only about this order, application, allocation or withdrawal. */
  readonly id?: string | null | undefined;
  /** How late, for the faults that wait, in milliseconds, 0 to 60,000; 0 when absent. */
  readonly delay_ms?: number | bigint | null | undefined;
  /** How many times, 1 to 100; 1 when absent. */
  readonly times?: number | bigint | null | undefined;
}

/** The facts about a symbol that an order needs. Prices are those of one share, in kobo. */
export interface Instrument {
  /** The kind of this object. */
  readonly object: 'instrument';
  /** The symbol, upper-case. */
  readonly symbol: string;
  /** The name of the company or fund. */
  readonly name: string;
  /** The kind of the instrument. */
  readonly kind: InstrumentKind;
  /** The board it is listed on. */
  readonly board: Board;
  /** An order's quantity must be a multiple of it. */
  readonly lot_size: bigint;
  /**
   * The ticks within the day's band, by price. There are several when the band reaches over a price at which the tick
   * changes: the last entry whose `from_price_kobo` is not above your price is the one that holds.
   */
  readonly tick_sizes: readonly TickSize[];
  /** The lowest price an order may have today. */
  readonly lower_price_kobo: bigint;
  /** The highest price an order may have today. Orders without a limit and all sales count at it against the day's limit. */
  readonly upper_price_kobo: bigint;
  /** The price of the last trade, or of the previous close. */
  readonly last_price_kobo: bigint;
  /**
   * Whether it trades now, and if not, why. This is what the exchange does: whether this service takes orders is
   * `trading_paused` of `GET /v1/market`.
   */
  readonly trading_status: TradingStatus;
}

/**
 * The kind of instrument of a symbol. The list can grow.
 *
 * - `equity`: A share of a company.
 * - `etf`: A share of an exchange-traded fund. It takes limit orders only.
 *
 * The list can grow: accept a value you do not know.
 */
export type InstrumentKind = 'equity' | 'etf' | (string & {});

/** An API key, without its secret. */
export interface Key {
  /** The kind of this object. */
  readonly object: 'key';
  /** The key's id: `key_` and 20 characters from a-z and 2-7. */
  readonly id: string;
  /** The scopes of the key. */
  readonly scopes: readonly Scope[];
  /** The addresses and ranges it works from, such as `192.0.2.1` and `2001:db8::/32`. Empty: it works from everywhere. */
  readonly addresses: readonly string[];
  /** When the key was made, UTC, to the second. */
  readonly created_at: string;
  /** When a request was last made with it, UTC, to the second; null before the first. It can be some seconds behind. */
  readonly last_used_at: string | null;
  /** When the key was revoked, UTC, to the second; null while it works. */
  readonly revoked_at: string | null;
  /** The id of the key it was made with; null when an operator made it. */
  readonly created_by: string | null;
}

/** One local government area. */
export interface Lga {
  /** The kind of this object. */
  readonly object: 'bank';
  /** Its code, upper-case, unique over all states. */
  readonly code: string;
  /** Its name. */
  readonly name: string;
}

/** A page of transactions. */
export interface ListAccountTransactionsResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The transactions, newest booking first. */
  readonly data: readonly AccountTransaction[];
}

/** A page of accounts. */
export interface ListAccountsResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The accounts, newest first. */
  readonly data: readonly Account[];
}

/** A page of allocations. */
export interface ListAllocationsResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More allocations follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The allocations, newest first. */
  readonly data: readonly Allocation[];
}

/** A page of applications. */
export interface ListApplicationsResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More applications follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The applications, newest first. */
  readonly data: readonly Application[];
}

/** A page of contract notes. */
export interface ListContractNotesResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The notes, newest trade date first; of the same date, the greatest ticket first. */
  readonly data: readonly ContractNote[];
}

/** All documents of an application that the broker has, in the order in which they were first sent. */
export interface ListDocumentsResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** Never true: an application has at most four documents, which come in one page. */
  readonly has_more: boolean;
  /** Always absent. */
  readonly next_cursor: string | null;
  /** The documents. */
  readonly data: readonly Document[];
}

/** A page of events. */
export interface ListEventsResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More events follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for what follows this page: always there, also where nothing follows yet. */
  readonly next_cursor: string;
  /** The events, oldest first. */
  readonly data: readonly Event[];
}

/** A page of instruments. */
export interface ListInstrumentsResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More instruments follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The instruments, by symbol. */
  readonly data: readonly Instrument[];
}

/** A page of the partner's keys. */
export interface ListKeysResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More keys follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The keys, newest first. */
  readonly data: readonly Key[];
}

/** A page of the last events, and where the feed goes on. */
export interface ListLatestEventsResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** Earlier events follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The events, newest first. */
  readonly data: readonly Event[];
  /**
   * The value to pass as `cursor` to ListEvents or WatchEvents to get the events after the newest one of this page; null
   * when the page has none: then begin without a cursor.
   */
  readonly feed_cursor: string | null;
}

/** A page of a state's local government areas: all of them. */
export interface ListLgasResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The areas, by name. */
  readonly data: readonly Lga[];
}

/** A page of the exchange's calendar. */
export interface ListMarketDaysResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More days follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The days, oldest first, without a gap. */
  readonly data: readonly MarketDay[];
}

/** A page of the events of one object. */
export interface ListObjectEventsResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More events follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The events, oldest first. */
  readonly data: readonly Event[];
}

/** A page of orders. */
export interface ListOrdersResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More orders follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The orders, newest first. */
  readonly data: readonly Order[];
}

/** A page of stocks an account holds. */
export interface ListPositionsResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The positions, by symbol. */
  readonly data: readonly Position[];
}

/** A page of requests. */
export interface ListRequestsResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More requests follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The requests, newest first. */
  readonly data: readonly RequestRecord[];
}

/** A page of states: all of them. */
export interface ListStatesResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The states, by name. */
  readonly data: readonly State[];
}

/** A page of trades. */
export interface ListTradesResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The trades, newest first; of the same time, the greatest id first. */
  readonly data: readonly Trade[];
}

/** A page of a wallet's ledger. */
export interface ListTransfersResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More entries follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The entries, newest first. */
  readonly data: readonly WalletTransfer[];
}

/** A page of deliveries. */
export interface ListWebhookDeliveriesResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More deliveries follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The deliveries, newest first. */
  readonly data: readonly WebhookDelivery[];
}

/** A page of withdrawals. */
export interface ListWithdrawalsResponse {
  /** The kind of this object. */
  readonly object: 'list';
  /** More withdrawals follow this page. */
  readonly has_more: boolean;
  /** The value to pass as `cursor` for the next page; null when there is none. */
  readonly next_cursor: string | null;
  /** The withdrawals, newest first. */
  readonly data: readonly Withdrawal[];
}

/** The exchange's session, and whether this service accepts orders. */
export interface Market {
  /** The kind of this object. */
  readonly object: 'market';
  /** The phase that it is in. */
  readonly session: MarketSession;
  /** When it opens next, UTC, to the second; null when that is not known, or it never closes. */
  readonly next_open_at: string | null;
  /** When it closes next, UTC, to the second; null when that is not known, or it never closes. */
  readonly next_close_at: string | null;
  /**
   * Whether this service has paused trading, whatever the exchange does: new orders, applications, documents and
   * allocations are answered `trading_paused`. Cancels, estimates and reads still work.
   */
  readonly trading_paused: boolean;
}

/** One day of the exchange's calendar. */
export interface MarketDay {
  /** The kind of this object. */
  readonly object: 'market_day';
  /** The day, in Lagos: YYYY-MM-DD. */
  readonly date: string;
  /** The kind of the day. */
  readonly kind: MarketDayKind;
  /** The holiday's name, or the occasion of a half day; null on any other day, or when it has none. */
  readonly name: string | null;
  /** When trading opens, UTC, to the second; null on a day without trading. */
  readonly opens_at: string | null;
  /** When trading closes, UTC, to the second; null on a day without trading. */
  readonly closes_at: string | null;
  /** The day on which that day's trades settle, in Lagos: YYYY-MM-DD; null on a day without trading. */
  readonly settlement_date: string | null;
}

/**
 * The kind of a day in the exchange's calendar. The list can grow.
 *
 * - `trading_day`: The exchange trades at its usual hours.
 * - `half_day`: It trades, and closes earlier than usual.
 * - `weekend`: It is closed, as on every such day of the week.
 * - `holiday`: It is closed on a day on which it would trade.
 *
 * The list can grow: accept a value you do not know.
 */
export type MarketDayKind = 'trading_day' | 'half_day' | 'weekend' | 'holiday' | (string & {});

/**
 * The phase that the exchange is in. The list can grow.
 *
 * - `open`: It trades.
 * - `closed`: Its day is over, or has not begun.
 * - `paused`: It pauses within its day.
 * - `halted`: It stopped trading out of turn.
 *
 * The list can grow: accept a value you do not know.
 */
export type MarketSession = 'open' | 'closed' | 'paused' | 'halted' | (string & {});

/** An API key that was just made. */
export interface NewKey {
  /** The kind of this object. */
  readonly object: 'key';
  /** The key's id: `key_` and 20 characters from a-z and 2-7. */
  readonly id: string;
  /** The scopes of the key. */
  readonly scopes: readonly Scope[];
  /** The addresses and ranges it works from. Empty: it works from everywhere. */
  readonly addresses: readonly string[];
  /** When the key was made, UTC, to the second. */
  readonly created_at: string;
  /** Always null: no request was made with it yet. */
  readonly last_used_at: string | null;
  /** Always null: it was not revoked. */
  readonly revoked_at: string | null;
  /** The id of the key it was made with, which is the calling one. */
  readonly created_by: string | null;
  /** The key itself, as `Authorization: Bearer` takes it. It cannot be had again. */
  readonly secret: string;
}

/** One order to buy or sell shares. */
export interface Order {
  /** The kind of this object. */
  readonly object: 'order';
  /** The order's id: `ord_` and 20 characters from a-z and 2-7. */
  readonly id: string;
  /** Where the order stands. */
  readonly state: OrderState;
  /** The code of the account it trades for, upper-case. */
  readonly account: string;
  /** The stock's symbol, upper-case. */
  readonly symbol: string;
  /** `buy` or `sell`. */
  readonly side: OrderSide;
  /** How many shares to trade. */
  readonly quantity: bigint;
  /** `limit` or `market`. */
  readonly type: OrderType;
  /** How long the order lives. */
  readonly time_in_force: TimeInForce;
  /** The limit price of one share in kobo; null for a market order. */
  readonly price_kobo: bigint | null;
  /** How many shares have traded so far. It can still grow in a final state, when the exchange reports a trade late. */
  readonly filled_quantity: bigint;
  /** The exchange's identifier of the order, once it has one. */
  readonly exchange_order_id: string | null;
  /** A sentence for people that explains the state; never use it in logic. */
  readonly reason: string | null;
  /** Why the exchange rejected the order; set only when the state is `rejected`. */
  readonly reject_reason: OrderRejectReason | null;
  /** When the order was stored, UTC, to the second. */
  readonly created_at: string;
  /** When it last changed, UTC, to the second; it never goes back. */
  readonly updated_at: string;
  /** When the last of its shares traded, as the exchange tells; null unless the state is `filled`. */
  readonly filled_at: string | null;
  /**
   * The average price of the shares that traded, in kobo: a decimal with a decimal point and 1 to 12 places, rounded
   * half up where it has more; null while nothing has traded.
   */
  readonly average_fill_price_kobo_decimal: string | null;
  /** The partner's own reference, as given when the order was placed. */
  readonly client_reference: string | null;
}

/**
 * The cost or the proceeds of an order. The broker computes it, and the gateway passes on every digit.
 *
 * Every decimal is exact: digits, a decimal point and 1 to 12 places, a minus in front where it is below zero, and
 * never an exponent. Commission, statutory and other fees together are all charges, which `fees` lists one by one. A
 * buy's total is the amount plus the charges, a sale's the amount less them. Rounding happens once, on the total.
 */
export interface OrderEstimate {
  /** The kind of this object. */
  readonly object: 'order_estimate';
  /** The account's code, upper-case. */
  readonly account: string;
  /** The stock's symbol, upper-case. */
  readonly symbol: string;
  /** `buy` or `sell`. */
  readonly side: OrderSide;
  /** How many shares. */
  readonly quantity: bigint;
  /** `limit` or `market`. */
  readonly type: OrderType;
  /** The price of one share used, in kobo: a limit order's own, a market order's the one the broker expects. */
  readonly price_kobo: bigint;
  /** Quantity times price, in kobo, before charges. */
  readonly amount_kobo: bigint;
  /** The broker's commission in kobo, a decimal. */
  readonly commission_kobo_decimal: string;
  /** The statutory fees in kobo, a decimal. */
  readonly statutory_fees_kobo_decimal: string;
  /** All other fees in kobo, a decimal. */
  readonly other_fees_kobo_decimal: string;
  /** Each charge on its own, whichever of the three it belongs to. */
  readonly fees: readonly OrderFee[];
  /** The order's cost (a buy) or proceeds (a sale) in kobo, charges included, a decimal. */
  readonly total_kobo_decimal: string;
  /** The same in whole kobo: a buy's cost rounded up, a sale's proceeds rounded down. */
  readonly total_kobo: bigint;
}

/** One charge of an estimate. */
export interface OrderFee {
  /** The charge's name. */
  readonly name: string;
  /** The charge in kobo, a decimal. */
  readonly amount_kobo_decimal: string;
}

/**
 * Why the exchange rejected an order. The list can grow.
 *
 * - `insufficient_funds`: The account has too little money, or too few shares.
 * - `market_closed`: The market is closed.
 * - `settlement_lockout`: The account is locked until an earlier trade settles.
 * - `limit_orders_etf_only`: The symbol is an exchange-traded fund, which takes limit orders only.
 * - `unknown_symbol`: The exchange does not know the symbol.
 * - `symbol_not_tradable`: The symbol cannot be traded now.
 * - `account_not_at_broker`: The broker does not have the account.
 * - `rejected_by_exchange`: Any other reason.
 * - `price_off_tick`: The limit price is no multiple of the instrument's tick. See `tick_sizes` of the instrument.
 * - `price_outside_band`: The limit price is outside the day's price band. See `lower_price_kobo` and `upper_price_kobo` of the instrument.
 * - `quantity_off_lot`: The quantity is no multiple of the instrument's lot. See `lot_size` of the instrument.
 *
 * The list can grow: accept a value you do not know.
 */
export type OrderRejectReason = 'insufficient_funds' | 'market_closed' | 'settlement_lockout' | 'limit_orders_etf_only' | 'unknown_symbol' | 'symbol_not_tradable' | 'account_not_at_broker' | 'rejected_by_exchange' | 'price_off_tick' | 'price_outside_band' | 'quantity_off_lot' | (string & {});

/**
 * Which way an order trades.
 *
 * - `buy`: Buy shares.
 * - `sell`: Sell shares.
 *
 * The list can grow: accept a value you do not know.
 */
export type OrderSide = 'buy' | 'sell' | (string & {});

/**
 * Where an order stands. The list can grow: treat an unknown state as one that may still change.
 *
 * - `sending`: Stored; the send to the exchange is in progress.
 * - `pending`: The exchange has the order.
 * - `partially_filled`: Some of the order has traded.
 * - `filled`: The order has traded in full.
 * - `uncertain`: It is unknown whether the exchange received it. The gateway does not send it again and reconciles it against the exchange's record.
 * - `rejected`: The exchange rejected it; see `reject_reason`.
 * - `refused`: It is not at the exchange and will not be: it never left the gateway, or the exchange refused it as too late, or it was proven that the exchange's record does not have it.
 * - `cancelled`: The part that had not traded was cancelled, and the exchange confirmed it; or the exchange gave up an order of which a part had traded.
 * - `expired`: Its time in force ran out before all of it traded.
 *
 * The list can grow: accept a value you do not know.
 */
export type OrderState = 'sending' | 'pending' | 'partially_filled' | 'filled' | 'uncertain' | 'rejected' | 'refused' | 'cancelled' | 'expired' | (string & {});

/** One step of an order's history. */
export interface OrderStep {
  /** The kind of this object. */
  readonly object: 'order_step';
  /** The step's place in the history: 1, 2, 3 … */
  readonly sequence: bigint;
  /** The kind of the step. */
  readonly kind: OrderStepKind;
  /** When it was recorded, UTC, to the second. */
  readonly at: string;
  /** The order's state after it. */
  readonly state: OrderState;
  /** The step, in a sentence for people. */
  readonly detail: string;
  /** The number of the exchange's report, when the step is one: a report or a contradiction. */
  readonly report_number: bigint | null;
  /**
   * How many shares traded, when the step is a trade. With `trade_sequence`, how many the trade of that step counts with from
   * now on: 0 when the exchange took it back.
   */
  readonly quantity: bigint | null;
  /** The price of one share in kobo, when the step is a trade; with `trade_sequence`, the trade's price from now on. */
  readonly price_kobo: bigint | null;
  /** The `sequence` of the step with the trade that this step changes or repeats; null when the step is about no earlier trade. */
  readonly trade_sequence: bigint | null;
}

/**
 * The kind of a step of an order's history. The list can grow.
 *
 * - `stored`: The order was stored.
 * - `sent`: The result of sending it to the exchange: accepted, rejected, unknown, or never sent.
 * - `report`: The exchange reported something about it.
 * - `reconciliation`: The exchange's record was asked about it, or the time to send it ran out without a known outcome.
 * - `cancel`: A cancel was sent to the exchange, or its result is known.
 * - `contradiction`: The exchange reported something impossible in the order's state, final or not. The state was kept, and the operators are alerted. Shares that traded after `rejected` or `refused` are counted in `filled_quantity` all the same.
 * - `settled_by_operator`: The operators settled it with the exchange: what became of the order, a trade that was not reported, or a trade that the exchange took back or corrected.
 *
 * The list can grow: accept a value you do not know.
 */
export type OrderStepKind = 'stored' | 'sent' | 'report' | 'reconciliation' | 'cancel' | 'contradiction' | 'settled_by_operator' | (string & {});

/**
 * How an order is priced.
 *
 * - `limit`: Trades at `price_kobo` or better.
 * - `market`: Trades at the market's price.
 *
 * The list can grow: accept a value you do not know.
 */
export type OrderType = 'limit' | 'market' | (string & {});

/** A partner's limits. All of the partner's keys count together. */
export interface PartnerLimits {
  /** The kind of this object. */
  readonly object: 'limits';
  /** The day the daily limits count, in West Africa Time, as YYYY-MM-DD. */
  readonly day: string;
  /** How many requests may be made. */
  readonly requests_per_second: RequestRate;
  /**
   * How many requests that create, estimate or cancel may be in progress at once. A request is in progress until it is
   * answered or would have been, so also while what it created is `sending`. `resets_at` is null.
   */
  readonly requests_under_way: Allowance;
  /** The value of orders placed in a day, in kobo. Exactly the limit is allowed. */
  readonly orders_kobo_per_day: Allowance;
  /** The amount allocated in a day, in kobo. Exactly the limit is allowed. */
  readonly allocations_kobo_per_day: Allowance;
  /** The largest that one request may be, the same for every partner. */
  readonly per_request: RequestBounds;
}

/** An account's shares of one stock. */
export interface Position {
  /** The kind of this object. */
  readonly object: 'position';
  /** The account's code, upper-case. */
  readonly account: string;
  /** The stock's symbol, upper-case. */
  readonly symbol: string;
  /** The stock's name. */
  readonly name: string;
  /** How many shares. */
  readonly quantity: bigint;
  /** The average cost of one share, as an exact decimal of kobo. */
  readonly average_cost_kobo_decimal: string;
  /** The price of one share now, in kobo. */
  readonly price_kobo: bigint;
  /** The quantity times the price, in kobo. */
  readonly market_value_kobo: bigint;
  /**
   * How many shares are settled; null when the broker does not say. More than `quantity` when shares were sold whose sale is
   * not settled.
   */
  readonly settled_quantity: bigint | null;
  /** How many shares can be sold now, at most `quantity`; null when the broker does not say. */
  readonly available_quantity: bigint | null;
}

/** An order to give up. */
export interface RejectOrderRequest {
  /** Why; `rejected_by_exchange` when absent. */
  readonly reject_reason?: 'insufficient_funds' | 'market_closed' | 'settlement_lockout' | 'limit_orders_etf_only' | 'unknown_symbol' | 'symbol_not_tradable' | 'account_not_at_broker' | 'rejected_by_exchange' | 'price_off_tick' | 'price_outside_band' | 'quantity_off_lot' | null | undefined;
}

/** Whose report to repeat. */
export interface RepeatReportRequest {
}

/** The largest that one request may be. */
export interface RequestBounds {
  /** Shares of one order. */
  readonly order_quantity: bigint;
  /** Kobo of one allocation. */
  readonly allocation_kobo: bigint;
  /** Bytes of a request's body, other than a document. */
  readonly request_body_bytes: bigint;
  /** Kobo of one withdrawal. */
  readonly withdrawal_kobo: bigint;
}

/**
 * How a request came.
 *
 * - `rest`: Over REST.
 * - `grpc`: Over gRPC.
 * - `connect`: Over Connect.
 *
 * The list can grow: accept a value you do not know.
 */
export type RequestProtocol = 'rest' | 'grpc' | 'connect' | (string & {});

/** A rate of requests: a bucket of `burst` requests that is refilled by `limit` each second. */
export interface RequestRate {
  /** Requests a second. */
  readonly limit: bigint;
  /** Requests at once. */
  readonly burst: bigint;
}

/** A request, and how it was answered. */
export interface RequestRecord {
  /** The kind of this object. */
  readonly object: 'sandbox_request';
  /** The request's id: the `x-request-id` of its answer. */
  readonly id: string;
  /** When it was answered, in the sandbox's time. */
  readonly at: string;
  /** How it came. */
  readonly protocol: RequestProtocol;
  /** Its HTTP method. */
  readonly method: string;
  /** Its path and query. `…` stands for each part that is not kept, such as the value of what is no parameter of the path. */
  readonly path: string;
  /** The operation, as in `Orders.CreateOrder`; null when there is none at this path. */
  readonly operation: string | null;
  /** The id of the key it came with. */
  readonly key: string;
  /** The HTTP status it was answered with; over gRPC and Connect the one that belongs to the answer's code. */
  readonly status: bigint;
  /** The error's code; null when there was no error. */
  readonly code: string | null;
  /** The id of the object that it is about or made; null when there is none. */
  readonly about: string | null;
  /** How long it took to answer, in milliseconds. */
  readonly duration_ms: bigint;
  /** Its body, as JSON; null when it had none, it was no JSON, or it is not kept. */
  readonly request_body: string | null;
  /** The answer's body, as JSON; null when it is not kept. A body of more than 4,096 bytes is cut, and ends with `…`. */
  readonly answer_body: string | null;
}

/** The state of an account. */
export interface SandboxAccountState {
  /** The kind of this object. */
  readonly object: 'sandbox_account_state';
  /** The account's code, upper-case. */
  readonly account: string;
  /** Its state. */
  readonly state: AccountState;
  /** Why it is restricted; null when it is not. */
  readonly code: AccountRestrictionCode | null;
  /** The activities that the restriction forbids; empty when it is not restricted. */
  readonly forbids: readonly AccountActivity[];
}

/**
 * The decision on an application.
 *
 * - `open`: The account is opened.
 * - `decline`: The broker's staff declines.
 *
 * The list can grow: accept a value you do not know.
 */
export type SandboxApplicationOutcome = 'open' | 'decline' | (string & {});

/** The sandbox's time. */
export interface SandboxClock {
  /** The kind of this object. */
  readonly object: 'sandbox_clock';
  /** The time now. */
  readonly now: string;
  /** How many seconds it is ahead of real time, because an operator has moved it. */
  readonly ahead_seconds: bigint;
  /** The day in Lagos, which the limits of a day count. */
  readonly day: string;
}

/** The present money and shares of an account. */
export interface SandboxFunds {
  /** The kind of this object. */
  readonly object: 'sandbox_funds';
  /** The account's code, upper-case. */
  readonly account: string;
  /** Its cash in kobo, without the cost and the proceeds of its trades. */
  readonly cash_kobo: bigint;
  /**
   * How many shares of each stock it can sell that its positions do not show; null when the request left that as it
   * was.
   */
  readonly shares_elsewhere: bigint | null;
}

/** The trades of an account are settled. */
export interface SandboxSettlement {
  /** The kind of this object. */
  readonly object: 'sandbox_settlement';
  /** The account's code, upper-case. */
  readonly account: string;
}

/**
 * The decision on a withdrawal.
 *
 * - `paid`: The broker pays it.
 * - `rejected`: The broker rejects it, with `reject_reason`.
 * - `returned`: The bank sends the money back.
 *
 * The list can grow: accept a value you do not know.
 */
export type SandboxWithdrawalDecision = 'paid' | 'rejected' | 'returned' | (string & {});

/**
 * A right that a key may have. Every operation needs exactly one scope.
 *
 * - `read`: Every read.
 * - `trade`: Create, estimate and cancel orders.
 * - `apply`: Create applications and send their documents.
 * - `fund`: Create allocations.
 * - `keys`: List, create and revoke keys.
 * - `withdraw`: Create withdrawals.
 *
 * The list can grow: accept a value you do not know.
 */
export type Scope = 'read' | 'trade' | 'apply' | 'fund' | 'keys' | 'withdraw' | (string & {});

/** Nothing is needed to send a test. */
export interface SendWebhookTestRequest {
}

/** The state that an account gets. */
export type SetAccountStateRequest = {
  /** The account's code, one of the partner's. Case does not matter. */
  readonly account: string;
  /** Its state. */
  readonly state: 'restricted';
  /** Why it is restricted, from now on. */
  readonly code: 'broker_hold' | 'regulator' | 'kyc_expired' | 'settlement_lockout' | 'deceased' | 'other';
  /** The activities that the restriction forbids, each once; everything when absent. Only when it is restricted. */
  readonly forbids?: readonly ('buy' | 'sell' | 'fund' | 'withdraw')[] | null | undefined;
} | {
  /** The account's code, one of the partner's. Case does not matter. */
  readonly account: string;
  /** Its state. */
  readonly state: 'active' | 'closed';
  /** Why it is restricted, from now on. */
  readonly code?: null | undefined;
  /** The activities that the restriction forbids, each once; everything when absent. Only when it is restricted. */
  readonly forbids?: readonly ('buy' | 'sell' | 'fund' | 'withdraw')[] | null | undefined;
};

/** The money and shares of an account. */
export interface SetFundsRequest {
  /** The account's code, one of the partner's. Case does not matter. */
  readonly account: string;
  /** Its cash in kobo, without the cost and the proceeds of its trades; below 0 it owes money. */
  readonly cash_kobo: number | bigint;
  /** How many shares of each stock it can sell that its positions do not show; as before when absent. */
  readonly shares_elsewhere?: number | bigint | null | undefined;
}

/** Whose trades to settle. */
export interface SettleTradesRequest {
  /** The account's code, one of the partner's. Case does not matter. */
  readonly account: string;
}

/** One state. */
export interface State {
  /** The kind of this object. */
  readonly object: 'state';
  /** Its code, upper-case. */
  readonly code: string;
  /** Its name. */
  readonly name: string;
}

/** The tick from a price on. */
export interface TickSize {
  /** The lowest price in kobo from which the tick holds, up to the next entry's. */
  readonly from_price_kobo: bigint;
  /** The tick in kobo: a limit price must be a multiple of it. */
  readonly tick_size_kobo: bigint;
}

/**
 * How long an order lives.
 *
 * - `day`: Until the end of the trading day.
 * - `gtc`: Until it is cancelled.
 * - `ioc`: Immediate or cancel: the part that cannot trade at once expires.
 * - `fok`: Fill or kill: it trades in full at once, or expires.
 *
 * The list can grow: accept a value you do not know.
 */
export type TimeInForce = 'day' | 'gtc' | 'ioc' | 'fok' | (string & {});

/** One trade of an account. */
export interface Trade {
  /** The kind of this object. */
  readonly object: 'trade';
  /** The broker's id of the trade. */
  readonly id: string;
  /** The id of the order that traded; null when it was not placed through the gateway. */
  readonly order: string | null;
  /** The account's code, upper-case. */
  readonly account: string;
  /** The stock's symbol, upper-case. */
  readonly symbol: string;
  /** `buy` or `sell`. */
  readonly side: TradeSide;
  /** How many shares. */
  readonly quantity: bigint;
  /** The price of one share in kobo. */
  readonly price_kobo: bigint;
  /** The quantity times the price, in kobo. */
  readonly amount_kobo: bigint;
  /** The day it was executed, in Lagos: YYYY-MM-DD. */
  readonly trade_date: string;
  /** When it was executed, UTC, to the second. */
  readonly executed_at: string;
  /** The day on which it settles or has settled, in Lagos: YYYY-MM-DD; null when the broker does not say. */
  readonly settlement_date: string | null;
  /** Whether it is settled; null when the broker does not say. */
  readonly settled: boolean | null;
}

/**
 * Which side of a trade an account was on. The list can grow.
 *
 * - `buy`: It bought.
 * - `sell`: It sold.
 *
 * The list can grow: accept a value you do not know.
 */
export type TradeSide = 'buy' | 'sell' | (string & {});

/**
 * Whether an instrument trades now, and if not, why. The list can grow: take a value you do not know for "does not trade".
 *
 * - `trading`: Orders are taken, and trade.
 * - `market_closed`: The exchange's day is over, or has not begun. An order is rejected as `market_closed`.
 * - `market_paused`: The exchange pauses within its day, such as before an auction. It takes orders, and trades none.
 * - `market_halted`: The exchange stopped all trading out of turn. An order is rejected as `market_closed`.
 * - `instrument_halted`: The exchange stopped trading in this instrument. An order is rejected as `symbol_not_tradable`.
 *
 * The list can grow: accept a value you do not know.
 */
export type TradingStatus = 'trading' | 'market_closed' | 'market_paused' | 'market_halted' | 'instrument_halted' | (string & {});

/**
 * The balances of a wallet. Every kobo that ever came in, by credit or withdrawal, and did not go out again, by debit or
 * reversal of a credit, is in exactly one of `available_kobo`, `reserved_kobo` and `posted_kobo`.
 */
export interface WalletTotals {
  /** The kind of this object. */
  readonly object: 'wallet';
  /** The amount that allocations can use, in kobo; never negative. */
  readonly available_kobo: bigint;
  /** The amount held by allocations that are neither booked nor refused nor rejected yet, in kobo. */
  readonly reserved_kobo: bigint;
  /** The amount booked to accounts so far, in kobo. */
  readonly posted_kobo: bigint;
  /**
   * The amount that came in by withdrawals from accounts so far, in kobo: the sum of these entries of the ledger. The three above
   * count it too, less what was debited since.
   */
  readonly withdrawn_kobo: bigint;
}

/** One entry of a wallet's ledger. */
export interface WalletTransfer {
  /** The kind of this object. */
  readonly object: 'wallet_transfer';
  /** The entry's id: `wtr_` and 20 characters from a-z and 2-7. */
  readonly id: string;
  /** The effect of the entry. */
  readonly type: WalletTransferType;
  /** The amount in kobo, always positive. */
  readonly amount_kobo: bigint;
  /**
   * By how much the available balance changed, in kobo: the amount for `credit`, `return` and `withdrawal`, minus the amount for
   * `reserve`, `debit` and `credit_reversal`, 0 for `post`.
   */
  readonly available_change_kobo: bigint;
  /** The id of the allocation the entry belongs to; null unless the type is `reserve`, `post` or `return`. */
  readonly allocation: string | null;
  /** The code of the account the amount was booked to or came from; null unless the type is `post` or `withdrawal`. */
  readonly account: string | null;
  /**
   * The bank's reference of the payment, or the operator's reference of the correction; null unless the type is `credit`, `debit`
   * or `credit_reversal`.
   */
  readonly bank_reference: string | null;
  /** When the entry was made, UTC, to the second. */
  readonly created_at: string;
  /** The id of the withdrawal the entry belongs to; null unless the type is `withdrawal`. */
  readonly withdrawal: string | null;
}

/**
 * The effect of an entry of the ledger. The list can grow.
 *
 * - `credit`: A payment came in: the amount is available.
 * - `reserve`: An allocation began: the amount is no longer available, and not yet booked.
 * - `post`: The broker booked an allocation: what was reserved is on the account.
 * - `return`: An allocation was refused or rejected: what was reserved is available again.
 * - `withdrawal`: A withdrawal from an account to the wallet was paid: the amount is available.
 * - `debit`: Money was paid back to you from the wallet: the amount is no longer available.
 * - `credit_reversal`: A credit was wrong, or your bank took the payment back: the amount is no longer available. It may be a part of the credit.
 *
 * The list can grow: accept a value you do not know.
 */
export type WalletTransferType = 'credit' | 'reserve' | 'post' | 'return' | 'withdrawal' | 'debit' | 'credit_reversal' | (string & {});

/** An event on its way to an endpoint. */
export interface WebhookDelivery {
  /** The kind of this object. */
  readonly object: 'sandbox_webhook_delivery';
  /** The event's id, which is its `webhook-id`. */
  readonly event: string;
  /** The event's type, such as `order.filled`. */
  readonly type: string;
  /** The event's version. */
  readonly version: bigint;
  /** The id of the object that the event is about; null when it is no longer held. */
  readonly about: string | null;
  /** Where it stands. */
  readonly state: WebhookDeliveryState;
  /** When the object changed. The event is sent for 28 hours and 51 minutes after that. */
  readonly created_at: string;
  /** When it is sent next; null when that is at once, as soon as the endpoint is no longer paused, or never. */
  readonly next_attempt_at: string | null;
  /** Its attempts, oldest first, at most the first 100. */
  readonly attempts: readonly WebhookDeliveryAttempt[];
}

/** One attempt to deliver an event. Of the endpoint's answer only the status is kept. */
export interface WebhookDeliveryAttempt {
  /** The number of the attempt of this event, from 1. */
  readonly number: bigint;
  /** When it began. */
  readonly at: string;
  /** Whether it was made to find out if a paused endpoint is back. */
  readonly is_probe: boolean;
  /** The outcome. */
  readonly outcome: WebhookOutcome;
  /** The HTTP status the endpoint answered with; null when no answer came. */
  readonly status: bigint | null;
  /** Why it failed, as in a test; null when it was delivered. */
  readonly error: string | null;
  /** How long it took, in milliseconds. */
  readonly duration_ms: bigint;
}

/**
 * Where an event stands at an endpoint.
 *
 * - `waiting`: To be sent, for the first time or again.
 * - `delivered`: The endpoint answered with a 2xx.
 * - `expired`: Not delivered within 28 hours and 51 minutes of its change, and no longer sent. The feed has it.
 *
 * The list can grow: accept a value you do not know.
 */
export type WebhookDeliveryState = 'waiting' | 'delivered' | 'expired' | (string & {});

/**
 * The outcome of one attempt to reach an endpoint.
 *
 * - `delivered`: The endpoint answered with a 2xx in time.
 * - `endpoint_failed`: No answer in time, unreachable, a redirect, 408, 429 or 5xx: it counts against the endpoint.
 * - `event_failed`: Any other 4xx: it counts against the event only.
 *
 * The list can grow: accept a value you do not know.
 */
export type WebhookOutcome = 'delivered' | 'endpoint_failed' | 'event_failed' | (string & {});

/** An endpoint's answer to a test event. */
export interface WebhookTest {
  /** The kind of this object. */
  readonly object: 'sandbox_webhook_test';
  /** The test's id, which was its `webhook-id`: `msg_` and 24 hexadecimal digits. */
  readonly id: string;
  /** The outcome. */
  readonly outcome: WebhookOutcome;
  /** The HTTP status the endpoint answered with; null when no answer came. */
  readonly status: bigint | null;
  /**
   * Why it failed: `timeout`, `dns`, `blocked_address`, `unreachable`, `tls`, `invalid_url`, `invalid_response`, `redirect` or
   * `status`; null when it was delivered. The list can grow.
   */
  readonly error: string | null;
  /** How long it took, in milliseconds. */
  readonly duration_ms: bigint;
}

/** One movement of money out of an account. */
export interface Withdrawal {
  /** The kind of this object. */
  readonly object: 'withdrawal';
  /** The withdrawal's id: `wdr_` and 20 characters from a-z and 2-7. */
  readonly id: string;
  /** Where the withdrawal stands. */
  readonly state: WithdrawalState;
  /** The code of the account that pays, upper-case. */
  readonly account: string;
  /** The amount in kobo. */
  readonly amount_kobo: bigint;
  /** Where the money goes. */
  readonly destination: WithdrawalDestination;
  /** The partner's own reference, as given when the withdrawal was created. */
  readonly client_reference: string | null;
  /** The broker's reference, once it has taken the withdrawal. */
  readonly broker_reference: string | null;
  /** A sentence for people that explains the state; never use it in logic. */
  readonly reason: string | null;
  /** Why the broker rejected it; set only when the state is `rejected`. */
  readonly reject_reason: WithdrawalRejectReason | null;
  /** When the withdrawal was stored, UTC, to the second. */
  readonly created_at: string;
  /** When it last changed, UTC, to the second; it never goes back. */
  readonly updated_at: string;
}

/** The broker's or the bank's decision on a withdrawal. The withdrawal shows it a moment later. */
export interface WithdrawalDecision {
  /** The kind of this object. */
  readonly object: 'sandbox_withdrawal_decision';
  /** The withdrawal's id. */
  readonly id: string;
  /** The decision. */
  readonly decision: SandboxWithdrawalDecision;
}

/**
 * Where the money of a withdrawal goes.
 *
 * - `wallet`: To the partner's wallet.
 * - `bank_account`: To the bank account that the broker has on file for the customer.
 *
 * The list can grow: accept a value you do not know.
 */
export type WithdrawalDestination = 'wallet' | 'bank_account' | (string & {});

/**
 * Why the broker rejected a withdrawal. The list can grow.
 *
 * - `insufficient_withdrawable_funds`: The account has less money that is settled and not promised to orders.
 * - `account_restricted`: No money may leave the account now; the account's status says more.
 * - `no_bank_account`: The broker has no bank account of the customer on file.
 * - `bank_account_mismatch`: The bank account on file is not in the customer's name.
 * - `account_not_at_broker`: The broker does not have the account.
 * - `rejected_by_broker`: Any other reason.
 *
 * The list can grow: accept a value you do not know.
 */
export type WithdrawalRejectReason = 'insufficient_withdrawable_funds' | 'account_restricted' | 'no_bank_account' | 'bank_account_mismatch' | 'account_not_at_broker' | 'rejected_by_broker' | (string & {});

/**
 * Where a withdrawal stands. The list can grow: treat an unknown state as one that may still change.
 *
 * - `sending`: Stored; the send to the broker is in progress, or it waits for its release, which is agreed for large amounts. Then its `reason` says so, and nothing was sent yet.
 * - `processing`: The broker has taken it and not paid yet.
 * - `completed`: Paid. To the wallet: the amount is available there. To a bank account: the money has left, and the bank may still send it back (`returned`).
 * - `refused`: It is not at the broker and will not be: it never left the gateway, or the broker refused it as too late, or it was proven that the broker's record does not have it.
 * - `rejected`: The broker rejected it; see `reject_reason`. The money is on the account.
 * - `uncertain`: It is unknown whether the broker received it. The gateway does not send it again and reconciles it against the broker's record.
 * - `returned`: The bank sent the money back, and it is on the account again. Only with destination `bank_account`.
 *
 * The list can grow: accept a value you do not know.
 */
export type WithdrawalState = 'sending' | 'processing' | 'completed' | 'refused' | 'rejected' | 'uncertain' | 'returned' | (string & {});

/** One step of a withdrawal's history. */
export interface WithdrawalStep {
  /** The kind of this object. */
  readonly object: 'withdrawal_step';
  /** The step's place in the history: 1, 2, 3 … */
  readonly sequence: bigint;
  /** The kind of the step. */
  readonly kind: WithdrawalStepKind;
  /** When it was recorded, UTC, to the second. */
  readonly at: string;
  /** The withdrawal's state after it. */
  readonly state: WithdrawalState;
  /** The step, in a sentence for people. */
  readonly detail: string;
  /** The number of the broker's report, when the step is one: a report or a contradiction. */
  readonly report_number: bigint | null;
}

/**
 * The kind of a step of a withdrawal's history. The list can grow.
 *
 * - `stored`: The withdrawal was stored.
 * - `sent`: The result of sending it to the broker: accepted, rejected, unknown, or never sent.
 * - `report`: The broker reported something about it.
 * - `reconciliation`: The broker's record was asked about it, or the time to send it ran out without a known outcome.
 * - `contradiction`: The broker reported something impossible in the withdrawal's state, final or not. The state was kept, and the operators are alerted.
 * - `settled_by_operator`: The operators settled it with the broker.
 * - `release`: It had waited for a release, as agreed for amounts as large, and the operators released or refused it, or nobody did in time.
 *
 * The list can grow: accept a value you do not know.
 */
export type WithdrawalStepKind = 'stored' | 'sent' | 'report' | 'reconciliation' | 'contradiction' | 'settled_by_operator' | 'release' | (string & {});

/** The families of errors. The list can grow. */
export type ErrorType = 'authentication_error' | 'permission_error' | 'invalid_request_error' | 'idempotency_error' | 'order_error' | 'application_error' | 'wallet_error' | 'limit_error' | 'rate_limit_error' | 'api_error' | (string & {});

/** The code of an error. A code never changes its meaning; the list can grow. */
export type ErrorCode = 'unauthorized' | 'insufficient_scope' | 'feature_not_enabled' | 'not_found' | 'method_not_allowed' | 'unsupported_media_type' | 'request_too_large' | 'invalid_request' | 'missing_required_field' | 'order_not_found' | 'account_not_found' | 'application_not_found' | 'allocation_not_found' | 'withdrawal_not_found' | 'unknown_account' | 'application_not_accepting_documents' | 'document_already_delivered' | 'document_in_flight' | 'earlier_document_unconfirmed' | 'document_too_large' | 'invalid_document' | 'duplicate_order' | 'duplicate_application' | 'duplicate_allocation' | 'duplicate_withdrawal' | 'similar_order_unresolved' | 'cancel_unconfirmed' | 'unknown_symbol' | 'account_not_at_broker' | 'settlement_lockout' | 'order_rejected' | 'order_not_sent' | 'order_not_cancelable' | 'application_not_sent' | 'application_rejected' | 'document_rejected' | 'wallet_too_low' | 'allocation_not_sent' | 'allocation_rejected' | 'similar_allocation_unresolved' | 'withdrawal_not_sent' | 'withdrawal_rejected' | 'similar_withdrawal_unresolved' | 'limit_exceeded' | 'too_many_keys' | 'rate_limited' | 'exchange_unavailable' | 'outcome_not_recorded' | 'internal_error' | 'trading_paused' | 'exchange_error' | 'service_unavailable' | 'document_unconfirmed' | (string & {});

/** The input of `listOrders`. */
export type ListOrdersInput = {
  /** Only orders in this state. */
  readonly state?: 'sending' | 'pending' | 'partially_filled' | 'filled' | 'uncertain' | 'rejected' | 'refused' | 'cancelled' | 'expired' | undefined;
  /** Only orders of this account. Case does not matter. */
  readonly account?: string | undefined;
  /** Only orders of this symbol. Case does not matter. */
  readonly symbol?: string | undefined;
  /** Only orders placed with this reference. */
  readonly client_reference?: string | undefined;
  /** Only orders that changed at this time or later, as in `2026-03-02T09:30:00Z`. */
  readonly updated_since?: string | undefined;
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `getOrder`. */
export type GetOrderInput = {
  /** The order's id. */
  readonly id: string;
};

/** The input of `cancelOrder`. */
export type CancelOrderInput = {
  /** The order's id. */
  readonly id: string;
};

/** The input of `getOrderHistory`. */
export type GetOrderHistoryInput = {
  /** The order's id. */
  readonly id: string;
  /** How many steps to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listAllocations`. */
export type ListAllocationsInput = {
  /** Only allocations in this state. */
  readonly state?: 'sending' | 'booked' | 'refused' | 'rejected' | 'uncertain' | undefined;
  /** Only allocations to this account. Case does not matter. */
  readonly account?: string | undefined;
  /** Only allocations created with this reference. */
  readonly client_reference?: string | undefined;
  /** Only allocations that changed at this time or later, as in `2026-03-02T09:30:00Z`. */
  readonly updated_since?: string | undefined;
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `getAllocation`. */
export type GetAllocationInput = {
  /** The allocation's id. */
  readonly id: string;
};

/** The input of `listWithdrawals`. */
export type ListWithdrawalsInput = {
  /** Only withdrawals in this state. */
  readonly state?: 'sending' | 'processing' | 'completed' | 'refused' | 'rejected' | 'uncertain' | 'returned' | undefined;
  /** Only withdrawals from this account. Case does not matter. */
  readonly account?: string | undefined;
  /** Only withdrawals created with this reference. */
  readonly client_reference?: string | undefined;
  /** Only withdrawals that changed at this time or later, as in `2026-03-02T09:30:00Z`. */
  readonly updated_since?: string | undefined;
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `getWithdrawal`. */
export type GetWithdrawalInput = {
  /** The withdrawal's id. */
  readonly id: string;
};

/** The input of `getWithdrawalHistory`. */
export type GetWithdrawalHistoryInput = {
  /** The withdrawal's id. */
  readonly id: string;
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listTransfers`. */
export type ListTransfersInput = {
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listApplications`. */
export type ListApplicationsInput = {
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `getApplication`. */
export type GetApplicationInput = {
  /** The application's id. */
  readonly id: string;
};

/** The input of `sendDocument`. */
export type SendDocumentInput = {
  /** The application's id. A text that is no application's id answers `application_not_found`. */
  readonly id: string;
  /** The subject of the document. */
  readonly type: 'photo' | 'government_id' | 'utility_bill' | 'signature';
  /** The file itself, in a Buffer, a Uint8Array or an ArrayBuffer. An empty one is refused. */
  readonly file: ArrayBufferView | ArrayBufferLike;
  /** The media type of the file. */
  readonly media_type: 'image/jpeg' | 'image/png';
};

/** The input of `listDocuments`. */
export type ListDocumentsInput = {
  /** The application's id. A text that is no application's id answers `application_not_found`. */
  readonly id: string;
};

/** The input of `listAccounts`. */
export type ListAccountsInput = {
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `getAccount`. */
export type GetAccountInput = {
  /** The account's code. Case does not matter. */
  readonly account: string;
};

/** The input of `getAccountStatus`. */
export type GetAccountStatusInput = {
  /** The account's code. Case does not matter. */
  readonly account: string;
};

/** The input of `getBalance`. */
export type GetBalanceInput = {
  /** The account's code. Case does not matter. */
  readonly account: string;
};

/** The input of `listPositions`. */
export type ListPositionsInput = {
  /** The account's code. Case does not matter. */
  readonly account: string;
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listTrades`. */
export type ListTradesInput = {
  /** The account's code. Case does not matter. */
  readonly account: string;
  /** The first trade date, YYYY-MM-DD, in Lagos; 30 days before `to` when absent. Not after `to`. */
  readonly from?: string | undefined;
  /** The last trade date, YYYY-MM-DD, in Lagos; today when absent. Not after today. */
  readonly to?: string | undefined;
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listContractNotes`. */
export type ListContractNotesInput = {
  /** The account's code. Case does not matter. */
  readonly account: string;
  /** The first trade date, YYYY-MM-DD, in Lagos; 30 days before `to` when absent. Not after `to`. */
  readonly from?: string | undefined;
  /** The last trade date, YYYY-MM-DD, in Lagos; today when absent. Not after today. */
  readonly to?: string | undefined;
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listAccountTransactions`. */
export type ListAccountTransactionsInput = {
  /** The account's code. Case does not matter. */
  readonly account: string;
  /** The first day of booking, YYYY-MM-DD, in Lagos; 30 days before `to` when absent. Not after `to`. */
  readonly from?: string | undefined;
  /** The last day of booking, YYYY-MM-DD, in Lagos; today when absent. Not after today. */
  readonly to?: string | undefined;
  /** Only transactions of this type; all when absent. */
  readonly type?: 'buy' | 'sale' | 'charge' | 'allocation' | 'withdrawal' | 'withdrawal_return' | 'dividend' | 'withholding_tax' | 'fee' | 'reversal' | 'adjustment' | undefined;
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listLgas`. */
export type ListLgasInput = {
  /** The state's code. Case does not matter. */
  readonly state: string;
};

/** The input of `listMarketDays`. */
export type ListMarketDaysInput = {
  /** The first day, YYYY-MM-DD, in Lagos; today when absent. Not after `to`. */
  readonly from?: string | undefined;
  /** The last day, YYYY-MM-DD, in Lagos; 30 days after `from` when absent, and at most 365 days after it. */
  readonly to?: string | undefined;
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listInstruments`. */
export type ListInstrumentsInput = {
  /** Only instruments of this kind. */
  readonly kind?: 'equity' | 'etf' | undefined;
  /** Only instruments on this board. */
  readonly board?: 'main' | 'premium' | 'growth' | 'asem' | 'etf' | undefined;
  /** Only symbols that begin with this text. Case does not matter. */
  readonly symbol_prefix?: string | undefined;
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `getInstrument`. */
export type GetInstrumentInput = {
  /** The symbol. Case does not matter. */
  readonly symbol: string;
};

/** The input of `listEvents`. */
export type ListEventsInput = {
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listOrderEvents`. */
export type ListOrderEventsInput = {
  /** The order's id. */
  readonly id: string;
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listApplicationEvents`. */
export type ListApplicationEventsInput = {
  /** The application's id. */
  readonly id: string;
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listAllocationEvents`. */
export type ListAllocationEventsInput = {
  /** The allocation's id. */
  readonly id: string;
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listWithdrawalEvents`. */
export type ListWithdrawalEventsInput = {
  /** The withdrawal's id. */
  readonly id: string;
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listKeys`. */
export type ListKeysInput = {
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `revokeKey`. */
export type RevokeKeyInput = {
  /** The key's id. */
  readonly id: string;
  /**
   * Revokes also the keys that were made with this one, with those, and so on. That holds when this key was revoked
   * before, too. A calling key that was made so is revoked like the others. `false` when absent.
   */
  readonly with_children?: boolean | undefined;
};

/** The input of `fillOrder`. */
export type FillOrderInput = {
  /** The order's id. */
  readonly id: string;
} & FillOrderRequest;

/** The input of `expireOrder`. */
export type ExpireOrderInput = {
  /** The order's id. */
  readonly id: string;
} & ExpireOrderRequest;

/** The input of `rejectOrder`. */
export type RejectOrderInput = {
  /** The order's id. */
  readonly id: string;
} & RejectOrderRequest;

/** The input of `repeatReport`. */
export type RepeatReportInput = {
  /** The order's id. */
  readonly id: string;
} & RepeatReportRequest;

/** The input of `decideApplication`. */
export type DecideApplicationInput = {
  /** The application's id. */
  readonly id: string;
} & DecideApplicationRequest;

/** The input of `forceDocument`. */
export type ForceDocumentInput = {
  /** The application's id. */
  readonly id: string;
} & ForceDocumentRequest;

/** The input of `decideWithdrawal`. */
export type DecideWithdrawalInput = {
  /** The withdrawal's id. */
  readonly id: string;
} & DecideWithdrawalRequest;

/** The input of `listWebhookDeliveries`. */
export type ListWebhookDeliveriesInput = {
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listRequests`. */
export type ListRequestsInput = {
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** The input of `listLatestEvents`. */
export type ListLatestEventsInput = {
  /** How many to return at most, 1 to 100; 25 when absent. */
  readonly limit?: number | bigint | undefined;
  /** The `next_cursor` of the previous page, unchanged. */
  readonly cursor?: string | undefined;
};

/** How one call is made. */
export interface CallOptions {
  /** Ends the call. A request that was sent stays sent: an order may have been placed. */
  readonly signal?: AbortSignal | undefined;
  /** How long the call may take with all its attempts, in milliseconds. */
  readonly deadlineMs?: number | undefined;
  /** How often the request is sent at most. */
  readonly maxAttempts?: number | undefined;
  /**
   * Called for every answer, also for those after which the request is sent again. It is not awaited. An error that it
   * throws, or that a promise of it rejects with, is written to the console, and changes nothing.
   */
  readonly onAnswer?: ((answer: AnswerDetails) => void) | undefined;
}

/** How one call is made that creates something. */
export interface CreateOptions extends CallOptions {
  /** Names the request. Store it before you send. Without one, the client makes one for this call. */
  readonly idempotencyKey?: string | undefined;
}

/** The details of an answer, in addition to its body. */
export interface AnswerDetails {
  readonly operation: string;
  readonly status: number;
  /** Names the answer to support. */
  readonly requestId: string | undefined;
  /** Whether this is the answer to an earlier request with the same Idempotency-Key. */
  readonly isReplayed: boolean;
  readonly idempotencyKey: string | undefined;
  /** 1 for the first attempt of this call. */
  readonly attempt: number;
}

/** The facts about an operation that the client needs. */
export interface Operation {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly pathNames: readonly string[];
  readonly queryNames: readonly string[];
  readonly body: 'none' | 'json' | 'file';
  readonly takesKey: boolean;
}

/** Every operation of REST. */
export const operations = {
  createOrder: {"name":"createOrder","method":"POST","path":"/v1/orders","pathNames":[],"queryNames":[],"body":"json","takesKey":true},
  listOrders: {"name":"listOrders","method":"GET","path":"/v1/orders","pathNames":[],"queryNames":["state","account","symbol","client_reference","updated_since","limit","cursor"],"body":"none","takesKey":false},
  estimateOrder: {"name":"estimateOrder","method":"POST","path":"/v1/orders/estimate","pathNames":[],"queryNames":[],"body":"json","takesKey":false},
  getOrder: {"name":"getOrder","method":"GET","path":"/v1/orders/{id}","pathNames":["id"],"queryNames":[],"body":"none","takesKey":false},
  cancelOrder: {"name":"cancelOrder","method":"DELETE","path":"/v1/orders/{id}","pathNames":["id"],"queryNames":[],"body":"none","takesKey":false},
  getOrderHistory: {"name":"getOrderHistory","method":"GET","path":"/v1/orders/{id}/history","pathNames":["id"],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  createAllocation: {"name":"createAllocation","method":"POST","path":"/v1/allocations","pathNames":[],"queryNames":[],"body":"json","takesKey":true},
  listAllocations: {"name":"listAllocations","method":"GET","path":"/v1/allocations","pathNames":[],"queryNames":["state","account","client_reference","updated_since","limit","cursor"],"body":"none","takesKey":false},
  getAllocation: {"name":"getAllocation","method":"GET","path":"/v1/allocations/{id}","pathNames":["id"],"queryNames":[],"body":"none","takesKey":false},
  createWithdrawal: {"name":"createWithdrawal","method":"POST","path":"/v1/withdrawals","pathNames":[],"queryNames":[],"body":"json","takesKey":true},
  listWithdrawals: {"name":"listWithdrawals","method":"GET","path":"/v1/withdrawals","pathNames":[],"queryNames":["state","account","client_reference","updated_since","limit","cursor"],"body":"none","takesKey":false},
  getWithdrawal: {"name":"getWithdrawal","method":"GET","path":"/v1/withdrawals/{id}","pathNames":["id"],"queryNames":[],"body":"none","takesKey":false},
  getWithdrawalHistory: {"name":"getWithdrawalHistory","method":"GET","path":"/v1/withdrawals/{id}/history","pathNames":["id"],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  getWallet: {"name":"getWallet","method":"GET","path":"/v1/wallet","pathNames":[],"queryNames":[],"body":"none","takesKey":false},
  listTransfers: {"name":"listTransfers","method":"GET","path":"/v1/wallet/transfers","pathNames":[],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  createApplication: {"name":"createApplication","method":"POST","path":"/v1/applications","pathNames":[],"queryNames":[],"body":"json","takesKey":true},
  listApplications: {"name":"listApplications","method":"GET","path":"/v1/applications","pathNames":[],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  getApplication: {"name":"getApplication","method":"GET","path":"/v1/applications/{id}","pathNames":["id"],"queryNames":[],"body":"none","takesKey":false},
  sendDocument: {"name":"sendDocument","method":"PUT","path":"/v1/applications/{id}/documents/{type}","pathNames":["id","type"],"queryNames":[],"body":"file","takesKey":false},
  listDocuments: {"name":"listDocuments","method":"GET","path":"/v1/applications/{id}/documents","pathNames":["id"],"queryNames":[],"body":"none","takesKey":false},
  listAccounts: {"name":"listAccounts","method":"GET","path":"/v1/accounts","pathNames":[],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  getAccount: {"name":"getAccount","method":"GET","path":"/v1/accounts/{account}","pathNames":["account"],"queryNames":[],"body":"none","takesKey":false},
  getAccountStatus: {"name":"getAccountStatus","method":"GET","path":"/v1/accounts/{account}/status","pathNames":["account"],"queryNames":[],"body":"none","takesKey":false},
  getBalance: {"name":"getBalance","method":"GET","path":"/v1/accounts/{account}/balance","pathNames":["account"],"queryNames":[],"body":"none","takesKey":false},
  listPositions: {"name":"listPositions","method":"GET","path":"/v1/accounts/{account}/positions","pathNames":["account"],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  listTrades: {"name":"listTrades","method":"GET","path":"/v1/accounts/{account}/trades","pathNames":["account"],"queryNames":["from","to","limit","cursor"],"body":"none","takesKey":false},
  listContractNotes: {"name":"listContractNotes","method":"GET","path":"/v1/accounts/{account}/contract-notes","pathNames":["account"],"queryNames":["from","to","limit","cursor"],"body":"none","takesKey":false},
  listAccountTransactions: {"name":"listAccountTransactions","method":"GET","path":"/v1/accounts/{account}/transactions","pathNames":["account"],"queryNames":["from","to","type","limit","cursor"],"body":"none","takesKey":false},
  listStates: {"name":"listStates","method":"GET","path":"/v1/reference/states","pathNames":[],"queryNames":[],"body":"none","takesKey":false},
  listLgas: {"name":"listLgas","method":"GET","path":"/v1/reference/states/{state}/lgas","pathNames":["state"],"queryNames":[],"body":"none","takesKey":false},
  getMarket: {"name":"getMarket","method":"GET","path":"/v1/market","pathNames":[],"queryNames":[],"body":"none","takesKey":false},
  listMarketDays: {"name":"listMarketDays","method":"GET","path":"/v1/market/calendar","pathNames":[],"queryNames":["from","to","limit","cursor"],"body":"none","takesKey":false},
  listInstruments: {"name":"listInstruments","method":"GET","path":"/v1/instruments","pathNames":[],"queryNames":["kind","board","symbol_prefix","limit","cursor"],"body":"none","takesKey":false},
  getInstrument: {"name":"getInstrument","method":"GET","path":"/v1/instruments/{symbol}","pathNames":["symbol"],"queryNames":[],"body":"none","takesKey":false},
  listEvents: {"name":"listEvents","method":"GET","path":"/v1/events","pathNames":[],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  listOrderEvents: {"name":"listOrderEvents","method":"GET","path":"/v1/orders/{id}/events","pathNames":["id"],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  listApplicationEvents: {"name":"listApplicationEvents","method":"GET","path":"/v1/applications/{id}/events","pathNames":["id"],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  listAllocationEvents: {"name":"listAllocationEvents","method":"GET","path":"/v1/allocations/{id}/events","pathNames":["id"],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  listWithdrawalEvents: {"name":"listWithdrawalEvents","method":"GET","path":"/v1/withdrawals/{id}/events","pathNames":["id"],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  getLimits: {"name":"getLimits","method":"GET","path":"/v1/limits","pathNames":[],"queryNames":[],"body":"none","takesKey":false},
  listKeys: {"name":"listKeys","method":"GET","path":"/v1/keys","pathNames":[],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  createKey: {"name":"createKey","method":"POST","path":"/v1/keys","pathNames":[],"queryNames":[],"body":"json","takesKey":false},
  revokeKey: {"name":"revokeKey","method":"DELETE","path":"/v1/keys/{id}","pathNames":["id"],"queryNames":["with_children"],"body":"none","takesKey":false},
  forceOrder: {"name":"forceOrder","method":"POST","path":"/v1/sandbox/orders/next","pathNames":[],"queryNames":[],"body":"json","takesKey":false},
  fillOrder: {"name":"fillOrder","method":"POST","path":"/v1/sandbox/orders/{id}/fill","pathNames":["id"],"queryNames":[],"body":"json","takesKey":false},
  expireOrder: {"name":"expireOrder","method":"POST","path":"/v1/sandbox/orders/{id}/expire","pathNames":["id"],"queryNames":[],"body":"json","takesKey":false},
  rejectOrder: {"name":"rejectOrder","method":"POST","path":"/v1/sandbox/orders/{id}/reject","pathNames":["id"],"queryNames":[],"body":"json","takesKey":false},
  repeatReport: {"name":"repeatReport","method":"POST","path":"/v1/sandbox/orders/{id}/repeat","pathNames":["id"],"queryNames":[],"body":"json","takesKey":false},
  decideApplication: {"name":"decideApplication","method":"POST","path":"/v1/sandbox/applications/{id}/decide","pathNames":["id"],"queryNames":[],"body":"json","takesKey":false},
  forceDocument: {"name":"forceDocument","method":"POST","path":"/v1/sandbox/applications/{id}/documents/next","pathNames":["id"],"queryNames":[],"body":"json","takesKey":false},
  forceAllocation: {"name":"forceAllocation","method":"POST","path":"/v1/sandbox/allocations/next","pathNames":[],"queryNames":[],"body":"json","takesKey":false},
  forceWithdrawal: {"name":"forceWithdrawal","method":"POST","path":"/v1/sandbox/withdrawals/next","pathNames":[],"queryNames":[],"body":"json","takesKey":false},
  decideWithdrawal: {"name":"decideWithdrawal","method":"POST","path":"/v1/sandbox/withdrawals/{id}/decide","pathNames":["id"],"queryNames":[],"body":"json","takesKey":false},
  setFunds: {"name":"setFunds","method":"POST","path":"/v1/sandbox/funds","pathNames":[],"queryNames":[],"body":"json","takesKey":false},
  setAccountState: {"name":"setAccountState","method":"POST","path":"/v1/sandbox/accounts/state","pathNames":[],"queryNames":[],"body":"json","takesKey":false},
  settleTrades: {"name":"settleTrades","method":"POST","path":"/v1/sandbox/settlement","pathNames":[],"queryNames":[],"body":"json","takesKey":false},
  injectFault: {"name":"injectFault","method":"POST","path":"/v1/sandbox/faults","pathNames":[],"queryNames":[],"body":"json","takesKey":false},
  sendWebhookTest: {"name":"sendWebhookTest","method":"POST","path":"/v1/sandbox/webhook/test","pathNames":[],"queryNames":[],"body":"json","takesKey":false},
  listWebhookDeliveries: {"name":"listWebhookDeliveries","method":"GET","path":"/v1/sandbox/webhook/deliveries","pathNames":[],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  listRequests: {"name":"listRequests","method":"GET","path":"/v1/sandbox/requests","pathNames":[],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  listLatestEvents: {"name":"listLatestEvents","method":"GET","path":"/v1/sandbox/events","pathNames":[],"queryNames":["limit","cursor"],"body":"none","takesKey":false},
  getClock: {"name":"getClock","method":"GET","path":"/v1/sandbox/clock","pathNames":[],"queryNames":[],"body":"none","takesKey":false},
} as const satisfies Readonly<Record<string, Operation>>;
