import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { Allowance } from '../bounds.ts';

/** Allowances in addition to calls with a valid key: a burst, and a rate per second. */
const allowances = {
  /** Bytes that belong to no call: pings, settings, window updates. */
  bytes: [16 * 1_024, 4_096],
  /**
   * Calls that the client cancels before they are admitted or answered. Admitted ones do not count: the partner's rate
   * limits them, and a client with short deadlines cancels as many calls as it makes.
   */
  resets: [200, 20],
} as const;
/** Bytes per call in addition to its messages: headers, and window updates for its answer. */
const bytesPerCall = 32 * 1_024;
const bytesPerStrangersCall = 2_048;
/** How much of a call's message may come before we read it: HTTP/2's first window. */
const windowBytes = 65_535;
/** How long a connection without calls stays open, without a valid key and with one. */
const idleMs = { stranger: 20_000, known: 300_000 };
/** The minimum time between two pings, and how long the client may take to answer one. */
const pingEveryMs = 500;
const pongMs = 1_500;
/** The fewest looks for the answer before it counts as late: a process that had no time itself has not read what has come. */
const pongLooks = 5;
/** How long started calls may run before a retired connection is closed, with a valid key and without. */
const retiredMs = { known: 60_000, stranger: 5_000 };
/** How long a client may take to read the last answers and to close, once the session has ended. */
const closingMs = 30_000;
/** More calls than this without a valid key, on a connection that ends for such calls, count as abuse. */
const fewCalls = 10;

/**
 * One client's HTTP/2 connection to a gRPC port: its open calls, and whether it sends more than they can need. nghttp2
 * stops most floods itself, but late, and leaves the connection open after its GOAWAY. Up to 2 MiB of one connection are
 * read at once, so the socket of a flood is closed as soon as a call of it is seen.
 */
export class GrpcConnection {
  readonly peer: string;
  openCalls = 0;
  /** Open calls with a valid key. */
  #openKnownCalls = 0;
  #isKnown = false;
  #isEnding = false;
  #calls = 0;
  readonly #admitted = new WeakSet<ServerHttp2Stream>();
  readonly #bytes: Allowance;
  readonly #resets: Allowance;
  #lastCallAt: number;
  /** Calls that wait to be authorized. Their messages do not count yet. */
  #undecided = 0;
  #seenBytes = 0;
  #calledSince = false;
  /** The ping that the client has not answered. */
  #ping: { since: number; looks: number } | undefined;
  #retiredTimer: NodeJS.Timeout | undefined;
  /** When the session was first seen to have ended. The socket is open until the client closes it. */
  #closingSince: number | undefined;
  #pingedAt = Number.NEGATIVE_INFINITY;
  /** The client has sent data since it last answered a ping. */
  #isUnproven = false;

  constructor(
    readonly session: ServerHttp2Session,
    /** The session's own one, not the one that Node shows, which cannot be closed. */
    private readonly socket: Socket,
    /** Called when the connection is ended for abuse. */
    private readonly onAbuse: (peer: string) => void = () => undefined,
  ) {
    const now = performance.now();
    this.peer = socket.remoteAddress ?? '';
    this.#lastCallAt = now;
    this.#bytes = new Allowance(...allowances.bytes, now);
    this.#resets = new Allowance(...allowances.resets, now);
    session.once('close', () => clearTimeout(this.#retiredTimer));
  }

  /** Whether new calls are refused because the connection ends. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

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
      if (this.#isEnding && this.openCalls === 0) this.sendAway();
    });
  }

  /** Notes a call that waits to be authorized. Call the result when it is decided. */
  deciding(): () => void {
    this.#undecided += 1;
    return () => {
      this.#undecided -= 1;
    };
  }

  /** Notes that a call came with a valid key. */
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
    if (!this.#isEnding) return;
    this.#closeWithin(retiredMs.known);
    this.sendAway();
  }

  /** Notes a refused call: the part of its message that may have been sent is not read. */
  refusedUnread(): void {
    this.#bytes.give(windowBytes);
  }

  /** Notes bytes of a message, which its call may send. */
  received(bytes: number): void {
    this.#bytes.give(bytes);
  }

  /** Ends the connection if it sends too much, was idle for too long, or nghttp2 reads it no more. */
  check(now = performance.now()): void {
    if (this.socket.destroyed) return;
    const isActive = this.socket.bytesRead > this.#seenBytes;
    if (!this.#countBytes(now)) return;
    if (this.session.destroyed) {
      this.#closingSince ??= now;
      if (now - this.#closingSince > closingMs) this.socket.destroy();
      return;
    }
    if (this.#looksInVain(now)) {
      this.end();
      return;
    }
    if (this.#isEnding) return;
    if (this.openCalls === 0 && now - this.#lastCallAt > (this.#isKnown ? idleMs.known : idleMs.stranger)) {
      this.retire();
      return;
    }
    this.#isUnproven ||= isActive;
    const isQuiet = !this.#calledSince;
    this.#calledSince = false;
    // A client that sends a large message may answer late.
    if (this.#isUnproven && isQuiet && this.#openKnownCalls === 0 && now - this.#pingedAt > pingEveryMs) {
      this.#isUnproven = false;
      this.#sendPing(now);
    }
  }

  /** Closes the connection at once, because each further byte of a flood costs as much. */
  end(): void {
    if (this.socket.destroyed) return;
    this.#isEnding = true;
    this.onAbuse(this.peer);
    this.destroy();
  }

  /** Closes the connection with its calls. The session alone would wait for what is still to be read or written. */
  destroy(): void {
    this.session.destroy();
    this.socket.destroy();
  }

  /** Ends the connection for calls without a valid key. Its calls with one may finish. */
  endStrangers(isKnownAddress: boolean): void {
    if (!this.#isKnown && this.#calls > fewCalls) this.end();
    else this.retire(this.#isKnown || isKnownAddress);
  }

  /** Notes a call that is refused because the connection ends, or has too many. Its bytes are counted at once. */
  refusedAtOnce(): void {
    this.#calls += 1;
    if (this.#calls <= fewCalls) this.refusedUnread();
    if (this.#isEnding && !this.#isKnown && this.#calls > fewCalls) this.end();
    else this.#countBytes(performance.now());
  }

  /**
   * Makes the client open a new connection for its next call. Started calls may finish, in bounded time. A stranger is sent
   * away when its calls have ended: after the GOAWAY nghttp2 still inflates the heads of further calls, and shows us none.
   */
  retire(isKnown = this.#isKnown): void {
    if (this.#isEnding || this.session.destroyed) return;
    this.#isEnding = true;
    this.#closeWithin(isKnown ? retiredMs.known : retiredMs.stranger);
    if (isKnown || this.openCalls === 0) this.sendAway();
  }

  /** Sends the client away: begins no more calls, and closes when the started ones have ended. */
  sendAway(): void {
    this.session.close();
  }

  #closeWithin(ms: number): void {
    clearTimeout(this.#retiredTimer);
    this.#retiredTimer = setTimeout(() => this.socket.destroy(), ms);
  }

  /** Ends the connection if it has sent more than its calls can need. Returns whether it has not. */
  #countBytes(now: number): boolean {
    const read = this.socket.bytesRead;
    const sent = read - this.#seenBytes;
    if (this.#bytes.take(sent, now)) {
      this.#seenBytes = read;
      return true;
    }
    // Bytes of undecided calls are judged once they are decided.
    if (!this.#bytes.has(sent - this.#undecided * windowBytes, now)) this.end();
    return false;
  }

  /** Checks that nghttp2 still reads this connection: it stops after a client's error. */
  #sendPing(now: number): void {
    const { session } = this;
    if (this.#ping !== undefined) return;
    this.#pingedAt = now;
    this.#ping = { since: now, looks: 0 };
    // Without an answer too, if the session ends.
    session.ping(() => {
      this.#ping = undefined;
      // The answer itself is no reason for another ping.
      if (!session.destroyed) this.#seenBytes = this.socket.bytesRead;
    });
  }

  /** Looks for the answer to a ping. Returns whether it is late. */
  #looksInVain(now: number): boolean {
    const ping = this.#ping;
    if (ping === undefined) return false;
    ping.looks += 1;
    // The answer may be behind a large message on a slow link. The time of that call bounds the wait.
    if (this.#openKnownCalls > 0) ping.since = now;
    return now - ping.since >= pongMs && ping.looks >= pongLooks;
  }
}
