import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { eventually } from '../eventually.ts';
import { TrueOrder } from './book.ts';
import { Desk } from './desk.ts';
import type { Habit } from './habit.ts';
import { readTerms } from './orders.ts';
import { type Delivery, SessionNumbers } from './session.ts';
import { type FixVersion, Framer, type WireField, WireMessage } from './wire.ts';

export type PriceUnit = 'naira' | 'kobo';

/** The session's deviations from the specification. A hook that answers true has dealt with the message. */
export interface Manners {
  /** Sees each message before anything else does. */
  receive?(message: WireMessage): boolean;
  /** Sees each Logon, before it is answered. */
  logon?(message: WireMessage): boolean;
  /** Fields of the answer to a Logon, in place of HeartBtInt and the like. */
  logonFields?(message: WireMessage): WireField[];
  /** Called after a Logon was answered. */
  loggedOn?(): void;
  /** The connection has ended, by whichever side. */
  closed?(): void;
  /** Which messages are passed over by a gap fill when they are asked for again. */
  isPassedOver?(message: WireMessage): boolean;
  /** How numbers are passed over; absent: by one gap fill with PossDupFlag. */
  gapFill?(from: number, newNumber: number): Buffer[];
  /** How bytes are written. */
  write?(bytes: Buffer, socket: Socket): void;
  /** Changes how every message is made. */
  delivery?: Delivery;
}

export interface LoggedMessage {
  readonly way: 'in' | 'out';
  readonly at: number;
  readonly message: WireMessage;
}

/** An exchange's FIX engine with its book, as a server. One counterparty has the session. */
export class Acceptor {
  readonly log: LoggedMessage[] = [];
  readonly orders = new Map<string, TrueOrder>();
  /** How often a NewOrderSingle was on the wire, by ClOrdID. */
  readonly newOrders = new Map<string, number>();
  /** Habits, by the account of the orders that they are about. */
  readonly habits = new Map<string, Habit>();
  readonly numbers: SessionNumbers;
  manners: Manners = {};
  /** Whether a new connection is accepted or ended at once. */
  isOpen = true;
  /** Errors of hooks and of the other side's bytes, which fail the test. */
  readonly errors: Error[] = [];
  #socket: Socket | undefined;
  #isUp = false;
  #askedFrom = 0;
  #nextId = 1;
  #heartbeats: NodeJS.Timeout | undefined;
  readonly #run = Date.now().toString(36);

  private constructor(
    readonly server: Server,
    readonly version: FixVersion,
    readonly unit: PriceUnit,
  ) {
    this.numbers = new SessionNumbers(version, 'LAGOS', 'MARINA');
  }

  static async start(version: FixVersion, unit: PriceUnit): Promise<Acceptor> {
    const server = createServer({ noDelay: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const acceptor = new Acceptor(server, version, unit);
    server.on('connection', (socket) => acceptor.#connect(socket));
    return acceptor;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Whether a Logon was answered on the connection that is there. */
  get isUp(): boolean {
    return this.#isUp;
  }

  /** An id that this exchange never used. */
  newId(prefix: string): string {
    // Of one length, so that no id is the beginning of another.
    return `${prefix}${this.#run}${String(this.#nextId++).padStart(6, '0')}`;
  }

  /** A price in the unit of the session. */
  price(kobo: bigint): string {
    return this.unit === 'kobo' ? String(kobo) : `${kobo / 100n}.${String(kobo % 100n).padStart(2, '0')}`;
  }

  desk(order: TrueOrder): Desk {
    return new Desk(this, order);
  }

  ordersOf(account: string): TrueOrder[] {
    return [...this.orders.values()].filter(({ terms }) => terms.account === account);
  }

  /** Messages that came, of a type. */
  received(type: string): WireMessage[] {
    return this.log.filter(({ way, message }) => way === 'in' && message.type === type).map(({ message }) => message);
  }

  /** Sends a message under the next number. If there is no session, it can be asked for later. */
  send(type: string, fields: readonly WireField[], delivery: Delivery = {}): void {
    const bytes = this.numbers.make(type, fields, { ...this.manners.delivery, ...delivery });
    const number = delivery.number ?? this.numbers.nextOut - 1;
    this.log.push({
      way: 'out',
      at: Date.now(),
      message: new WireMessage([[35, type], [34, String(number)], ...fields]),
    });
    if (delivery.isLost !== true && this.#isUp) this.write(bytes);
  }

  /** Writes bytes as they are. */
  write(bytes: Buffer): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    if (this.manners.write === undefined) socket.write(bytes);
    else this.manners.write(bytes, socket);
  }

  /** Ends the connection as a broken line does. */
  cut(): void {
    this.#socket?.destroy();
    this.#isUp = false;
  }

  /** Ends the connection after what was written has left. */
  close(): void {
    this.#socket?.end();
    this.#isUp = false;
  }

  /** Waits until the other side has read everything that was sent: it answers a TestRequest. */
  async barrier(boundMs = 20_000): Promise<void> {
    const ids = new Set<string>();
    let askedAt = 0;
    await eventually(() => {
      // Asked again, because a question that comes behind a gap is passed over when the gap is filled.
      if (this.#isUp && Date.now() - askedAt > 500) {
        askedAt = Date.now();
        const id = this.newId('B');
        ids.add(id);
        this.send('1', [[112, id]]);
      }
      const isAnswered = this.received('0').some((message) => ids.has(message.text(112)));
      assert.ok(isAnswered, 'the adapter has not answered a TestRequest');
    }, boundMs);
  }

  async up(boundMs = 40_000): Promise<void> {
    await eventually(() => assert.ok(this.#isUp, 'there is no session'), boundMs);
    await this.barrier(boundMs);
  }

  /** The exchange's night: day orders end unreported and are forgotten, and numbers begin at 1. */
  endOfDay(): void {
    for (const order of this.orders.values()) {
      const isDay = order.terms.timeInForce !== '1';
      if (isDay && order.open > 0n) order.end = 'expired';
      if (isDay) order.isForgotten = true;
    }
    this.numbers.reset();
  }

  async stop(): Promise<void> {
    this.cut();
    clearInterval(this.#heartbeats);
    this.server.close();
    await once(this.server, 'close');
  }

  #connect(socket: Socket): void {
    socket.on('error', () => undefined);
    if (!this.isOpen || this.#socket !== undefined) {
      socket.destroy();
      return;
    }
    this.#socket = socket;
    this.#isUp = false;
    const framer = new Framer();
    socket.on('data', (bytes) => {
      try {
        for (const message of framer.push(bytes)) if (this.#socket === socket) this.#receive(message);
      } catch (error) {
        this.errors.push(error as Error);
        socket.destroy();
      }
    });
    socket.on('close', () => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      this.#isUp = false;
      clearInterval(this.#heartbeats);
      this.manners.closed?.();
    });
  }

  #receive(message: WireMessage): void {
    this.log.push({ way: 'in', at: Date.now(), message });
    const { type } = message;
    if (type === 'D') this.newOrders.set(message.text(11), (this.newOrders.get(message.text(11)) ?? 0) + 1);
    if (this.manners.receive?.(message) === true) return;
    if (type === 'A') this.#logon(message);
    else if (type === '4') this.#skip(message);
    else if (this.#isInOrder(message)) this.#take(message);
  }

  #logon(message: WireMessage): void {
    if (this.manners.logon?.(message) === true) return;
    if (message.find(141) === 'Y') this.numbers.reset();
    const { nextIn } = this.numbers;
    if (message.number < nextIn) {
      this.logOut(`MsgSeqNum too low, expecting ${nextIn} but received ${message.number}`);
      return;
    }
    this.#isUp = true;
    this.#askedFrom = 0;
    const answer: WireField[] = [
      [98, '0'],
      [108, message.text(108)],
      ...(message.find(141) === 'Y' ? [[141, 'Y'] as const] : []),
      ...(this.version === 'FIXT.1.1' ? [[1137, '9'] as const] : []),
    ];
    this.send('A', this.manners.logonFields?.(message) ?? answer);
    if (message.number === nextIn) this.numbers.nextIn += 1;
    else this.#askAgain();
    clearInterval(this.#heartbeats);
    this.#heartbeats = setInterval(() => this.send('0', []), Number(message.text(108)) * 1_000).unref();
    this.manners.loggedOn?.();
  }

  /** Says goodbye and ends the connection. */
  logOut(text: string): void {
    this.write(this.numbers.make('5', [[58, text]]));
    this.close();
  }

  /** Whether it is the next message. Those after a gap are dropped, and asked for again. */
  #isInOrder(message: WireMessage): boolean {
    if (message.number === this.numbers.nextIn) {
      this.numbers.nextIn += 1;
      return true;
    }
    if (message.number > this.numbers.nextIn) this.#askAgain();
    else if (message.find(43) !== 'Y') this.logOut(`MsgSeqNum too low, expecting ${this.numbers.nextIn}`);
    // An engine drops messages during a gap, but answers a ResendRequest at once, or two sides wait for each other.
    return message.number > this.numbers.nextIn && message.type === '2';
  }

  /** A gap fill over numbers that were read is an answer to a question about them, and moves nothing. */
  #skip(message: WireMessage): void {
    if (message.number === this.numbers.nextIn) this.numbers.nextIn = Number(message.text(36));
    else if (message.number > this.numbers.nextIn) this.#askAgain();
  }

  #askAgain(): void {
    if (this.#askedFrom === this.numbers.nextIn) return;
    this.#askedFrom = this.numbers.nextIn;
    this.send('2', [
      [7, String(this.numbers.nextIn)],
      [16, '0'],
    ]);
  }

  #take(message: WireMessage): void {
    switch (message.type) {
      case '1':
        this.send('0', [[112, message.text(112)]]);
        return;
      case '2':
        for (const bytes of this.numbers.resend(
          Number(message.text(7)),
          Number(message.text(16)),
          this.manners.isPassedOver,
          this.manners.gapFill,
        )) {
          this.write(bytes);
        }
        return;
      case '5':
        this.write(this.numbers.make('5', []));
        this.close();
        return;
      case 'D':
        this.#takeOrder(message);
        return;
      case 'F':
      case 'H':
        this.#takeQuestion(message);
        return;
      case 'AF':
        this.#takeMassStatus(message);
        return;
      default:
        return;
    }
  }

  #takeOrder(message: WireMessage): void {
    const terms = readTerms(message, this.unit);
    if (this.orders.has(terms.clOrdId)) throw new Error(`the order ${terms.clOrdId} came twice`);
    const order = new TrueOrder(terms, this.newId('X'));
    this.orders.set(terms.clOrdId, order);
    const habit = this.habits.get(terms.account);
    const desk = this.desk(order);
    if (habit?.onOrder === undefined) desk.accept();
    else habit.onOrder(desk, message);
  }

  #takeQuestion(message: WireMessage): void {
    const id = message.type === 'F' ? message.text(41) : message.text(11);
    const order = this.orders.get(id);
    const habit = this.habits.get(message.text(1));
    const desk = this.desk(order ?? new TrueOrder({ ...readTerms(message, this.unit), clOrdId: id }, 'NONE'));
    // Of what it has forgotten, no exchange says more than that.
    const hook = order?.isForgotten === true ? undefined : message.type === 'F' ? habit?.onCancel : habit?.onStatus;
    if (hook !== undefined) hook(desk, message);
    else if (message.type === 'F') desk.answerCancel(message);
    else desk.answerStatus(message);
  }

  /** Most engines list the orders that are open, and leave out those that are complete. */
  #takeMassStatus(message: WireMessage): void {
    for (const order of this.orders.values()) {
      const desk = this.desk(order);
      const habit = this.habits.get(order.terms.account);
      if (habit?.onMassStatus !== undefined) habit.onMassStatus(desk, message);
      // An exchange that does not answer about an order as usual lists it nowhere.
      else if (habit?.onStatus === undefined && order.open > 0n && !order.isForgotten)
        desk.status({ 584: message.text(584) });
    }
  }
}
