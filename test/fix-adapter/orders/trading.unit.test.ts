/** Orders over a session that the test holds and a record in memory: what their callers are answered, and what is left of them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { StatusAnswer } from '../../../src/fix-adapter/orders/apply-messages.ts';
import type { OwnMessage, SendOutcome } from '../../../src/fix-adapter/orders/own-message.ts';
import { Trading, type TradingOptions } from '../../../src/fix-adapter/orders/trading.ts';
import { RpcError } from '../../../src/fix-adapter/service/rpc.ts';
import type { FixOrder, FixReportKind } from '../../../src/fix-adapter/store/table.ts';
import { MissingValue } from '../../../src/fix-adapter/template/render.ts';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { OrderType, Side, SubmitOrderRequestSchema, TimeInForce } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { fixOrder } from '../../support/fix-order.ts';

const shortly = 20;

class Desk {
  isUp = true;
  hasTurns = true;
  hasValues = true;
  outcome: SendOutcome = 'written';
  /** The report that comes of each order, before the session says what became of its message. */
  comes: FixReportKind | undefined = 'accepted';
  /** The order as the record has it. */
  order: FixOrder | undefined;
  isStored = false;
  restored = false;
  refusal: boolean | Error = true;
  refused: string[] = [];
  /** The answer of the exchange to each question; undefined: none. */
  answer: StatusAnswer | undefined;
  asked = 0;
  turns = 0;
  /** Called when the record was asked about the order. */
  onRead: () => void = () => {};
  /** When the record answers what the order is. */
  reading: Promise<unknown> = Promise.resolve();
  streamed = 0;
  readonly trading: Trading;

  constructor(absenceProofMs = 0) {
    const desk = this;
    const store = {
      order: async () => {
        const { order } = this;
        this.onRead();
        await this.reading;
        return order;
      },
      inDoubt: async () => (this.order === undefined ? [] : [this.order]),
      absent: async () => {
        this.order = fixOrder({ state: 'unsent' });
        return true;
      },
      isStored: async () => this.isStored,
      numbers: async () => ({ restored: this.restored, startedAt: 7 }),
      refuse: async ({ id }: FixOrder) => {
        if (this.refusal instanceof Error) throw this.refusal;
        this.refused.push(id);
        return this.refusal;
      },
      received: async () => ({
        reports: this.comes === undefined ? [] : [{ orderId: 'ord_a', kind: this.comes }],
        findings: [],
        result: { statuses: [], refusedCancels: [], isQuestionRefused: false },
      }),
      note: async () => false,
    };
    const options: Partial<TradingOptions> = {
      store: store as never,
      session: {
        get isUp() {
          return desk.isUp;
        },
        send: (message) => this.#send(message),
      },
      style: {
        ...{ symbols: new Map(), nameLength: 70, toPrice: String },
        more: () => {
          if (!this.hasValues) throw new MissingValue('{account.id}');
          return [];
        },
      },
      throttle: {
        take: async () => {
          if (this.hasTurns) this.turns += 1;
          return this.hasTurns;
        },
        stopping: new AbortController().signal,
      } as never,
      ...{ now: () => 0, dayStartedAt: () => 0, requestId: () => `q${this.asked}`, asksMassStatus: false },
      ...{ absenceProofMs, cancelTimeoutMs: 1_000, messagesPerSecond: 100, answerTimeoutMs: shortly },
      ...{ timeOf: () => 0, weighing: {} as never },
      log: createLogger({ name: 'desk', level: 'silent' }),
      onReports: () => {
        this.streamed += 1;
      },
      onFinding: () => {},
    };
    this.trading = new Trading(options as TradingOptions);
  }

  #send(message: OwnMessage): void {
    this.turns -= 1;
    if (message.type === messageTypes.OrderStatusRequest) {
      this.asked += 1;
      const requestId = message.fields.find(([tag]) => tag === tags.OrdStatusReqID)?.[1] ?? '';
      message.settled('written');
      const statuses = [{ orderId: 'ord_a', requestId, isOfMass: false, answer: this.answer ?? 'known' }];
      if (this.answer !== undefined) {
        this.trading.questions.answered({ statuses, refusedCancels: [], isQuestionRefused: false });
      }
      return;
    }
    void this.trading.received([], 1, false);
    message.settled(this.outcome);
  }

  /** Submits the order, and returns the kind of its report or the status of its error. */
  async submit(deadlineMs = shortly): Promise<string> {
    const request = create(SubmitOrderRequestSchema, {
      ...{ clientOrderId: 'ord_a', account: 'NG-1', symbol: 'MTNN', side: Side.BUY, quantity: 10n },
      ...{ type: OrderType.LIMIT, timeInForce: TimeInForce.DAY, priceKobo: 100n, notAfter: timestampFromMs(5_000) },
    });
    return statusOf(this.trading.submit(request, deadlineMs).then(({ kind }) => kind));
  }

  settle(): Promise<string> {
    return statusOf(this.trading.settle('ord_a'));
  }
}

async function statusOf(done: Promise<string>): Promise<string> {
  return done.catch((error: unknown) => {
    assert.ok(error instanceof RpcError);
    return `${status[error.code]}: ${error.message}`;
  });
}

const never = /^FAILED_PRECONDITION: the order was not sent and never will be/;
const seen = /^ALREADY_EXISTS/;

describe('an order over a FIX session', () => {
  /** Each way in which an order ends for its caller: the circumstances, the answer, and whether the record refuses the id for ever. */
  const ends: Readonly<Record<string, readonly [Partial<Desk>, RegExp, isRefused: boolean]>> = {
    accepted: [{}, /^accepted$/, false],
    rejected: [{ comes: 'rejected' }, /^rejected$/, false],
    'without a session': [{ isUp: false }, never, true],
    'without a value for its template': [{ hasValues: false }, never, true],
    'without a turn in time': [{ hasTurns: false }, never, true],
    'given to a session that has ended': [{ outcome: 'unrecorded', comes: undefined }, never, true],
    'not written': [{ outcome: 'unwritten', comes: undefined }, never, false],
    'with the id of an earlier one': [{ outcome: 'refused', comes: undefined }, seen, false],
    'of an unknown commit': [{ outcome: 'unknown', comes: undefined }, /^UNAVAILABLE: whether it was stored/, false],
    'without an answer': [{ comes: undefined }, /^DEADLINE_EXCEEDED/, false],
    'that only traded by its deadline': [{ comes: 'trade' }, /^DEADLINE_EXCEEDED/, false],
    'refused although the record has it': [{ isUp: false, refusal: false }, seen, true],
    'whose refusal cannot be stored': [
      { isUp: false, refusal: new Error('away') },
      /^UNAVAILABLE: .*not be stored/,
      false,
    ],
  };
  for (const [what, [circumstances, answer, isRefused]] of Object.entries(ends)) {
    it(`an order ${what} is answered once, is not being taken any more, and leaves no turn behind`, async () => {
      const desk = Object.assign(new Desk(), circumstances);
      for (let times = 1; times <= 2; times += 1) {
        assert.match(await desk.submit(), answer);
        assert.equal(desk.refused.length, isRefused ? times : 0);
        assert.equal(desk.turns, 0);
        assert.equal(await desk.settle(), 'absent', 'the record does not have it, and nobody takes it');
      }
    });
  }

  it('an order that is being taken is taken once, and is not said to be absent meanwhile', async () => {
    const desk = Object.assign(new Desk(), { comes: undefined });
    const first = desk.submit();
    assert.match(await desk.submit(), seen);
    assert.match(await desk.settle(), /^UNAVAILABLE: the order is being taken/);
    assert.match(await first, /^DEADLINE_EXCEEDED/);
    // The record reads it before it is stored, and answers after that.
    desk.reading = desk.submit();
    assert.match(await desk.settle(), /^UNAVAILABLE: the order is being taken/);
  });

  it('an order that a question proves absent is answered as one that was never sent', async () => {
    const desk = Object.assign(new Desk(1), { comes: undefined, answer: 'unknown', order: fixOrder() });
    const submitting = desk.submit(10_000);
    await desk.trading.questions.gapFilled(12, 12, false);
    assert.equal(await desk.settle(), 'absent');
    assert.match(await submitting, never);
  });

  it('the streams of reports are woken if there are reports, and not otherwise', async () => {
    const desk = new Desk();
    await desk.trading.received([], 1, false);
    desk.comes = undefined;
    await desk.trading.received([], 1, false);
    assert.equal(desk.streamed, 1);
  });
});

describe('a look-up of an order over a FIX session', () => {
  const away = /^UNAVAILABLE/;
  const cases: readonly (readonly [string, Partial<Desk>, Partial<FixOrder> | undefined, RegExp, asked: number])[] = [
    ['that was never sent', {}, { state: 'unsent' }, /^absent$/, 0],
    ['that was never stored', {}, undefined, /^absent$/, 0],
    ['that a server which lags does not have', { isStored: true }, undefined, away, 0],
    ['that a restored record may have lost', { restored: true }, undefined, away, 0],
    ['that is filled', { isUp: false }, { state: 'final', filled: 100n }, /^found$/, 0],
    ['that ended without all its shares', { answer: 'known' }, { state: 'final', filled: 99n }, /^found$/, 1],
    ['that lives', { answer: 'known' }, { state: 'open' }, /^found$/, 1],
    ['that lives, without a session', { isUp: false }, { state: 'open' }, away, 0],
    ['that lives, without an answer', {}, { state: 'open' }, away, 1],
    ['that lives, by an unclear answer', { answer: 'unclear' }, { state: 'open' }, away, 1],
    ['of which trades are missing', { answer: 'trades missing' }, { state: 'open' }, away, 1],
    ['in doubt that the exchange does not know', { answer: 'unknown' }, { state: 'sending' }, away, 1],
  ];
  for (const [what, circumstances, order, answer, asked] of cases) {
    it(`a look-up of an order ${what} is answered by ${answer.source}, after ${asked} questions`, async () => {
      const desk = Object.assign(new Desk(), circumstances);
      desk.order = order && fixOrder(order);
      assert.match(await desk.settle(), answer);
      assert.equal(desk.asked, asked);
    });
  }

  for (const [state, answer] of [
    ['unsent', 'absent'],
    ['open', 'found'],
    ['final', 'found'],
  ] as const) {
    it(`a look-up is answered by what the record has after the question: ${answer} if the order is ${state} then`, async () => {
      const desk = Object.assign(new Desk(), { answer: 'known' });
      desk.order = fixOrder();
      desk.onRead = () => {
        desk.order = fixOrder({ state });
      };
      assert.equal(await desk.settle(), answer);
    });
  }
});
