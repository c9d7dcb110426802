/** Questions about orders, over connections that break and an exchange that answers late or never. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { StatusAnswer } from '../../../src/fix-adapter/orders/apply-messages.ts';
import type { OwnMessage } from '../../../src/fix-adapter/orders/own-message.ts';
import { Questions, type QuestionsOptions } from '../../../src/fix-adapter/orders/questions.ts';
import type { Finding, FixOrder } from '../../../src/fix-adapter/store/table.ts';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { eventually } from '../../support/eventually.ts';
import { fixOrder } from '../../support/fix-order.ts';

/** A desk of questions over a record in memory and a line that a test holds. */
class Desk {
  readonly asked: { readonly id: string; readonly orderId: string }[] = [];
  readonly findings: Finding[] = [];
  readonly absent: string[] = [];
  readonly orders = new Map<string, FixOrder>();
  isUp = true;
  isRecordAway = false;
  isRefused = false;
  /** The record cannot be asked about one order. */
  isOrderAway = false;
  /** Whether the record accepts a proof of absence. */
  provesAbsent = true;
  hasTurns = true;
  /** How often all orders were asked about at once. */
  massTimes = 0;
  /** Called for each question that was written. */
  onAsked: (orderId: string, requestId: string) => void = () => {};
  readonly questions: Questions;
  #ids = 0;

  constructor(more: Partial<QuestionsOptions> = {}) {
    const list = (holds: (order: FixOrder) => boolean) => async () => {
      if (this.isRecordAway) throw new Error('the record is away');
      return [...this.orders.values()].filter(holds);
    };
    const page = (holds: (order: FixOrder) => boolean) => async (limit: number, after?: FixOrder) => {
      const all = await list(holds)();
      return all.slice(after === undefined ? 0 : all.indexOf(after) + 1).slice(0, limit);
    };
    const store = {
      inDoubt: page(({ state }) => state === 'sending'),
      mustAsk: page(({ mustAsk }) => mustAsk),
      notEnded: list(({ state }) => state === 'open'),
      numbers: async () => ({ startedAt: 7, restored: false }),
      order: async (id: string) => {
        if (this.isOrderAway) throw new Error('the record is away');
        return this.orders.get(id);
      },
      absent: async (id: string) => this.absent.push(id) > 0 && this.provesAbsent,
      note: async (finding: Finding) => this.findings.push(finding) > 0,
    };
    const send = (message: OwnMessage) => {
      const field = (tag: number) => message.fields.find(([each]) => each === tag)?.[1] ?? '';
      const [id, orderId] = [field(tags.OrdStatusReqID), field(tags.ClOrdID)];
      if (message.type === messageTypes.OrderStatusRequest) this.asked.push({ id, orderId });
      else this.massTimes += 1;
      message.settled(this.isUp && !this.isRefused ? 'written' : 'unrecorded');
      this.onAsked(orderId, id);
    };
    const desk = this;
    this.questions = new Questions({
      store: store as never,
      session: {
        get isUp() {
          return desk.isUp;
        },
        send,
      },
      style: { symbols: new Map(), more: () => [], nameLength: 70, toPrice: String },
      throttle: { take: async () => this.hasTurns, stopping: new AbortController().signal } as never,
      now: () => 1_000_000,
      dayStartedAt: () => 500_000,
      requestId: () => `q${++this.#ids}`,
      asksMassStatus: false,
      absenceProofMs: 60,
      messagesPerSecond: 10_000,
      answerTimeoutMs: 100,
      log: createLogger({ name: 'desk', level: 'silent' }),
      onFinding: () => {},
      onAbsent: () => {},
      ...more,
    });
  }

  add(id: string, more: Partial<FixOrder> = {}): FixOrder {
    const order = fixOrder({ id, clOrdId: id, ...more });
    this.orders.set(id, order);
    return order;
  }

  answer(orderId: string, requestId: string, answer: StatusAnswer, isOfMass = false): void {
    this.questions.answered({
      statuses: [{ orderId, requestId, isOfMass, answer }],
      refusedCancels: [],
      isQuestionRefused: false,
    });
  }

  async askedTimes(count: number): Promise<void> {
    await eventually(() => assert.equal(this.asked.length, count));
  }
}

describe('a question about an order', () => {
  it('stays open when its time is over, until an answer names it or there are as many answers as questions', async () => {
    const desk = new Desk();
    const order = desk.add('ord_a');
    await desk.questions.ask(order);
    const second = desk.questions.ask(order);
    await desk.askedTimes(2);
    const [first = '', other = ''] = desk.asked.map(({ id }) => id);
    const leaves = (requestId: string) => desk.questions.leavesNone('ord_a', requestId);
    assert.deepEqual([leaves(first), leaves(other), leaves('')], [false, false, false]);
    desk.answer('ord_a', other, 'known');
    assert.equal(await second, 'known');
    assert.deepEqual([leaves(first), leaves(other), leaves('')], [true, false, true], 'the first one is left');
    desk.answer('ord_a', '', 'known');
    assert.equal(leaves('unknown'), true, 'none is left');
  });

  it('a question that was not written is not open, so that later answers leave none', async () => {
    const desk = new Desk();
    const order = desk.add('ord_a');
    desk.isRefused = true;
    for (let times = 0; times < 2; times += 1) await desk.questions.ask(order);
    desk.isRefused = false;
    const asking = desk.questions.ask(order);
    await desk.askedTimes(3);
    assert.deepEqual([desk.questions.leavesNone('ord_a', 'q3'), desk.questions.leavesNone('ord_a', '')], [true, true]);
    desk.answer('ord_a', 'q3', 'known');
    assert.equal(await asking, 'known');
  });

  /** How long after an order was written each question about it is asked; only the last one is answered. */
  const certified = 60_000;
  const timesOfQuestions: readonly (readonly number[])[] = [
    [0],
    [certified - 1],
    [certified],
    [0, certified],
    [certified - 1, certified],
    [certified, certified + 1],
    [0, certified, 2 * certified],
    [certified, certified + 1, certified + 2],
  ];
  for (const isNamed of [true, false]) {
    for (const times of timesOfQuestions) {
      // An answer without a name may be the late one to the first question.
      const provesIt = ((isNamed ? times.at(-1) : times[0]) ?? 0) >= certified;
      const which = isNamed ? 'that names it' : 'that may be to an earlier one';
      it(`an order is ${provesIt ? 'proven absent' : 'not proven absent'} by an answer ${which}, if asked ${times.join(', ')} ms after the order`, async () => {
        let clock = 5_000;
        const desk = new Desk({ absenceProofMs: certified, answerTimeoutMs: 20, monotonicNow: () => clock });
        const order = desk.add('ord_a');
        desk.questions.written('ord_a');
        const ask = async (after: number, count: number) => {
          clock = 5_000 + after;
          const asking = desk.questions.ask(order);
          await desk.askedTimes(count);
          if (count === times.length) desk.answer('ord_a', isNamed ? `q${count}` : '', 'unknown');
          return asking;
        };
        const answers: (StatusAnswer | undefined)[] = [];
        for (const [at, time] of times.entries()) answers.push(await ask(time, at + 1));
        assert.deepEqual(answers, [...times.slice(1).map(() => undefined), 'unknown']);
        assert.deepEqual(desk.absent, provesIt ? ['ord_a'] : []);
      });
    }
  }

  it('a question has no late answer over a later connection, and an order of an earlier one counts from its end', async () => {
    let clock = 0;
    const desk = new Desk({ absenceProofMs: certified, answerTimeoutMs: 20, monotonicNow: () => clock });
    const order = desk.add('ord_a');
    desk.questions.written('ord_a');
    await desk.questions.ask(order);
    clock = certified;
    desk.questions.disconnected();
    const connected = desk.questions.connected();
    await desk.askedTimes(2);
    desk.answer('ord_a', 'q2', 'unknown');
    await connected;
    assert.deepEqual(desk.absent, []);
    for (const [at, time] of [2 * certified - 1, 2 * certified].entries()) {
      assert.deepEqual(desk.absent, [], 'it is not certified yet');
      clock = time;
      const asking = desk.questions.ask(order);
      await desk.askedTimes(3 + at);
      desk.answer('ord_a', '', 'unknown');
      await asking;
    }
    assert.deepEqual(desk.absent, ['ord_a']);
  });

  it('proves nothing of either order by an answer that names another order', async () => {
    const desk = new Desk();
    const [order, other] = [desk.add('ord_a'), desk.add('ord_b')];
    const both = Promise.all([desk.questions.ask(order), desk.questions.ask(other)]);
    await desk.askedTimes(2);
    assert.deepEqual([desk.questions.askedAbout('q1'), desk.questions.askedAbout('q2')], ['ord_a', 'ord_b']);
    desk.answer('ord_b', 'q1', 'unknown');
    desk.answer('ord_a', 'q2', 'unknown');
    assert.deepEqual(await both, [undefined, undefined]);
    assert.deepEqual([desk.absent, desk.questions.askedAbout('q1')], [[], undefined]);
  });

  it('proves nothing if the connection broke before its answer', async () => {
    const desk = new Desk();
    const order = desk.add('ord_a');
    const asking = desk.questions.ask(order);
    await desk.askedTimes(1);
    desk.questions.disconnected();
    desk.answer('ord_a', 'q1', 'unknown');
    assert.equal(await asking, 'unknown');
    assert.deepEqual(desk.absent, []);
  });

  it('is asked once for all who want to know', async () => {
    const desk = new Desk();
    const order = desk.add('ord_a');
    const both = Promise.all([desk.questions.ask(order), desk.questions.ask(order)]);
    await desk.askedTimes(1);
    desk.answer('ord_a', 'q1', 'known');
    assert.deepEqual(await both, ['known', 'known']);
    assert.equal(desk.asked.length, 1);
  });

  it('a question that timed out over the connection before is asked again over the present one', async () => {
    const desk = new Desk();
    desk.add('ord_a', { state: 'open', mustAsk: true, timeInForce: 'gtc' });
    const first = desk.questions.askAboutPassedOver();
    await desk.askedTimes(1);
    desk.questions.disconnected();
    const connected = desk.questions.connected();
    await first;
    await connected;
    await desk.questions.askAboutPassedOver();
    await desk.askedTimes(2);
  });

  it('a question without an answer is asked once a connection, and an order whose day is over is found all the same', async () => {
    const desk = new Desk();
    desk.add('ord_a', { state: 'open', receivedAt: 100 });
    await desk.questions.askAboutEnded();
    await desk.questions.askAboutEnded();
    assert.equal(desk.asked.length, 1);
    assert.deepEqual(
      desk.findings.map(({ what }) => what),
      ['not_ended'],
    );
    assert.match(desk.findings[0]?.detail ?? '', /does not answer/);
  });

  it('about an order whose day is over does not wait for one that the exchange does not answer about', async () => {
    const desk = new Desk();
    for (const id of ['ord_a', 'ord_b', 'ord_c']) desk.add(id, { state: 'open', receivedAt: 100 });
    const asking = desk.questions.askAboutEnded();
    await desk.askedTimes(3);
    for (const { id, orderId } of desk.asked.slice(1)) desk.answer(orderId, id, 'known');
    await asking;
    const found = desk.findings.map(({ orderId }) => orderId);
    assert.deepEqual(
      [found.slice(0, 2).toSorted(), found[2]],
      [desk.asked.slice(1).map(({ orderId }) => orderId), desk.asked[0]?.orderId],
    );
  });

  for (const [messagesPerSecond, first] of [
    [3, 1],
    [11, 2],
    [12, 3],
    [10_000, 64],
  ] as const) {
    it(`is put about ${first} of many orders at first if the exchange takes ${messagesPerSecond} messages a second`, async () => {
      const desk = new Desk({ messagesPerSecond });
      for (let number = 0; number < 70; number += 1) desk.add(`ord_${number}`, { state: 'open', receivedAt: 1 });
      const asking = desk.questions.askAboutEnded();
      await desk.askedTimes(first);
      desk.isUp = false;
      for (const { id, orderId } of desk.asked) desk.answer(orderId, id, 'known');
      await asking;
      assert.equal(desk.asked.length, first);
    });
  }

  it('about a new order does not wait for orders that have been in doubt for days', async () => {
    const desk = new Desk();
    for (let old = 0; old < 12; old += 1) desk.add(`ord_old${old}`);
    await desk.questions.askAboutDoubts();
    desk.asked.length = 0;
    desk.add('ord_new');
    const asking = desk.questions.askAboutDoubts();
    await eventually(() => assert.ok(desk.asked.length > 0));
    assert.equal(desk.asked[0]?.orderId, 'ord_new');
    await asking;
  });

  const rounds = {
    'orders in doubt': [{ state: 'sending' }, 'askAboutDoubts'],
    'orders of which a report may be lost': [
      { state: 'open', mustAsk: true, timeInForce: 'gtc' },
      'askAboutPassedOver',
    ],
    'orders whose day is over': [{ state: 'open', receivedAt: 100 }, 'askAboutEnded'],
  } as const;
  /** Troubles that end a round before each order was asked about. */
  const endings: Record<string, (desk: Desk) => void> = {
    'its connection ended': (desk) => {
      desk.onAsked = () => {
        desk.isUp = false;
      };
    },
    'nothing was answered': () => {},
    'the record was away': (desk) => {
      desk.isRecordAway = true;
    },
  };
  for (const [what, [more, round]] of Object.entries(rounds)) {
    for (const [ending, end] of Object.entries(endings)) {
      it(`is asked about all ${what} over the next connection if ${ending} in an earlier round`, async () => {
        const desk = new Desk({ answerTimeoutMs: 5 });
        const ids = ['ord_a', 'ord_b', 'ord_c', 'ord_d', 'ord_e'];
        for (const id of ids) desk.add(id, more);
        end(desk);
        await desk.questions[round]().catch(() => {});
        desk.questions.disconnected();
        Object.assign(desk, { isUp: true, isRecordAway: false });
        desk.onAsked = (orderId, requestId) => desk.answer(orderId, requestId, 'known');
        await desk.questions.connected();
        desk.asked.length = 0;
        await desk.questions[round]();
        assert.deepEqual(desk.asked.map(({ orderId }) => orderId).toSorted(), ids);
      });
    }
  }

  it('is found once it proves nothing, and not while the exchange may still come to know of the order', async () => {
    const found = async (absenceProofMs: number) => {
      const desk = new Desk({ absenceProofMs });
      const order = desk.add('ord_a');
      desk.questions.written('ord_a');
      const asking = desk.questions.ask(order);
      await desk.askedTimes(1);
      desk.answer('ord_a', 'q1', 'unknown');
      await asking;
      return desk.findings.map(({ what }) => what);
    };
    assert.deepEqual(await found(60_000), []);
    assert.deepEqual(await found(0), ['absence_unproven']);
  });

  it('a question can be asked again after the record failed to take its answer, any number of times', async () => {
    const desk = new Desk({ absenceProofMs: 0 });
    const order = desk.add('ord_a');
    desk.onAsked = (orderId, requestId) => desk.answer(orderId, requestId, 'unknown');
    desk.isOrderAway = true;
    for (let times = 0; times < 2; times += 1) await assert.rejects(desk.questions.ask(order), /is away/);
    desk.isOrderAway = false;
    assert.equal(await desk.questions.ask(order), 'unknown');
    assert.equal(desk.asked.length, 3);
  });

  it('a question that has no turn has no answer and is not sent, and the next one is asked', async () => {
    const desk = new Desk();
    const order = desk.add('ord_a');
    desk.onAsked = (orderId, requestId) => desk.answer(orderId, requestId, 'known');
    desk.hasTurns = false;
    for (let times = 0; times < 2; times += 1) assert.equal(await desk.questions.ask(order), undefined);
    assert.equal(desk.asked.length, 0);
    desk.hasTurns = true;
    assert.equal(await desk.questions.ask(order), 'known');
  });

  it('a new connection ends the questions that are left of the one before, so that both together do not hold up new orders', async () => {
    // Two at once, and the next ones a second later.
    const desk = new Desk({ messagesPerSecond: 8 });
    for (const id of ['ord_a', 'ord_b', 'ord_c']) desk.add(id);
    desk.onAsked = (orderId, requestId) => desk.answer(orderId, requestId, 'known');
    const first = desk.questions.connected();
    await desk.askedTimes(2);
    desk.questions.disconnected();
    const second = desk.questions.connected();
    await Promise.all([first, second]);
    assert.deepEqual(
      desk.asked.map(({ orderId }) => orderId),
      ['ord_a', 'ord_b', 'ord_a', 'ord_b', 'ord_c'],
    );
  });

  it('a question of an earlier connection is not open any more over the next one', async () => {
    const desk = new Desk({ answerTimeoutMs: 5 });
    const order = desk.add('ord_a', { state: 'open' });
    for (let times = 0; times < 2; times += 1) await desk.questions.ask(order);
    assert.equal(desk.questions.leavesNone('ord_a', ''), false);
    desk.questions.disconnected();
    await desk.questions.connected();
    assert.equal(desk.questions.leavesNone('ord_a', ''), true);
    assert.equal(desk.questions.leavesNone('ord_a', 'q9'), true);
  });

  it('a question stays open although a mass status names its order', async () => {
    const desk = new Desk({ answerTimeoutMs: 5 });
    const order = desk.add('ord_a');
    await desk.questions.ask(order);
    desk.answer('ord_a', '', 'known', true);
    assert.equal(desk.questions.leavesNone('ord_a', 'other'), false);
    desk.answer('ord_a', 'q1', 'known');
    assert.equal(desk.questions.leavesNone('ord_a', 'other'), true);
  });

  it('an order of an earlier connection counts as written when the present one came up, if that was later', async () => {
    let clock = 0;
    const desk = new Desk({ absenceProofMs: certified, monotonicNow: () => clock });
    const order = desk.add('ord_a', { state: 'open' });
    desk.questions.written('ord_a');
    desk.questions.disconnected();
    clock = certified;
    await desk.questions.connected();
    desk.orders.set('ord_a', { ...order, state: 'sending' });
    desk.onAsked = (orderId, requestId) => desk.answer(orderId, requestId, 'unknown');
    for (const [time, absent] of [
      [2 * certified - 1, []],
      [2 * certified, ['ord_a']],
    ] as const) {
      clock = time;
      await desk.questions.ask(order);
      assert.deepEqual(desk.absent, absent, `${time}`);
    }
  });

  it('an order that is proven absent is found instead if something has become known of it meanwhile', async () => {
    const told: string[] = [];
    const desk = new Desk({
      absenceProofMs: certified,
      monotonicNow: () => certified,
      onAbsent: (id) => told.push(id),
    });
    const order = desk.add('ord_a');
    desk.onAsked = (orderId, requestId) => desk.answer(orderId, requestId, 'unknown');
    desk.provesAbsent = false;
    await desk.questions.ask(order);
    assert.deepEqual([told, desk.findings.map(({ what }) => what)], [[], ['absence_unproven']]);
    desk.provesAbsent = true;
    await desk.questions.ask(order);
    assert.deepEqual([told, desk.findings.length], [['ord_a'], 1]);
  });

  it('orders in a gap that the exchange asks for before it is up were never read: those with its numbers, of this numbering', async () => {
    const rows: readonly (readonly [string, bigint, number, boolean])[] = [
      ['before', 4n, 7, false],
      ['first', 5n, 7, true],
      ['earlier numbering', 5n, 6, false],
      ['last', 6n, 7, true],
      ['behind', 7n, 7, false],
    ];
    for (const wasUp of [false, true]) {
      const desk = new Desk({ absenceProofMs: certified });
      for (const [id, number, startedAt] of rows) desk.add(id, { number, startedAt });
      await desk.questions.gapFilled(5, 6, wasUp);
      // Over a connection that is up, they may have been on their way: they are asked about.
      await desk.askedTimes(wasUp ? 2 : 0);
      assert.deepEqual(
        desk.asked.map(({ orderId }) => orderId),
        wasUp ? ['first', 'last'] : [],
      );
      desk.asked.length = 0;
      desk.onAsked = (orderId, requestId) => desk.answer(orderId, requestId, 'unknown');
      if (wasUp) desk.questions.disconnected();
      for (const order of desk.orders.values()) await desk.questions.ask(order);
      const expected = rows.filter(([, , , isInGap]) => isInGap && !wasUp).map(([id]) => id);
      assert.deepEqual(desk.absent, expected, `was up: ${wasUp}`);
    }
  });

  it('a gap means the later of two orders with one number, as after an operator set the numbers back', async () => {
    const desk = new Desk({ absenceProofMs: certified });
    for (const id of ['ord_a', 'ord_b']) desk.add(id, { number: 5n });
    desk.onAsked = (orderId, requestId) => desk.answer(orderId, requestId, 'unknown');
    await desk.questions.gapFilled(1, 9, false);
    for (const order of desk.orders.values()) await desk.questions.ask(order);
    assert.deepEqual(desk.absent, ['ord_b']);
  });

  it('an order that the exchange has reported counts no more as never read', async () => {
    const desk = new Desk({ absenceProofMs: certified });
    const order = desk.add('ord_a', { number: 5n });
    await desk.questions.gapFilled(5, 5, false);
    desk.questions.reported('ord_a');
    desk.onAsked = (orderId, requestId) => desk.answer(orderId, requestId, 'unknown');
    await desk.questions.ask(order);
    assert.deepEqual(desk.absent, []);
  });

  it('all orders are asked about at once until that was written, when messages were passed over, and then no more', async () => {
    const desk = new Desk({ asksMassStatus: true });
    await desk.questions.missed();
    assert.equal(desk.massTimes, 0, 'with the next round');
    desk.hasTurns = false;
    await desk.questions.askAboutDoubts();
    desk.hasTurns = true;
    assert.equal(desk.massTimes, 0);
    desk.isRefused = true;
    for (let times = 1; times <= 2; times += 1) {
      await desk.questions.askAboutDoubts();
      assert.equal(desk.massTimes, times);
    }
    desk.isRefused = false;
    for (let times = 0; times < 2; times += 1) {
      await desk.questions.askAboutDoubts();
      assert.equal(desk.massTimes, 3);
    }
    await desk.questions.connected();
    assert.equal(desk.massTimes, 4, 'and over each connection');
    desk.hasTurns = false;
    await desk.questions.connected();
    desk.hasTurns = true;
    await desk.questions.askAboutDoubts();
    assert.equal(desk.massTimes, 5, 'in a later round if it had no turn');
  });

  it('an order that stays in doubt is asked about after 5, 10, 20 seconds and so on, at most every five minutes', async () => {
    let clock = 1_000_000;
    const at: number[] = [];
    const desk = new Desk({ answerTimeoutMs: 5_000, monotonicNow: () => clock, now: () => clock });
    desk.onAsked = (orderId, requestId) => desk.answer(orderId, requestId, 'unclear');
    desk.add('ord_a', { receivedAt: clock });
    for (let second = 0; second <= 1_300; second += 1) {
      clock = 1_000_000 + second * 1_000;
      const before = desk.asked.length;
      await desk.questions.askAboutDoubts();
      if (desk.asked.length > before) at.push(second);
    }
    const waits = at.map((second, nth) => second - (at[nth - 1] ?? 0));
    assert.deepEqual(waits, [6, 6, 11, 21, 41, 81, 161, 301, 301, 301]);
  });

  it('a round about lost reports ends after three questions in a row without an answer, and an answer between counts', async () => {
    for (const [answered, asked] of [
      [[], 3],
      [[3], 6],
      [[3, 6], 7],
    ] as const) {
      const desk = new Desk({ answerTimeoutMs: 5 });
      for (let nth = 1; nth <= 7; nth += 1)
        desk.add(`ord_${nth}`, { state: 'open', mustAsk: true, timeInForce: 'gtc' });
      desk.onAsked = (orderId, requestId) => {
        if (answered.some((nth) => orderId === `ord_${nth}`)) desk.answer(orderId, requestId, 'known');
      };
      await desk.questions.askAboutPassedOver();
      assert.equal(desk.asked.length, asked, `${answered}`);
    }
  });

  it('a new connection asks about each order in doubt, also behind a thousand older ones', async () => {
    const desk = new Desk({ answerTimeoutMs: 5, messagesPerSecond: 1_000_000 });
    desk.onAsked = (orderId, requestId) => desk.answer(orderId, requestId, 'known');
    for (let nth = 1; nth <= 1_001; nth += 1) desk.add(`ord_${nth}`);
    await desk.questions.connected();
    assert.deepEqual(
      desk.asked.map(({ orderId }) => orderId),
      [...desk.orders.keys()],
    );
  });

  it('a thousand orders that are not asked about hide no newer one that is', async () => {
    const desk = new Desk({ answerTimeoutMs: 5 });
    for (let nth = 1; nth <= 1_000; nth += 1) {
      desk.add(`ord_${nth}`, { state: 'open', mustAsk: true, receivedAt: 499_999 });
    }
    desk.add('ord_newer', { state: 'open', mustAsk: true, receivedAt: 600_000 });
    await desk.questions.askAboutPassedOver();
    assert.deepEqual(
      desk.asked.map(({ orderId }) => orderId),
      ['ord_newer'],
    );
  });

  it('an order whose day is over is left to the round about those, once a day, and not asked about as one with a lost report', async () => {
    for (const [more, isAsked] of [
      [{ receivedAt: 499_999 }, false],
      [{ receivedAt: 500_000 }, true],
      [{ receivedAt: 499_999, timeInForce: 'gtc' }, true],
      [{ receivedAt: 499_999, state: 'sending' }, true],
      [{ receivedAt: 499_999, noted: 'not_ended:500000' }, true],
      [{ receivedAt: 499_999, noted: 'not_ended:400000' }, false],
    ] as const) {
      const desk = new Desk({ answerTimeoutMs: 5 });
      desk.add('ord_a', { state: 'open', mustAsk: true, ...more });
      await desk.questions.askAboutPassedOver();
      assert.equal(desk.asked.length, isAsked ? 1 : 0, JSON.stringify(more));
    }
  });

  it('nothing is found of an order whose day is over if the connection ended before the answer', async () => {
    const desk = new Desk({ answerTimeoutMs: 5 });
    desk.add('ord_a', { state: 'open', receivedAt: 100 });
    desk.onAsked = () => {
      desk.isUp = false;
    };
    await desk.questions.askAboutEnded();
    assert.deepEqual([desk.asked.length, desk.findings], [1, []]);
  });
});
