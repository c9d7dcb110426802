import { RejectReason } from '../gen/marina/broker/v1/orders_pb.ts';
import { Outcome, WireFault } from '../gen/marina/simulator/v1/controls_pb.ts';

/** The behaviour of a submission. */
export interface Behaviour {
  readonly outcome: Outcome;
  readonly rejectReason?: RejectReason;
  /** The number of fills. */
  readonly parts?: number;
  /** The delay before each fill or the end; absent: the simulator's usual small delays. */
  readonly delayMs?: number;
}

/** The fate of a call on its way. */
export interface Fault {
  readonly wire: WireFault;
  readonly delayMs: number;
  /** The partner that asked for it; empty: nobody did, or the operator. */
  readonly partner: string;
  /** Whether a reset ends this call alone. The connection carries the calls of all partners. */
  readonly meetsCallOnly: boolean;
}

/** A symbol that always behaves in one way. */
export interface MagicSymbol extends Behaviour {
  readonly symbol: string;
  /** A sentence for the documentation. */
  readonly does: string;
  readonly wire?: WireFault;
  /** The delay of a call, for faults that delay. */
  readonly wireDelayMs?: number;
}

/** The reference price of all magic symbols in kobo. The day allows 900 to 1100. */
export const magicReferenceKobo = 1_000;

/** The delay of a late answer: longer than any sensible deadline. */
export const lateAnswerMs = 30_000;

function rejects(symbol: string, rejectReason: RejectReason, does: string): MagicSymbol {
  return { symbol, outcome: Outcome.REJECT, rejectReason, does };
}

/** The magic symbols. They fill at the order's limit price, and a market order at the reference price. */
export const magicSymbols: readonly MagicSymbol[] = [
  rejects('SIM-FUNDS', RejectReason.INSUFFICIENT_FUNDS, 'Rejected: too little money, or too few shares.'),
  rejects('SIM-CLOSED', RejectReason.MARKET_CLOSED, 'Rejected: the market is closed.'),
  rejects('SIM-LOCKOUT', RejectReason.SETTLEMENT_LOCKOUT, 'Rejected: the account waits for a settlement.'),
  rejects('SIM-ETFONLY', RejectReason.LIMIT_ORDERS_ETF_ONLY, 'Rejected: a fund takes limit orders only.'),
  rejects('SIM-UNKNOWN', RejectReason.UNKNOWN_SYMBOL, 'Rejected: the exchange does not know the symbol.'),
  rejects('SIM-HALTED', RejectReason.SYMBOL_NOT_TRADABLE, 'Rejected: the symbol cannot be traded now.'),
  rejects('SIM-NOACCOUNT', RejectReason.ACCOUNT_NOT_AT_BROKER, 'Rejected: the broker does not have the account.'),
  rejects('SIM-REJECT', RejectReason.REJECTED_BY_EXCHANGE, 'Rejected by the exchange for another reason.'),
  { symbol: 'SIM-HANG', outcome: Outcome.REST, wire: WireFault.HANG, does: 'Never taken and never answered.' },
  { symbol: 'SIM-LOST', outcome: Outcome.REST, wire: WireFault.LOSE_ANSWER, does: 'Taken; the answer is lost. Rests.' },
  {
    symbol: 'SIM-LOSTFILL',
    outcome: Outcome.FILL,
    parts: 3,
    wire: WireFault.LOSE_ANSWER,
    does: 'Taken; the answer is lost. Fills in 3 parts.',
  },
  {
    symbol: 'SIM-UNSENT',
    outcome: Outcome.REST,
    wire: WireFault.TOO_LATE,
    does: 'Never taken, and the exchange proves it: `order_not_sent`.',
  },
  {
    symbol: 'SIM-RESET',
    outcome: Outcome.REST,
    wire: WireFault.RESET_BEFORE,
    does: 'The connection is reset before it is taken.',
  },
  {
    symbol: 'SIM-RESETAFTER',
    outcome: Outcome.REST,
    wire: WireFault.RESET_AFTER,
    does: 'Taken; the connection is reset before the answer. Rests.',
  },
  {
    symbol: 'SIM-LATE',
    outcome: Outcome.REST,
    wire: WireFault.LATE_ANSWER,
    wireDelayMs: lateAnswerMs,
    does: 'Taken; answered after 30 seconds. Rests.',
  },
  { symbol: 'SIM-REST', outcome: Outcome.REST, does: 'Accepted; never trades.' },
  { symbol: 'SIM-FILL', outcome: Outcome.FILL, parts: 1, delayMs: 0, does: 'Accepted; fills at once in one part.' },
  { symbol: 'SIM-PARTS', outcome: Outcome.FILL, parts: 3, does: 'Accepted; fills in 3 parts.' },
  { symbol: 'SIM-HALF', outcome: Outcome.FILL_HALF, does: 'Accepted; half of it trades, the rest stays.' },
  { symbol: 'SIM-LAPSE', outcome: Outcome.EXPIRE, does: 'Accepted; then it expires.' },
  {
    symbol: 'SIM-KILLED',
    outcome: Outcome.ACCEPT_THEN_REJECT,
    rejectReason: RejectReason.REJECTED_BY_EXCHANGE,
    does: 'Accepted; then the exchange rejects it.',
  },
];

const bySymbol = new Map(magicSymbols.map((magic) => [magic.symbol, magic]));

/** The magic of a symbol, if it has any. */
export function magicOf(symbol: string): MagicSymbol | undefined {
  return bySymbol.get(symbol);
}
