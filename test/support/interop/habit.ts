import type { Acceptor, Manners, PriceUnit } from './acceptor.ts';
import type { Chain } from './chain.ts';
import type { Desk } from './desk.ts';
import type { PartnerSide, Placed } from './partner.ts';
import type { FixVersion, WireMessage } from './wire.ts';

/**
 * What must come of a habit, beside the rule that nothing untrue is shown without a finding:
 * - `quiet`: the partner sees the truth, and there is no finding, because a usual engine does this.
 * - `true`: the partner sees the truth; a finding does no harm.
 * - `finding`: there is a finding, because a person must look at it.
 * - `safe`: nothing beside the rule.
 */
export type Expected = 'quiet' | 'true' | 'finding' | 'safe';

/** One way in which an exchange's engine behaves: a row of the table. */
export interface Habit {
  /** A sentence that begins with "the exchange …", for the name of the test. */
  readonly name: string;
  /** Why a real engine does it. */
  readonly why: string;
  readonly expect: Expected;
  /** Only with these; absent: with all. */
  readonly version?: FixVersion;
  readonly unit?: PriceUnit;
  /** The partner's orders; absent: one limit order, a buy of 100 at 1,000 kobo for the day. */
  readonly orders?: readonly Record<string, unknown>[];
  /** The exchange's treatment of an order; absent: it takes it and says so. */
  readonly onOrder?: (desk: Desk, message: WireMessage) => void;
  readonly onCancel?: (desk: Desk, message: WireMessage) => void;
  readonly onStatus?: (desk: Desk, message: WireMessage) => void;
  readonly onMassStatus?: (desk: Desk, message: WireMessage) => void;
  /** The steps after the orders are placed. */
  readonly script?: (act: Act) => Promise<void>;
  /** Why a final state that is untrue may be shown, with a finding: the exchange had said so in a way that convinces. */
  readonly excuse?: string;
  /** How the session behaves meanwhile; for habits with a session of their own. */
  readonly manners?: (acceptor: Acceptor) => Manners;
  /** The adapter is started again with these settings, for this habit only. */
  readonly settings?: Record<string, string>;
  /** How long nothing untrue may come up afterwards, in milliseconds: longer than the adapter's own times, where it has some. */
  readonly watchMs?: number;
}

/** A habit at work: what its script can do. */
export interface Act {
  readonly chain: Chain;
  readonly acceptor: Acceptor;
  readonly partner: PartnerSide;
  readonly placed: readonly Placed[];
  /** The exchange's side of the order placed at this place, once it has come. */
  readonly desk: (at?: number) => Promise<Desk>;
  readonly place: (order?: Record<string, unknown>) => Promise<Placed>;
  /** Asks for a cancel as the partner does, and returns the HTTP status. */
  readonly cancel: (at?: number) => Promise<number | undefined>;
  /** Waits until the partner sees a state, and maybe so many shares. */
  readonly sees: (state: string, filled?: number, at?: number) => Promise<void>;
  /** Waits until a message of a type about the order has come so many times. */
  readonly asked: (type: string, times?: number, at?: number) => Promise<void>;
}
