import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';

/** Bytes that a connection may send without opening a call, and how many more each second: pings, settings, updates. */
const freeBytes = 256 * 1_024;
const freeBytesPerSecond = 4_096;
/** Bytes that each call may send beside its messages: its headers, and window updates for its answer. */
const bytesPerCall = 32 * 1_024;
/** Bytes that a call without a good key may send. */
const bytesPerStrangersCall = 2_048;
/** Calls that a client may reset before they are answered: at once, and how many more each second. */
const freeResets = 200;
const resetsPerSecond = 20;
/** How long a connection without calls stays open: one on which no good key was seen, and any other. */
const strangersIdleMs = 20_000;
const idleMs = 300_000;
/** How long the client has to read why the connection ends. */
const farewellMs = 1_000;

/**
 * One client's HTTP/2 connection to a gRPC port: what it has open, and whether it sends more than its calls can need.
 * nghttp2 bounds most floods by itself, but keeps the connection open afterwards, or bounds them late; this closes it.
 */
export class GrpcConnection {
  openCalls = 0;
  #isKnown = false;
  #isEnding = false;
  #bytes = freeBytes;
  #resets = freeResets;
  #checkedAt: number;
  #lastCallAt: number;
  #seenBytes = 0;

  constructor(
    readonly session: ServerHttp2Session,
    /** The address of the other end. */
    readonly peer: string,
    private readonly bytesRead: () => number,
    now = performance.now(),
  ) {
    this.#checkedAt = now;
    this.#lastCallAt = now;
  }

  /** Whether new calls are refused, because the connection ends. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Notes a new call. */
  opened(stream: ServerHttp2Stream): void {
    this.openCalls += 1;
    this.#bytes += bytesPerStrangersCall;
    stream.once('close', () => {
      this.openCalls -= 1;
      this.#lastCallAt = performance.now();
      // The client took the call back before it had an answer.
      if (stream.rstCode !== constants.NGHTTP2_NO_ERROR && !stream.headersSent) this.#resets -= 1;
      if (this.#resets < 0) this.end();
    });
  }

  /** Notes that a call came with a good key. */
  identified(): void {
    this.#isKnown = true;
    this.#bytes += bytesPerCall;
  }

  /** Notes bytes of a message, which its call may send. */
  received(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Ends the connection when it sends what no call needs, or when it has been idle for too long. */
  check(now = performance.now()): void {
    if (this.session.destroyed) return;
    const seconds = (now - this.#checkedAt) / 1_000;
    const read = this.bytesRead();
    this.#bytes = Math.min(this.#bytes + seconds * freeBytesPerSecond, mostSaved) - (read - this.#seenBytes);
    this.#resets = Math.min(freeResets, this.#resets + seconds * resetsPerSecond);
    this.#seenBytes = read;
    this.#checkedAt = now;
    if (this.#bytes < 0) this.end();
    else if (this.openCalls === 0 && now - this.#lastCallAt > (this.#isKnown ? idleMs : strangersIdleMs)) {
      this.end(constants.NGHTTP2_NO_ERROR);
    }
  }

  /** Says why, and closes the connection whatever the client does then. */
  end(code: number = constants.NGHTTP2_ENHANCE_YOUR_CALM): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    const { session } = this;
    if (session.destroyed) return;
    session.goaway(code);
    const timer = setTimeout(() => session.destroy(), farewellMs);
    session.once('close', () => clearTimeout(timer));
  }
}

/** What a quiet connection can have saved for later. */
const mostSaved = 16 * 1_024 * 1_024;
