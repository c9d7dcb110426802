import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { Allowance } from '../bounds.ts';

/** What a client may do in addition to calls with a good key: at once, and how much more each second. */
const allowances = {
  /** Bytes that belong to no call: pings, settings, window updates. */
  bytes: [16 * 1_024, 4_096],
  /**
   * Calls that the client takes back before they are admitted or answered. Admitted ones are not counted, because the
   * partner's rate bounds them: a client whose deadlines pass takes back as many calls as it makes.
   */
  resets: [200, 20],
} as const;
/** Bytes that each call may send in addition to its messages: its headers, and window updates for its answer. */
const bytesPerCall = 32 * 1_024;
const bytesPerStrangersCall = 2_048;
/** How much of a call's message its client may send before we read it: HTTP/2's first window. */
const windowBytes = 65_535;
/** How long a connection without calls stays open: one on which no good key was seen, and any other. */
const strangersIdleMs = 20_000;
const idleMs = 300_000;
/** How often a client is asked at most whether it is there, and how long it may take to answer. */
const pingEveryMs = 500;
const pongMs = 1_500;
/** How long calls may go on that were begun before their connection is given up; and those of a stranger. */
const retiredMs = 60_000;
const strangersRetiredMs = 5_000;
/** A stranger that made more calls than this on a connection, when it is ended, made them to do harm. */
const fewCalls = 10;

/**
 * One client's HTTP/2 connection to a gRPC port: what it has open, and whether it sends more than its calls can need.
 * nghttp2 bounds most floods by itself, but late, and it leaves the connection open after it has said GOAWAY.
 */
export class GrpcConnection {
  openCalls = 0;
  /** Those of them that came with a good key. */
  #openKnownCalls = 0;
  #isKnown = false;
  #isEnding = false;
  /** All calls it ever had. */
  #calls = 0;
  readonly #admitted = new WeakSet<ServerHttp2Stream>();
  readonly #bytes: Allowance;
  readonly #resets: Allowance;
  #lastCallAt: number;
  /** Calls that wait to be authorized: nothing of their messages is counted yet. */
  #undecided = 0;
  #seenBytes = 0;
  #calledSince = false;
  /** Runs while the client has not answered a ping. */
  #pongTimer: NodeJS.Timeout | undefined;
  #pingedAt = Number.NEGATIVE_INFINITY;
  /** The client sent something since it last answered a ping. */
  #isUnproven = false;

  constructor(
    readonly session: ServerHttp2Session,
    /** The address of the other end. */
    readonly peer: string,
    private readonly bytesRead: () => number,
    /** Called when the connection is ended because of what its client did. */
    private readonly onAbuse: () => void = () => undefined,
  ) {
    const now = performance.now();
    this.#lastCallAt = now;
    this.#bytes = new Allowance(...allowances.bytes, now);
    this.#resets = new Allowance(...allowances.resets, now);
    session.once('close', () => clearTimeout(this.#pongTimer));
  }

  /** Whether new calls are refused, because the connection ends. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Notes a new call. */
  opened(stream: ServerHttp2Stream): void {
    this.#calls += 1;
    this.#calledSince = true;
    this.#bytes.give(bytesPerStrangersCall);
    this.openCalls += 1;
    stream.once('close', () => {
      this.openCalls -= 1;
      this.#lastCallAt = performance.now();
      const isReset = stream.rstCode !== constants.NGHTTP2_NO_ERROR && !stream.headersSent;
      if (isReset && !this.#admitted.has(stream) && !this.#resets.take(1, this.#lastCallAt)) this.end();
    });
  }

  /** Notes a call that waits to be authorized. Call what it returns when that is decided. */
  deciding(): () => void {
    this.#undecided += 1;
    return () => {
      this.#undecided -= 1;
    };
  }

  /** Notes that a call came with a good key. */
  identified(stream: ServerHttp2Stream): void {
    this.#isKnown = true;
    if (!stream.closed && !stream.destroyed) {
      this.#admitted.add(stream);
      this.#openKnownCalls += 1;
      stream.once('close', () => {
        this.#openKnownCalls -= 1;
      });
    }
    this.#bytes.give(bytesPerCall + windowBytes);
  }

  /** Notes that a call is refused whose client may have sent a part of its message: nobody reads it. */
  refusedUnread(): void {
    this.#bytes.give(windowBytes);
  }

  /** Notes bytes of a message, which its call may send. */
  received(bytes: number): void {
    this.#bytes.give(bytes);
  }

  /** Ends the connection when it sends what no call needs, is idle for too long, or is no longer read. */
  check(now = performance.now()): void {
    if (this.session.destroyed || this.#isEnding) return;
    const read = this.bytesRead();
    const isActive = read > this.#seenBytes;
    const sent = read - this.#seenBytes;
    if (!this.#bytes.take(sent, now)) {
      // What belongs to calls that are not decided yet is judged when they are.
      if (!this.#bytes.has(sent - this.#undecided * windowBytes, now)) this.end();
      return;
    }
    this.#seenBytes = read;
    if (this.openCalls === 0 && now - this.#lastCallAt > (this.#isKnown ? idleMs : strangersIdleMs)) {
      this.retire();
      return;
    }
    this.#isUnproven ||= isActive;
    const isQuiet = !this.#calledSince;
    this.#calledSince = false;
    // A client that sends a large message may answer late.
    if (this.#isUnproven && isQuiet && this.#openKnownCalls === 0 && now - this.#pingedAt > pingEveryMs) {
      this.#isUnproven = false;
      this.#ping(now);
    }
  }

  /** Closes the connection at once: what a flood still sends costs as much as what it sent before. */
  end(): void {
    if (this.session.destroyed) return;
    this.#isEnding = true;
    this.onAbuse();
    this.session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  /** Ends the connection because of calls without a good key. One that also has others finishes those. */
  endStrangers(): void {
    if (this.#isKnown) this.retire();
    else if (this.#calls > fewCalls) this.end();
    else this.retire(strangersRetiredMs);
  }

  /** Notes a call that is refused because the connection ends. */
  calledWhileEnding(): void {
    this.#calls += 1;
    if (!this.#isKnown && this.#calls > fewCalls) this.end();
  }

  /** Has the client open a new connection for its next call; what was begun on this one is finished, in bounded time. */
  retire(withinMs = retiredMs): void {
    if (this.#isEnding || this.session.destroyed) return;
    this.#isEnding = true;
    const { session } = this;
    session.goaway(constants.NGHTTP2_NO_ERROR);
    session.close();
    const timer = setTimeout(() => session.destroy(), withinMs);
    session.once('close', () => clearTimeout(timer));
  }

  /** Asks whether nghttp2 still works on this connection: it reads nothing more after an error of the client's. */
  #ping(now: number): void {
    const { session } = this;
    if (this.#pongTimer !== undefined) return;
    this.#pingedAt = now;
    const isLate = () => {
      if (session.destroyed) return;
      // The answer may be behind a message that a slow link still carries. The time of its call bounds the wait.
      if (this.#openKnownCalls > 0) {
        this.#pongTimer = setTimeout(isLate, pongMs);
        return;
      }
      this.onAbuse();
      session.destroy();
    };
    this.#pongTimer = setTimeout(isLate, pongMs);
    session.ping((error) => {
      if (error !== null) return;
      clearTimeout(this.#pongTimer);
      this.#pongTimer = undefined;
      // The answer itself is no reason to ask again.
      if (!session.destroyed) this.#seenBytes = this.bytesRead();
    });
  }
}
