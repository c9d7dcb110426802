import { createConnection, type Socket } from 'node:net';
import { eventually } from '../eventually.ts';
import { type AcceptorOptions, field } from '../quickfix.ts';

type Fields = readonly (readonly [tag: number, value: string | number])[];

const separator = '\u0001';

/** A FIX client without a session: it sends what a test says, and shows what came. */
export class RawClient {
  /** Every whole message that came, oldest first. */
  readonly received: string[] = [];
  /** All that came, byte by byte. */
  bytes = '';
  isClosed = false;
  /** The other side sends no more. The client then closes, unless it holds the connection open. */
  isEnded = false;
  holdsOpen = false;
  /** The number of the next message. */
  nextOut = 1;
  readonly #socket: Socket;
  readonly #options: AcceptorOptions;
  #unread = '';
  #shown = 0;

  private constructor(socket: Socket, options: AcceptorOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.setEncoding('latin1');
    socket.on('data', (text) => this.#receive(String(text)));
    socket.on('error', () => undefined);
    socket.on('end', () => {
      this.isEnded = true;
      if (!this.holdsOpen) socket.destroy();
    });
    socket.on('close', () => {
      this.isClosed = true;
    });
  }

  static connect(port: number, options: AcceptorOptions = {}): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const socket = createConnection({ port, host: '127.0.0.1', allowHalfOpen: true }, () => {
        resolve(new RawClient(socket, options));
      });
      socket.once('error', reject);
    });
  }

  /** Connects and logs on. `nextOut` is the number of the Logon. */
  static async logOn(port: number, options: AcceptorOptions = {}, nextOut = 1): Promise<RawClient> {
    const client = await RawClient.connect(port, options);
    client.nextOut = nextOut;
    client.sendLogon();
    await client.next('A');
    return client;
  }

  sendLogon(further: Fields = []): void {
    const { version = 'FIXT.1.1', username = '', password = '' } = this.#options;
    const login: Fields =
      username === ''
        ? []
        : [
            [553, username],
            [554, password],
          ];
    const applVerId: Fields = version === 'FIXT.1.1' ? [[1137, 9]] : [];
    this.send('A', [[98, 0], [108, 30], ...login, ...applVerId, ...further]);
  }

  /** Sends a message with the next number, or with one of its own. */
  send(type: string, fields: Fields = [], number = this.nextOut++): void {
    const { version = 'FIXT.1.1', sender = 'EXCHANGE', target = 'BROKER' } = this.#options;
    const header: Fields = [
      [35, type],
      [49, target],
      [56, sender],
      [34, number],
      [52, timestamp()],
    ];
    const body = [...header, ...fields].map(([tag, value]) => `${tag}=${value}${separator}`).join('');
    const start = `8=${version}${separator}9=${Buffer.byteLength(body, 'latin1')}${separator}${body}`;
    const sum = [...Buffer.from(start, 'latin1')].reduce((total, byte) => total + byte, 0) % 256;
    this.#socket.write(`${start}10=${String(sum).padStart(3, '0')}${separator}`, 'latin1');
  }

  /** A limit order for 100 shares at 12.50, for the day. */
  sendOrder(clOrdId: string, symbol = 'ACME', further: Fields = []): void {
    const own = new Map<number, string | number>([
      ...([
        [11, clOrdId],
        [55, symbol],
        [54, 1],
        [60, timestamp()],
        [38, 100],
        [40, 2],
        [44, '12.50'],
        [59, 0],
      ] as const),
      ...further,
    ]);
    this.send('D', [...own]);
  }

  sendCancel(clOrdId: string, order: string, symbol = 'ACME'): void {
    this.send('F', [
      [41, order],
      [11, clOrdId],
      [55, symbol],
      [54, 1],
      [60, timestamp()],
      [38, 100],
    ]);
  }

  sendStatusRequest(clOrdId: string, request: string, symbol = 'ACME'): void {
    this.send('H', [
      [11, clOrdId],
      [790, request],
      [55, symbol],
      [54, 1],
    ]);
  }

  /** The next message of a type that was not returned before; those before it are passed over. */
  next(type: string): Promise<string> {
    return eventually(() => {
      const at = this.received.findIndex((message, index) => index >= this.#shown && field(message, 35) === type);
      if (at < 0) throw new Error(`no message of type ${type}; there were: ${this.received.map(readable).join('\n')}`);
      this.#shown = at + 1;
      return this.received[at] as string;
    });
  }

  /** The next ExecutionReport, in short: ExecType, OrdStatus, CumQty and LeavesQty. */
  async nextReport(): Promise<string> {
    const message = await this.next('8');
    return [150, 39, 14, 151].map((tag) => field(message, tag)).join(' ');
  }

  closed(): Promise<void> {
    return eventually(() => {
      if (!this.isClosed) throw new Error('the connection is still open');
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(text: string): void {
    this.bytes += text;
    this.#unread += text;
    for (;;) {
      const start = this.#unread.indexOf('8=FIX');
      const end = start < 0 ? null : new RegExp(`${separator}10=\\d{3}${separator}`).exec(this.#unread.slice(start));
      if (end === null) return;
      const length = end.index + end[0].length;
      this.received.push(this.#unread.slice(start, start + length));
      this.#unread = this.#unread.slice(start + length);
    }
  }
}

/** The values of some fields of a message. */
export function fieldsOf(message: string, ...tags: readonly number[]): (string | undefined)[] {
  return tags.map((tag) => field(message, tag));
}

function readable(message: string): string {
  return message.replaceAll(separator, '|');
}

/** UTCTimestamp, now. */
function timestamp(): string {
  return new Date().toISOString().replaceAll('-', '').replace('T', '-').replace('Z', '');
}
