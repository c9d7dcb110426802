import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { Framing } from '../../../src/fix-adapter/wire/framing.ts';
import { encode, type Field, type FixMessage } from '../../../src/fix-adapter/wire/message.ts';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { utcTimestamp } from '../../../src/fix-adapter/wire/times.ts';

/**
 * How the exchange treats an order that arrives. `lose`: it is taken, and the connection ends before an answer. `slow`:
 * it is read, and nothing inside the exchange knows of it until `finish`.
 */
export type Treatment = 'accept' | 'fill' | 'reject' | 'silent' | 'lose' | 'drop' | 'slow';

interface Book {
  readonly order: FixMessage;
  readonly exchangeId: string;
  filled: number;
  /** OrdStatus. */
  status: string;
}

/**
 * A small exchange that speaks FIX as an acceptor, and whose behaviour a test chooses, down to the single byte. It follows the
 * protocol by itself: numbers, gaps, resending with PossDupFlag, heartbeats.
 */
export class Exchange {
  nextOut = 1;
  nextIn = 1;
  /** How often each ClOrdID of an order was received, on whatever connection. */
  readonly arrivals = new Map<string, number>();
  readonly received: FixMessage[] = [];
  readonly book = new Map<string, Book>();
  treat: (order: FixMessage) => Treatment = () => 'accept';
  /** Called with each message before it is handled. Returns whether the exchange shall ignore it. */
  intercept: (message: FixMessage, exchange: Exchange) => boolean = () => false;
  /** Orders that are on their way through the exchange. */
  readonly slow = new Map<string, FixMessage>();
  answersLogon = true;
  /** Its clock. */
  now: () => number = Date.now;
  connections = 0;
  #sent = new Map<number, { type: string; fields: readonly Field[] }>();
  #executions = 0;
  #socket: Socket | undefined;
  readonly #server: Server;

  private constructor(
    readonly beginString: string,
    tls: TlsOptions | undefined,
  ) {
    const serve = (socket: Socket) => this.#serve(socket);
    this.#server = tls === undefined ? createServer(serve) : createTlsServer(tls, serve);
    this.#server.on('tlsClientError', () => {});
  }

  static async start(beginString = 'FIXT.1.1', tls?: TlsOptions): Promise<Exchange> {
    const exchange = new Exchange(beginString, tls);
    await new Promise<void>((resolve) => exchange.#server.listen(0, '127.0.0.1', resolve));
    return exchange;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  get isConnected(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed;
  }

  /** Ends the connection without a word. */
  cut(): void {
    this.#socket?.resetAndDestroy();
  }

  /** Reads nothing any more. */
  freeze(): void {
    this.#socket?.pause();
  }

  thaw(): void {
    this.#socket?.resume();
  }

  async close(): Promise<void> {
    this.#socket?.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Sends a message with the next number, as kept for resending. */
  send(type: string, ...fields: readonly Field[]): void {
    const number = this.nextOut;
    this.nextOut += 1;
    this.#sent.set(number, { type, fields });
    this.#write(number, type, fields);
  }

  /** Gives a message its number, and loses it. */
  sendIntoNothing(type: string, ...fields: readonly Field[]): void {
    this.#sent.set(this.nextOut, { type, fields });
    this.nextOut += 1;
  }

  /** Writes bytes as they are. */
  raw(bytes: string | Buffer): void {
    this.#socket?.write(bytes);
  }

  /** Writes a message with a number and fields of the test's choice. */
  write(number: number, type: string, ...fields: readonly Field[]): void {
    this.#write(number, type, fields);
  }

  /** The fields of a report about an order. */
  report(id: string, execType: string, more: readonly Field[] = [], execId = this.newExecId()): readonly Field[] {
    const found = this.book.get(id);
    const order = found?.order;
    return [
      [tags.OrderID, found?.exchangeId ?? 'NONE'],
      [tags.ExecID, execId],
      [tags.ClOrdID, id],
      [tags.ExecType, execType],
      [tags.OrdStatus, found?.status ?? '8'],
      [tags.Symbol, order?.get(tags.Symbol) ?? 'NONE'],
      [tags.Side, order?.get(tags.Side) ?? '1'],
      [tags.CumQty, String(found?.filled ?? 0)],
      [tags.LeavesQty, String(Number(order?.get(tags.OrderQty) ?? 0) - (found?.filled ?? 0))],
      [tags.TransactTime, utcTimestamp(this.now())],
      ...more,
    ];
  }

  newExecId(): string {
    this.#executions += 1;
    return `e${this.#executions}`;
  }

  /** Trades a part of an order. */
  fill(id: string, quantity: number, price: string, send = true): readonly Field[] {
    const found = this.book.get(id);
    if (found === undefined) throw new Error(`the exchange has no order ${id}`);
    found.filled += quantity;
    found.status = found.filled >= Number(found.order.get(tags.OrderQty)) ? '2' : '1';
    const fields = this.report(id, 'F', [
      [tags.LastQty, String(quantity)],
      [tags.LastPx, price],
    ]);
    if (send) this.send(messageTypes.ExecutionReport, ...fields);
    return fields;
  }

  end(id: string, status: '4' | 'C'): void {
    const found = this.book.get(id);
    if (found === undefined) throw new Error(`the exchange has no order ${id}`);
    found.status = status;
    this.send(messageTypes.ExecutionReport, ...this.report(id, status));
  }

  #serve(socket: Socket): void {
    this.#socket?.destroy();
    this.#socket = socket;
    this.connections += 1;
    const framing = new Framing();
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      for (const one of framing.push(bytes)) if ('message' in one && this.#socket === socket) this.#handle(one.message);
    });
  }

  #handle(message: FixMessage): void {
    this.received.push(message);
    if (this.intercept(message, this)) return;
    const { type, number } = message;
    if (type === messageTypes.Logon) {
      if (message.get(tags.ResetSeqNumFlag) === 'Y') {
        this.nextOut = 1;
        this.nextIn = 1;
        this.#sent.clear();
      }
      if (!this.answersLogon) return;
      this.send(
        messageTypes.Logon,
        [tags.EncryptMethod, '0'],
        [tags.HeartBtInt, message.get(tags.HeartBtInt) ?? '30'],
        ...(message.get(tags.ResetSeqNumFlag) === 'Y' ? [[tags.ResetSeqNumFlag, 'Y'] as const] : []),
      );
    }
    if (type === messageTypes.SequenceReset) {
      const next = Number(message.get(tags.NewSeqNo));
      if (number <= this.nextIn && next > this.nextIn) this.nextIn = next;
      return;
    }
    if (type === messageTypes.ResendRequest && number >= this.nextIn)
      this.#resend(Number(message.get(tags.BeginSeqNo)));
    if (number > this.nextIn) {
      this.send(messageTypes.ResendRequest, [tags.BeginSeqNo, String(this.nextIn)], [tags.EndSeqNo, '0']);
      return;
    }
    if (number < this.nextIn) {
      this.send(messageTypes.Logout, [tags.Text, `MsgSeqNum too low, expecting ${this.nextIn} but received ${number}`]);
      this.#socket?.end();
      return;
    }
    this.nextIn += 1;
    if (type === messageTypes.TestRequest) {
      this.send(messageTypes.Heartbeat, [tags.TestReqID, message.get(tags.TestReqID) ?? '']);
    }
    if (type === messageTypes.Logout) {
      this.send(messageTypes.Logout);
      this.#socket?.end();
    }
    if (type === messageTypes.NewOrderSingle) this.#order(message);
    if (type === messageTypes.OrderCancelRequest) this.#cancel(message);
    if (type === messageTypes.OrderStatusRequest) this.#status(message);
  }

  #order(order: FixMessage): void {
    const id = order.get(tags.ClOrdID) ?? '';
    this.arrivals.set(id, (this.arrivals.get(id) ?? 0) + 1);
    const treatment = this.treat(order);
    if (treatment === 'drop') {
      this.nextIn -= 1;
      this.arrivals.set(id, (this.arrivals.get(id) ?? 1) - 1);
      this.cut();
      return;
    }
    if (treatment === 'slow') {
      this.slow.set(id, order);
      return;
    }
    this.#enter(id, order);
    if (treatment === 'reject') {
      this.book.set(id, { order, exchangeId: 'NONE', filled: 0, status: '8' });
      this.send(messageTypes.ExecutionReport, ...this.report(id, '8', [[tags.OrdRejReason, '2']]));
    }
    if (treatment === 'accept' || treatment === 'fill')
      this.send(messageTypes.ExecutionReport, ...this.report(id, '0'));
    if (treatment === 'fill') this.fill(id, Number(order.get(tags.OrderQty)), order.get(tags.Price) ?? '1.00');
    if (treatment === 'lose') {
      this.sendIntoNothing(messageTypes.ExecutionReport, ...this.report(id, '0'));
      this.cut();
    }
  }

  /** A slow order has come through the exchange. */
  finish(id: string): void {
    const order = this.slow.get(id);
    if (order === undefined) throw new Error(`the exchange has no slow order ${id}`);
    this.#enter(id, order);
    this.send(messageTypes.ExecutionReport, ...this.report(id, '0'));
  }

  #enter(id: string, order: FixMessage): void {
    this.book.set(id, { order, exchangeId: `X${this.book.size + 1}`, filled: 0, status: '0' });
  }

  #cancel(message: FixMessage): void {
    const id = message.get(tags.OrigClOrdID) ?? '';
    const cancelId = message.get(tags.ClOrdID) ?? '';
    const found = this.book.get(id);
    if (found !== undefined && ['0', '1'].includes(found.status)) {
      found.status = '4';
      const fields = this.report(id, '4').map(
        (field): Field => (field[0] === tags.ClOrdID ? [tags.ClOrdID, cancelId] : field),
      );
      this.send(messageTypes.ExecutionReport, ...fields, [tags.OrigClOrdID, id]);
      return;
    }
    this.send(
      messageTypes.OrderCancelReject,
      [tags.OrderID, found?.exchangeId ?? 'NONE'],
      [tags.ClOrdID, cancelId],
      [tags.OrigClOrdID, id],
      [tags.OrdStatus, found?.status ?? '8'],
      [tags.CxlRejResponseTo, '1'],
      [tags.CxlRejReason, found === undefined ? '1' : '0'],
    );
  }

  #status(message: FixMessage): void {
    const id = message.get(tags.ClOrdID) ?? '';
    const isKnown = this.book.has(id);
    const asked: Field[] = [[tags.OrdStatusReqID, message.get(tags.OrdStatusReqID) ?? '']];
    this.send(
      messageTypes.ExecutionReport,
      ...this.report(id, 'I', isKnown ? asked : [...asked, [tags.OrdRejReason, '5']], '0'),
    );
  }

  /** Sends application messages again, and passes over the others. */
  #resend(from: number): void {
    for (let number = from; number < this.nextOut; number += 1) {
      const kept = this.#sent.get(number);
      const isAdministrative = kept === undefined || /^[0-5A]$/.test(kept.type);
      if (isAdministrative) {
        this.#write(number, messageTypes.SequenceReset, [
          [tags.PossDupFlag, 'Y'],
          [tags.GapFillFlag, 'Y'],
          [tags.NewSeqNo, String(number + 1)],
        ]);
      } else this.#write(number, kept.type, [[tags.PossDupFlag, 'Y'], ...kept.fields]);
    }
  }

  #write(number: number, type: string, fields: readonly Field[]): void {
    const header: Field[] = [
      [tags.MsgType, type],
      [tags.SenderCompID, 'EXCHANGE'],
      [tags.TargetCompID, 'MARINA'],
      [tags.MsgSeqNum, String(number)],
      [tags.SendingTime, utcTimestamp(this.now())],
    ];
    this.#socket?.write(encode(this.beginString, [...header, ...fields]));
  }
}
