import { existsSync, readFileSync, rmSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Advice, explain } from '../../src/sandbox/advice.ts';
import { lastLines } from '../../src/sandbox/exits.ts';
import { type KeptProcess, sharedKeeper } from '../../src/sandbox/keeper.ts';
import { ready } from './eventually.ts';
import { temporaryFolder } from './folders.ts';
import { type AcceptorProgram, findAcceptor } from './quickfix-build.ts';

/** The acceptor's identity, and the counterparty it expects. */
export interface AcceptorOptions {
  /** FIXT.1.1 carries FIX 5.0 SP2. */
  readonly version?: 'FIXT.1.1' | 'FIX.4.4';
  /** The exchange's SenderCompID. */
  readonly sender?: string;
  /** The client's SenderCompID. */
  readonly target?: string;
  readonly username?: string;
  readonly password?: string;
}

/**
 * How the exchange treats an order that comes. `parts` are three trades; `silent` has it in the book and answers
 * nothing.
 */
export interface OrderRule {
  readonly as: 'rest' | 'fill' | 'partial' | 'parts' | 'reject' | 'closed' | 'silent' | 'ignore';
  /** Of this symbol; absent: of all symbols that have no rule and no name with a meaning. */
  readonly symbol?: string;
  /** Of a partial fill; absent: half. */
  readonly quantity?: number;
  /** Of the trades; absent: the order's, or 10.00. */
  readonly price?: string;
  /** OrdRejReason. */
  readonly reason?: number;
  readonly text?: string;
  readonly afterMs?: number;
  /** How the rest of an IOC or FOK order ends. Absent: expired. */
  readonly unfilled?: 'expired' | 'cancelled';
}

/** How the exchange treats a cancel request. `pending` stays Pending Cancel until the test ends the order. */
export interface CancelRule {
  readonly as: 'accept' | 'pending' | 'pendingThenCancel' | 'reject' | 'tooLate' | 'silent';
  /** Until Cancelled. */
  readonly afterMs?: number;
  /** CxlRejReason. */
  readonly reason?: number;
  readonly text?: string;
}

/** Something that happens once, or `count` times, to the next message of a type. */
export interface NextRule {
  /** MsgType: D for an order, F for a cancel, H for a status request. */
  readonly type: string;
  /**
   * `disconnectBefore`: the gateway never took the message. `disconnectAfter`: it took it, and the answer stays in its
   * store. `freeze`: it stands still with the message unread. `ignore`: it has the number, and nothing happens.
   */
  readonly action: 'disconnectBefore' | 'disconnectAfter' | 'freeze' | 'ignore' | 'businessReject' | 'sessionReject';
  readonly count?: number;
  /** BusinessRejectReason. */
  readonly reason?: number;
  /** The tag that a session Reject names. */
  readonly tag?: number;
  readonly text?: string;
}

export interface AcceptorState {
  readonly isConnected: boolean;
  readonly isLoggedOn: boolean;
  readonly isFrozen: boolean;
  /** The number of the next message it sends. */
  readonly nextOut: number;
  /** The number of the next message it expects. */
  readonly nextIn: number;
  /** Connections since its start. */
  readonly connections: number;
}

export interface AcceptorFill {
  readonly execId: string;
  readonly quantity: number;
  readonly price: string;
}

export interface AcceptorOrder {
  readonly clOrdId: string;
  readonly orderId: string;
  readonly symbol: string;
  readonly side: string;
  readonly type: string;
  readonly timeInForce: string;
  readonly price: string;
  readonly account: string;
  readonly quantity: number;
  readonly filled: number;
  readonly leaves: number;
  /** OrdStatus. */
  readonly status: string;
  readonly fills: readonly AcceptorFill[];
}

/** A message on the wire. */
export interface WireMessage {
  readonly at: string;
  readonly direction: 'in' | 'out';
  /** `discarded`: an incoming one that the gateway never took, or an outgoing one that was never written. */
  readonly outcome: 'processed' | 'sent' | 'discarded' | 'raw';
  readonly connection: number;
  /** With FIX's separator, U+0001. */
  readonly message: string;
}

/** Why no acceptor can be had here, in a line, for `skip`; undefined if there is one. In CI it must be there. */
export async function whyNoAcceptor(): Promise<string | undefined> {
  try {
    await findAcceptor();
    return undefined;
  } catch (error) {
    if (process.env.CI || !(error instanceof Advice)) throw error;
    return `No FIX acceptor: ${explain(error).split('\n')[0]}`;
  }
}

/** Starts an exchange's FIX gateway, which ends with this process. */
export async function startAcceptor(options: AcceptorOptions = {}): Promise<Acceptor> {
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const acceptor = new Acceptor(await findAcceptor(), folder, options);
  await acceptor.start();
  return acceptor;
}

/** An exchange's FIX gateway in a process of its own, and its control channel. */
export class Acceptor {
  /** Its log of messages and events, appended over restarts. */
  readonly logPath: string;
  readonly #program: AcceptorProgram;
  readonly #folder: string;
  readonly #options: AcceptorOptions;
  #port = 0;
  #process: KeptProcess | undefined;
  #control: Control | undefined;

  constructor(program: AcceptorProgram, folder: string, options: AcceptorOptions) {
    this.#program = program;
    this.#folder = folder;
    this.#options = options;
    this.logPath = join(folder, 'messages.jsonl');
  }

  /** On 127.0.0.1; the same after a restart. */
  get port(): number {
    return this.#port;
  }

  /** Starts it again after `kill`, with its orders, sequence numbers and messages. */
  async start(): Promise<void> {
    const portsPath = join(this.#folder, 'ports.json');
    rmSync(portsPath, { force: true });
    const {
      version = 'FIXT.1.1',
      sender = 'EXCHANGE',
      target = 'BROKER',
      username = '',
      password = '',
    } = this.#options;
    const values = { folder: this.#folder, port: this.#port, dictionaries: this.#program.dictionaries };
    const kept = await sharedKeeper().start({
      name: 'FIX acceptor',
      command: this.#program.path,
      args: Object.entries({ ...values, version, sender, target, username, password }).map(
        ([name, value]) => `${name}=${value}`,
      ),
      env: { ...process.env, LD_LIBRARY_PATH: this.#program.libraries },
      logPath: join(this.#folder, 'acceptor.log'),
    });
    let ended = false;
    void kept.exited.then(() => {
      ended = true;
    });
    await ready(() => {
      if (!ended && !existsSync(portsPath)) throw new Error('the FIX acceptor does not listen yet');
    }, 30_000);
    if (ended) throw new Error(`The FIX acceptor did not start:\n${lastLines(kept.logPath)}`);
    const { port, controlPort } = JSON.parse(readFileSync(portsPath, 'utf8'));
    this.#port = port;
    this.#process = kept;
    this.#control = await Control.connect(controlPort);
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    this.#control?.close();
    await this.#process?.kill();
  }

  state(): Promise<AcceptorState> {
    return this.#do('state');
  }

  /** All orders that it has, in the order in which they came. */
  async orders(): Promise<readonly AcceptorOrder[]> {
    const { orders } = await this.#do<{ orders: readonly AcceptorOrder[] }>('orders');
    return orders;
  }

  // Sets the treatment of later messages.

  onOrder(rule: OrderRule): Promise<void> {
    return this.#do('rule', rule);
  }

  onCancel(rule: CancelRule): Promise<void> {
    return this.#do('cancels', rule);
  }

  /** Sets the answer to status requests; `unknown`: it says that it does not know the order. */
  onStatusRequest(rule: { as: 'answer' | 'silent' | 'unknown'; afterMs?: number }): Promise<void> {
    return this.#do('statuses', rule);
  }

  /** Sets the answer to a Logon; `logout`: it is answered by a Logout. */
  onLogon(rule: { as: 'accept' | 'logout' | 'disconnect' | 'silent'; text?: string }): Promise<void> {
    return this.#do('logons', rule);
  }

  onNext(rule: NextRule): Promise<void> {
    return this.#do('next', rule);
  }

  /** Fields that the next answer to a Logon has too, as `141=Y|58=text`. */
  onLogonAnswer(fields: string): Promise<void> {
    return this.#do('logonAnswer', { fields });
  }

  openMarket(): Promise<void> {
    return this.#do('market', { open: true });
  }

  closeMarket(): Promise<void> {
    return this.#do('market', { open: false });
  }

  /** Forgets all that was set for later messages. */
  forgetRules(): Promise<void> {
    return this.#do('forget');
  }

  // Events of orders. An order is named by its ClOrdID. Each call returns the ExecID of the report.

  /** Absent: the whole rest, at the order's price. Also of an order that is over, which is a late trade. */
  fill(order: string, trade: { quantity?: number; price?: string } = {}): Promise<string> {
    return this.#report('fill', { order, ...trade });
  }

  cancel(order: string, text = ''): Promise<string> {
    return this.#report('cancel', { order, text });
  }

  expire(order: string, text = ''): Promise<string> {
    return this.#report('expire', { order, text });
  }

  doneForDay(order: string, text = ''): Promise<string> {
    return this.#report('doneForDay', { order, text });
  }

  /** Ends the day without a report: all open orders expire but those that are good till cancelled. */
  endDaySilently(): Promise<void> {
    return this.#do('endDaySilently');
  }

  /** `reason` is ExecRestatementReason. */
  restate(order: string, change: { quantity?: number; reason?: number } = {}): Promise<string> {
    return this.#report('restate', { order, ...change });
  }

  cancelTrade(order: string, execId: string): Promise<string> {
    return this.#report('cancelTrade', { order, execId });
  }

  correctTrade(order: string, trade: { execId: string; quantity: number; price: string }): Promise<string> {
    return this.#report('correctTrade', { order, ...trade });
  }

  /** Reports about an order that nobody has sent: a trade, or another ExecType. */
  reportUnknown(report: { clOrdId?: string; symbol?: string; execType?: string } = {}): Promise<string> {
    return this.#report('reportUnknown', report);
  }

  /**
   * Sends a report once more: `again` with a new number and nothing that says so, `possResend` with PossResend=Y,
   * `possDup` with its old number and PossDupFlag=Y.
   */
  repeat(execId: string, as: 'again' | 'possResend' | 'possDup'): Promise<void> {
    return this.#do('repeat', { execId, as });
  }

  // Events of the session.

  /** Sends any message with the session's next number: its MsgType, and fields as `58=text|45=3`. */
  send(type: string, fields = ''): Promise<void> {
    return this.#do('send', { type, fields });
  }

  /** Writes bytes that no number belongs to. */
  sendBytes(bytes: string): Promise<void> {
    return this.#do('garbage', { bytes });
  }

  /** Leaves out numbers, so that the client finds a gap before the next message. */
  skipOutgoing(count: number): Promise<AcceptorState> {
    return this.#do('skipOutgoing', { count });
  }

  /** Changes the number that it expects next. More: the client's is too low. Less: it is too high. */
  expectIncoming(by: number): Promise<AcceptorState> {
    return this.#do('expectIncoming', { by });
  }

  /** Logs out, and begins both numbers at 1. */
  resetNumbers(): Promise<AcceptorState> {
    return this.#do('resetNumbers');
  }

  logout(text = ''): Promise<void> {
    return this.#do('logout', { text });
  }

  disconnect(): Promise<void> {
    return this.#do('disconnect');
  }

  /** Reads and writes nothing more, and keeps the connection. */
  freeze(): Promise<void> {
    return this.#do('freeze');
  }

  thaw(): Promise<void> {
    return this.#do('thaw');
  }

  // The messages on the wire.

  /** Every message in and out, oldest first, also of runs before a restart. */
  messages(): readonly WireMessage[] {
    return this.#log().flatMap((line) => ('message' in line ? [line as unknown as WireMessage] : []));
  }

  /** QuickFIX's own log of the session. */
  events(): readonly string[] {
    return this.#log().flatMap(({ event }) => (typeof event === 'string' ? [event] : []));
  }

  /** How often each ClOrdID came in a NewOrderSingle, also where the message was then discarded. */
  receivedOrders(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { direction, message } of this.messages()) {
      const id = direction === 'in' && field(message, 35) === 'D' ? field(message, 11) : undefined;
      if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    return counts;
  }

  #log(): readonly Record<string, unknown>[] {
    const text = readFileSync(this.logPath, 'utf8');
    // A line without its line end is still being written.
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  }

  async #report(what: string, values: object): Promise<string> {
    const { execId } = await this.#do<{ execId: string }>(what, values);
    return execId;
  }

  #do<T>(what: string, values: object = {}): Promise<T> {
    if (this.#control === undefined) throw new Error('the FIX acceptor is not started');
    return this.#control.ask(what, values) as Promise<T>;
  }
}

/** The value of a message's field, the first one if it comes more than once. */
export function field(message: string, tag: number): string | undefined {
  return message
    .split('\u0001')
    .find((each) => each.startsWith(`${tag}=`))
    ?.slice(`${tag}=`.length);
}

/** One JSON object a line, each answered by one. */
class Control {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  #lastId = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    createInterface({ input: socket }).on('line', (line) => this.#receive(line));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the FIX acceptor has ended'));
      this.#waiting.clear();
    });
    socket.unref();
  }

  static connect(port: number): Promise<Control> {
    return new Promise((resolve, reject) => {
      const socket = createConnection(port, '127.0.0.1', () => resolve(new Control(socket)));
      socket.once('error', reject);
    });
  }

  ask(what: string, values: object): Promise<unknown> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(new Error('the FIX acceptor has ended'));
      this.#waiting.set(id, { resolve, reject });
      this.#socket.ref();
      this.#socket.write(`${ascii(JSON.stringify({ id, do: what, ...values }))}\n`);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(line: string): void {
    const { id, result, error } = JSON.parse(line);
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#socket.unref();
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(new Error(error));
  }
}

/** A byte a character: the acceptor reads U+00FF as the byte FF, not as UTF-8. */
function ascii(json: string): string {
  return json.replace(/[\u0080-\u00ff]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);
}
