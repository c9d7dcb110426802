import assert from 'node:assert/strict';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';
import { parseDays, type Schedule } from '../../../src/fix-adapter/session/schedule.ts';
import { FixSession } from '../../../src/fix-adapter/session/session.ts';
import type {
  NumberedMessage,
  Outgoing,
  SessionRecord,
  SessionSettings,
  SessionTrouble,
} from '../../../src/fix-adapter/session/types.ts';
import type { Field, FixMessage } from '../../../src/fix-adapter/wire/message.ts';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { utcTimestamp } from '../../../src/fix-adapter/wire/times.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { eventually } from '../eventually.ts';
import { Exchange } from './exchange.ts';

/** An order of a test. */
export interface Order extends Outgoing {
  readonly id: string;
}

/** A record in memory, which outlives its sessions. */
export class MemoryRecord implements SessionRecord<Order> {
  nextOut = 1;
  nextIn = 1;
  startedAt = 0;
  readonly orders = new Map<string, { number: number; isUnwritten: boolean }>();
  readonly applied: FixMessage[] = [];
  /** The stored numbers between which messages were passed over. */
  readonly passedOver: [from: number, to: number][] = [];
  isCommitting = false;
  failsAt: 'sending' | 'received' | undefined;
  /** Waits between a commit and its answer. */
  latency: () => Promise<unknown> = async () => {};

  async numbers() {
    return { nextOut: this.nextOut, nextIn: this.nextIn, startedAt: this.startedAt };
  }

  async startDay(startedAt: number) {
    Object.assign(this, { startedAt, nextOut: 1, nextIn: 1 });
    return this.numbers();
  }

  async sending(messages: readonly NumberedMessage<Order>[], nextOut: number): Promise<readonly Order[]> {
    if (this.failsAt === 'sending' && messages.length > 0) {
      this.failsAt = undefined;
      throw new Error('the record is away');
    }
    for (const { message, number } of messages) {
      assert.ok(!this.orders.has(message.id));
      this.orders.set(message.id, { number, isUnwritten: false });
    }
    this.nextOut = nextOut;
    this.isCommitting = true;
    await this.latency();
    this.isCommitting = false;
    return [];
  }

  async unwritten(messages: readonly Order[]): Promise<void> {
    for (const { id } of messages) Object.assign(this.orders.get(id) ?? {}, { isUnwritten: true });
  }

  async received(messages: readonly FixMessage[], nextIn: number, passedOver: boolean): Promise<void> {
    if (this.failsAt === 'received' && (messages.length > 0 || passedOver)) {
      this.failsAt = undefined;
      throw new Error('the record is away');
    }
    this.applied.push(...messages);
    if (passedOver) this.passedOver.push([this.nextIn, nextIn]);
    this.nextIn = nextIn;
  }
}

export const settings: SessionSettings = {
  beginString: 'FIXT.1.1',
  senderCompId: 'MARINA',
  targetCompId: 'EXCHANGE',
  username: 'marina',
  password: () => 'secret',
  heartbeatMs: 1_000,
  resetsByLogon: false,
  resetsOnLogon: false,
  sendsNextExpected: false,
  resendChunk: undefined,
  logonTries: 3,
  refusedWaitMs: 10,
  logonTimeoutMs: 700,
  logoutTimeoutMs: 500,
  gapTimeoutMs: 700,
  gapQuietMs: 60,
  slowUpMs: 300,
  firstReconnectMs: 10,
  longestReconnectMs: 40,
  longestReconnectAfterUpMs: 40,
};

/** A session in every second of every day. */
export const always: Schedule = {
  ...{ days: parseDays('mon-sun'), start: '00:00', end: '23:59:59', calendar: new Map() },
};

/** The parts of a session that a test changes. */
export interface Changed {
  readonly settings?: Partial<SessionSettings>;
  readonly record?: MemoryRecord;
  readonly exchange?: Exchange;
  readonly schedule?: Schedule;
  readonly addresses?: readonly string[];
  readonly mayWrite?: () => boolean;
  readonly now?: () => number;
  readonly connect?: (exchange: Exchange, address: string) => Promise<Duplex>;
  readonly onUp?: () => void;
}

/** A session with an exchange, which ends with the test. */
export async function begin(context: TestContext, changed: Changed = {}) {
  const exchange = changed.exchange ?? (await Exchange.start());
  const record = changed.record ?? new MemoryRecord();
  const stopping = new AbortController();
  const troubles: SessionTrouble[] = [];
  const filled: [from: number, to: number, wasUp: boolean][] = [];
  const missed: true[] = [];
  const states: ('up' | 'down')[] = [];
  const logged: string[] = [];
  const { now = Date.now } = changed;
  const session = new FixSession<Order>({
    settings: { ...settings, ...changed.settings },
    schedule: changed.schedule ?? always,
    addresses: changed.addresses ?? ['first'],
    record,
    connect: async (address) => (changed.connect ?? connectTo)(exchange, address),
    now,
    mayWrite: changed.mayWrite ?? (() => true),
    events: {
      up: () => {
        states.push('up');
        changed.onUp?.();
      },
      down: () => void states.push('down'),
      gapFilled: (from, to, wasUp) => void filled.push([from, to, wasUp]),
      missed: () => void missed.push(true),
      trouble: (what) => void troubles.push(what),
    },
    log: createLogger({
      name: 'fix',
      level: 'debug',
      destination: { write: (line: string) => void logged.push(line) },
    }),
  });
  const running = session.run(stopping.signal);
  const stop = async () => {
    stopping.abort();
    await running;
  };
  context.after(async () => {
    await stop();
    await exchange.close();
  });
  const up = () => eventually(() => assert.ok(session.isUp));
  const send = (id: string, notAfterMs = now() + 10_000) =>
    new Promise<string>((settled) => {
      const fields = [[tags.ClOrdID, id] as const, [tags.OrderQty, '1'] as const];
      session.send({ id, type: messageTypes.NewOrderSingle, fields, notAfterMs, settled });
    });
  const { signal } = stopping;
  return { exchange, session, record, troubles, filled, missed, states, logged, signal, up, send, stop };
}

async function connectTo({ port }: Exchange): Promise<Duplex> {
  return connect({ host: '127.0.0.1', port, noDelay: true });
}

/** The messages of a type that the exchange got. */
export function ofType(exchange: Exchange, type: string): FixMessage[] {
  return exchange.received.filter((message) => message.type === type);
}

/** The texts of the messages of type B that could be read. */
export function textsOf(record: MemoryRecord): (string | undefined)[] {
  const news = record.applied.filter(({ type, isWhole }) => type === 'B' && isWhole);
  return news.map((one) => one.get(tags.Text));
}

const separator = '\x01';
const withoutSum = new RegExp(
  `^(8=[^${separator}]+)${separator}9=\\d+${separator}(.*?)(?:10=\\d{3}${separator})?$`,
  's',
);

/** A message with the next number and a body of the test's own bytes. */
export function textMessage(exchange: Exchange, type: string, body: string, counts = 1): Buffer {
  const number = exchange.nextOut;
  exchange.nextOut += counts;
  const header: readonly Field[] = [
    [tags.SenderCompID, 'EXCHANGE'],
    [tags.TargetCompID, 'MARINA'],
    [tags.MsgSeqNum, String(number)],
    [tags.SendingTime, utcTimestamp(Date.now())],
  ];
  const rest = header.map(([tag, value]) => `${tag}=${value}${separator}`).join('');
  return withSum(`8=FIXT.1.1${separator}9=0${separator}35=${type}${separator}${rest}${body}`);
}

/** The same message with its right length and sum. */
export function withSum(text: string): Buffer {
  const [, begin = '', body = ''] = withoutSum.exec(text) ?? [];
  const start = `${begin}${separator}9=${body.length}${separator}${body}`;
  const sum = Buffer.from(start, 'latin1').reduce((all, byte) => all + byte, 0) % 256;
  return Buffer.from(`${start}10=${String(sum).padStart(3, '0')}${separator}`, 'latin1');
}
