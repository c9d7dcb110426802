import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type ConnectionOptions, Disconnect, FixConnection } from '../../../src/fix-adapter/session/connection.ts';
import type { Outgoing, SessionSettings } from '../../../src/fix-adapter/session/types.ts';
import { Framing } from '../../../src/fix-adapter/wire/framing.ts';
import { encode, type Field, type FixMessage } from '../../../src/fix-adapter/wire/message.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import { utcTimestamp } from '../../../src/fix-adapter/wire/times.ts';

interface Order extends Outgoing {
  readonly id: string;
}

const usual: SessionSettings = {
  ...{ beginString: 'FIX.4.4', senderCompId: 'US', targetCompId: 'THEM', username: undefined },
  ...{ password: () => undefined, heartbeatMs: 10_000, logonTimeoutMs: 5_000, logoutTimeoutMs: 2_000 },
  ...{ resetsByLogon: false, resetsOnLogon: false, sendsNextExpected: false, resendChunk: undefined },
  ...{ gapQuietMs: 500, gapTimeoutMs: 7_000, slowUpMs: 3_000, logonTries: 3, refusedWaitMs: 10 },
  ...{ firstReconnectMs: 10, longestReconnectMs: 40, longestReconnectAfterUpMs: 40 },
};

const headers: readonly number[] = [
  ...[tags.BeginString, tags.BodyLength, tags.MsgType, tags.SenderCompID, tags.TargetCompID, tags.MsgSeqNum],
  ...[tags.PossDupFlag, tags.SendingTime, tags.OrigSendingTime, tags.EncryptMethod, tags.HeartBtInt, tags.CheckSum],
];

/** The changes of a conversation from the usual one. */
export interface Changes extends Partial<Pick<ConnectionOptions<Order>, 'resets' | 'hasMissed' | 'newPassword'>> {
  readonly settings?: Partial<SessionSettings>;
  readonly nextOut?: number;
  readonly nextIn?: number;
  /** The commits of received messages that fail, by their count from 1. */
  readonly failing?: readonly number[];
  /** Whether the session is stopped before the connection begins. */
  readonly stopped?: boolean;
  /** Shows what a keeper of passwords is told. */
  readonly showsAnswers?: boolean;
}

/**
 * A connection without a socket, spoken with step by step. A step and what comes of it are one line each: `8 5 43=Y` is a message
 * of the other side, `+1000` are milliseconds that pass, `send a` is an order, `stop` ends the session, `over` its
 * hours, `lose` its lease, and `close` its line; `garbage` are bytes, and from `hold` to `release` the
 * record does not answer what is sent. Of what comes, `>` is a message that is written, `out 3 in 2` the commit of its number before it,
 * `in 3: 8.2` a commit of received messages (`over`: others were passed over), `note` an entry of the message log,
 * which stand last because they are written without waiting.
 */
export class Conversation {
  readonly #told: string[] = [];
  readonly #noted: string[] = [];
  readonly #stopping = new AbortController();
  readonly #connection: FixConnection<Order>;
  readonly #socket: Duplex;
  #commits = 0;
  #isLost = false;
  #isOver = false;
  /** Commits of what is sent are answered when it is resolved. */
  #held: { readonly promise: Promise<void>; readonly release: () => void } | undefined;
  #clock = 0;

  constructor(changes: Changes = {}) {
    mock.method(performance, 'now', () => this.#clock);
    mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
    const framing = new Framing();
    this.#socket = new Duplex({
      read() {},
      write: (chunk: Buffer, _, done) => {
        for (const one of framing.push(chunk)) if ('message' in one) this.#tell(`> ${shortly(one.message)}`);
        done();
      },
      destroy: (error, done) => {
        this.#tell('closed');
        done(error);
      },
    });
    const { settings, nextOut = 1, nextIn = 1, failing = [], stopped = false, showsAnswers = false, ...more } = changes;
    let nth = 0n;
    this.#connection = new FixConnection<Order>({
      socket: this.#socket,
      settings: {
        ...usual,
        ...(showsAnswers && {
          passwords: {
            next: () => assert.fail(),
            answered: async ({ isAccepted, sessionStatus = 'none' }) =>
              this.#tell(`password ${isAccepted ? 'accepted' : 'refused'} ${sessionStatus}`),
          },
        }),
        ...settings,
      },
      record: {
        numbers: () => assert.fail(),
        startDay: () => assert.fail(),
        sending: async (messages, out, storedTo) => {
          this.#tell([`out ${out} in ${storedTo}`, ...messages.map(({ message: { id } }) => id)].join(' '));
          await this.#held?.promise;
          return [];
        },
        unwritten: async (messages) => this.#tell(`unwritten ${messages.map(({ id }) => id).join(' ')}`),
        received: async (messages, next, passedOver) => {
          this.#commits += 1;
          if (failing.includes(this.#commits)) throw new Error('the record is away');
          const what = messages.map((message) => briefly(message)).join(' ');
          this.#tell(`in ${next}${what === '' ? '' : `: ${what}`}${passedOver ? ' over' : ''}`);
        },
      },
      numbers: { nextOut, nextIn, startedAt: 0 },
      resets: false,
      now: () => this.#clock,
      mayWrite: () => !this.#isLost,
      isInHours: () => !this.#isOver,
      hasMissed: false,
      events: {
        up: () => this.#tell('up'),
        down: () => this.#tell('down'),
        missed: () => this.#tell('missed'),
        gapFilled: (from, to, wasUp) => this.#tell(`filled ${from}-${to}${wasUp ? ' up' : ''}`),
        trouble: (what) => this.#tell(`trouble ${what}`),
      },
      log: { info() {}, warn() {}, error() {}, debug() {} } as never,
      tap: {
        place: () => {
          nth += 1n;
          return { nth, at: 0 };
        },
        note: ({ direction, type, number, outcome }) => {
          if (direction === 'in') this.#noted.push(`note ${type}.${number} ${outcome}`);
        },
      },
      ...more,
    });
    if (stopped) this.#stopping.abort();
    void this.#connection.run(this.#stopping.signal).then(
      () => this.#tell('ended'),
      (error: Error) => this.#tell(`ended: ${error.name}: ${error instanceof Disconnect ? error.told : error.message}`),
    );
  }

  get connection(): FixConnection<Order> {
    return this.#connection;
  }

  /** The steps and all that came of them, as `[step, what came]`. */
  static async of(steps: readonly string[], changes: Changes = {}): Promise<readonly (readonly [string, string])[]> {
    const conversation = new Conversation(changes);
    const lines: [string, string][] = [];
    for (const step of steps) lines.push([step, await conversation.step(step)]);
    await conversation.end();
    return lines;
  }

  async step(step: string): Promise<string> {
    const [word = '', next = ''] = step.split(' ');
    if (word.startsWith('+')) await this.#pass(Number(word.slice(1)));
    else if (word === 'begin') await this.#settle();
    else if (word === 'stop') this.#stopping.abort();
    else if (word === 'lose') this.#isLost = true;
    else if (word === 'over') this.#isOver = true;
    else if (word === 'hold') this.#hold();
    else if (word === 'release') this.#held?.release();
    else if (word === 'close') this.#socket.push(null);
    else if (word === 'break') this.#socket.destroy(new Error('the line broke'));
    else if (word === 'send') this.#send(next);
    else if (word === 'state') this.#tell(this.#connection.state.state);
    else
      this.#socket.push(
        step
          .split(' & ')
          .map((each) => this.#bytes(each))
          .reduce((a, b) => Buffer.concat([a, b])),
      );
    await this.#settle();
    return [...this.#told.splice(0), ...this.#noted.splice(0)].join(', ');
  }

  /** Ends the connection, if it has not ended, and gives the clocks back. */
  async end(): Promise<void> {
    this.#socket.destroy();
    await this.#settle();
    mock.timers.reset();
    mock.restoreAll();
  }

  #bytes(text: string): Buffer {
    if (text === 'garbage') return Buffer.from('no message');
    if (text === 'long') return Buffer.from('8=FIX.4.4\x019=99999999\x01'.padEnd(60, 'x'));
    const [type = '', number = '', ...more] = text.split(' ');
    const fields = more.map((each): Field => {
      const [tag = '', value = ''] = each.split('=');
      return [Number(tag), value.replaceAll('_', ' ')];
    });
    const header: Field[] = [
      ...([
        [tags.MsgType, type],
        [tags.SenderCompID, 'THEM'],
        [tags.TargetCompID, 'US'],
      ] as const),
      ...([
        [tags.MsgSeqNum, number],
        [tags.SendingTime, utcTimestamp(this.#clock)],
      ] as const),
    ];
    const given = new Map(fields);
    const all = [...header.filter(([tag]) => !given.has(tag)), ...fields];
    return encode('FIX.4.4', all);
  }

  #send(id: string): void {
    const settled = (outcome: string) => this.#tell(`${id} ${outcome}`);
    this.#connection.send({ id, type: 'D', fields: [[tags.ClOrdID, id]], settled });
  }

  #hold(): void {
    let release = () => {};
    const promise = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#held = { promise, release };
  }

  async #pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      const some = Math.min(100, left);
      this.#clock += some;
      mock.timers.tick(some);
      await this.#settle();
    }
  }

  async #settle(): Promise<void> {
    for (let turns = 0; turns < 12; turns += 1) await turn();
  }

  #tell(what: string): void {
    this.#told.push(what);
  }
}

/** A received message, with the type of what it rejects. */
function briefly(message: FixMessage): string {
  const rejected = message.get(tags.RefMsgType);
  return `${message.type}.${message.number}${rejected === undefined ? '' : ` of ${rejected}`}`;
}

function shortly(message: FixMessage): string {
  const fields = message.fields.filter(([tag]) => !headers.includes(tag)).map(([tag, value]) => `${tag}=${value}`);
  return [`${message.type}.${message.number}`, ...(message.isPossDup ? ['again'] : []), ...fields].join(' ');
}
