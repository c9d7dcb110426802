import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';

/** How the bytes of a case are cut into packets. An attack may need all in one packet, or a packet of its own. */
export type Cut = 'one packet' | 'a packet each' | 'byte by byte';

/** A client's view of one connection. */
export interface Seen {
  /** The statuses of the answers, in order, without 100. */
  readonly statuses: number[];
  readonly text: string;
  /** Whether the server closed the connection within the bound. */
  readonly isClosed: boolean;
}

export interface Target {
  readonly port: number;
  /** The authority of the server's certificate; undefined: plain text. */
  readonly ca?: string | undefined;
}

/** Two writes that should reach the server as two packets. The tests hold as well when they do not. */
const betweenPacketsMs = 5;

/** A client that writes any bytes and reads what comes back. */
export class RawClient {
  readonly socket: Socket;
  readonly #opened: Promise<void>;
  #text = '';
  #isClosed = false;
  #changed: () => void = () => {};

  constructor({ port, ca }: Target) {
    const where = { port, host: '127.0.0.1' };
    this.socket = ca === undefined ? connect(where) : connectTls({ ...where, ca, ALPNProtocols: ['http/1.1'] });
    this.#opened = new Promise((resolve) => {
      this.socket.once(ca === undefined ? 'connect' : 'secureConnect', () => resolve());
      this.socket.once('close', () => resolve());
    });
    this.socket.setNoDelay(true);
    this.socket.on('error', () => {});
    this.socket.on('data', (bytes) => {
      this.#text += bytes.toString('latin1');
      this.#changed();
    });
    const close = () => {
      this.#isClosed = true;
      this.#changed();
    };
    this.socket.once('end', close).once('close', close);
  }

  /** How many answers have come. */
  get count(): number {
    return this.#seen().statuses.length;
  }

  async send(packets: readonly string[], cut: Cut): Promise<void> {
    await this.#opened;
    if (cut === 'one packet') return this.#write(packets.join(''));
    for (const packet of packets) {
      const pieces = cut === 'a packet each' ? [packet] : packet;
      for (const piece of pieces) await this.#write(piece);
      await delay(betweenPacketsMs);
    }
  }

  /** Waits until so many answers are here, or the connection is closed, or the time is over. */
  async answers(count: number, boundMs: number): Promise<Seen> {
    return this.#wait(() => this.#seen().statuses.length >= count, boundMs);
  }

  /** Waits until the server closes the connection, or the time is over. */
  async closed(boundMs: number): Promise<Seen> {
    return this.#wait(() => false, boundMs);
  }

  close(): void {
    this.socket.destroy();
  }

  async #wait(isEnough: () => boolean, boundMs: number): Promise<Seen> {
    const end = performance.now() + boundMs;
    while (!this.#isClosed && !isEnough() && performance.now() < end) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, end - performance.now());
        this.#changed = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return this.#seen();
  }

  #seen(): Seen {
    const statuses = [...this.#text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
    return { statuses: statuses.filter((status) => status !== 100), text: this.#text, isClosed: this.#isClosed };
  }

  async #write(text: string): Promise<void> {
    if (this.socket.destroyed || !this.socket.writable) return;
    await new Promise<void>((resolve) => this.socket.write(Buffer.from(text, 'latin1'), () => resolve()));
  }
}
