import { connect, type Socket } from 'node:net';

/** The target of an attack, and the attacker's knowledge of it. */
export interface Target {
  readonly restPort: number;
  readonly grpcPort: number;
  readonly adminPort: number;
  readonly opsPort: number;
  /** A partner of the gateway that turned hostile. */
  readonly key: string;
  readonly account: string;
}

/** The figures of an attack's connections. */
export interface Connections {
  readonly opened: number;
  /** Those the gateway had not closed in the time the attack states. */
  readonly open: number;
  /** When the gateway closed the last one, counted from the end of the attack. */
  readonly lastClosedMs: number;
}

/** An attack: hostile acts against a target until its time is over. Its return value goes to the test. */
// biome-ignore lint/suspicious/noExplicitAny: every attack has options of its own, which the test gives it.
export type Attack = (attacker: Attacker, options: any) => Promise<unknown>;

/** From where attackers come, so that what is counted by address does not hit the honest partners. */
const usualAddress = '127.0.0.66';

/** The means of an attack, in the attacker's process. It remembers every connection. */
export class Attacker {
  #opened = 0;
  #lastClosedAt = 0;
  readonly #open = new Set<Socket>();

  constructor(
    readonly target: Target,
    /** How long the attack lasts. */
    readonly forMs: number,
    private readonly startedAt = performance.now(),
  ) {}

  /** How much of the attack's time is left. */
  get leftMs(): number {
    return Math.max(0, this.startedAt + this.forMs - performance.now());
  }

  get isOn(): boolean {
    return this.leftMs > 0;
  }

  /** Opens a connection. Resolves also when it was closed at once; an attacker takes what it gets. */
  async connect(port: number, from = usualAddress): Promise<Socket> {
    const socket = connect({ host: '127.0.0.1', port, localAddress: from });
    this.watch(socket);
    // Unless it is read, nobody hears that the other side closed it.
    socket.resume();
    await new Promise<void>((resolve) => {
      socket.once('connect', resolve);
      socket.once('close', () => resolve());
    });
    return socket;
  }

  /** Counts a connection that was opened some other way. */
  watch(socket: Socket): void {
    this.#opened += 1;
    this.#open.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => {
      this.#open.delete(socket);
      this.#lastClosedAt = performance.now();
    });
  }

  /** Waits until the gateway has closed every connection, or the time is over; closes those that are left. */
  async closed(withinMs: number): Promise<Connections> {
    const endedAt = performance.now();
    while (this.#open.size > 0 && performance.now() < endedAt + withinMs) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const open = this.#open.size;
    for (const socket of this.#open) socket.destroy();
    return { opened: this.#opened, open, lastClosedMs: Math.max(0, this.#lastClosedAt - endedAt) };
  }
}
