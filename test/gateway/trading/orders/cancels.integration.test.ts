import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Call } from '../../../../src/gateway/edge/call.ts';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import type { Cancelled } from '../../../../src/gateway/trading/broker/broker.ts';
import type { StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import { type Report, ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { clockSkewMs, openSettling, type Settling, submitTimeoutMs } from '../../../support/settling.ts';

describe('a cancel', () => {
  let settling: Settling;
  let order: StoredOrder;
  let sends: number;
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());
  beforeEach(async () => {
    const partnerId = await settling.newPartner();
    order = await settling.storeOrder({ partnerId, state: 'pending', exchangeOrderId: 'X1', lastReport: 1n });
    sends = 0;
  });

  const call: Pick<Call, 'log' | 'origin' | 'permission'> = {
    log: createLogger({ name: 'test', level: 'silent' }),
    origin: { partnerId: '', requestId: null, traceParent: null },
    permission: { renew: async () => {}, isLatest: () => true },
  };

  function report(number: bigint, kind: ReportKind, quantity = 0n): Report {
    return create(ReportSchema, {
      number,
      clientOrderId: order.id,
      exchangeOrderId: 'X1',
      kind,
      at: timestampFromMs(settling.clock.now()),
      quantity,
      priceKobo: quantity === 0n ? 0n : 1_000n,
    });
  }

  const cancelled = (): Cancelled => ({ outcome: 'cancelled', report: report(2n, ReportKind.CANCELLED) });

  /** A cancel that the exchange answers when the test lets it, and when it has come there. */
  function heldCancel(ends: ((answer: Cancelled) => void)[]) {
    let arrive = () => {};
    const reached = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const answer = () =>
      new Promise<Cancelled>((resolve) => {
        ends.push(resolve);
        arrive();
      });
    return { answer, reached };
  }

  /** Sets the exchange's answers to the next cancels, in their order. */
  function exchangeAnswers(...answers: (() => Cancelled | Promise<Cancelled>)[]): void {
    settling.broker.cancelOrder = async () => {
      const answer = answers[sends];
      sends += 1;
      assert.ok(answer !== undefined, `cancel ${sends} was sent, and only ${answers.length} may be`);
      return answer();
    };
  }

  function recordSays(...reports: Report[]): void {
    settling.broker.lookUpOrder = async () => ({ found: true, answer: reports });
  }

  function recordIsUnreadable(): void {
    settling.broker.lookUpOrder = async () => {
      throw new ApiError('exchange_unavailable');
    };
  }

  /** Cancels the order and returns the partner's answer: the state of the order, or the code of an error. */
  async function cancel(canceller = settling.newCanceller()): Promise<string> {
    try {
      return (await canceller.cancel(order, call)).state;
    } catch (error) {
      assert.ok(error instanceof ApiError, String(error));
      return error.code;
    }
  }

  async function openCancels(): Promise<number> {
    const rows = await settling.database.read(
      statement('SELECT order_id FROM open_cancels WHERE order_id = ?', order.id),
    );
    return rows.length;
  }

  for (const [name, answer] of [
    ['was taken', cancelled],
    ['came too late', (): Cancelled => ({ outcome: 'too-late' })],
  ] as const) {
    it(`a cancel that ${name} stays unconfirmed while the order's record cannot be read`, async () => {
      exchangeAnswers(answer);
      recordIsUnreadable();
      assert.equal(await cancel(), 'cancel_unconfirmed');
      const now = await settling.readOrder(order);
      assert.equal(now.state, 'pending');
      assert.notEqual(now.cancelUntil, null, 'nothing is unclear of the cancel, though the record could not be read');
      assert.equal(await openCancels(), 1, 'operators see it as unconfirmed');
      assert.match((await settling.stepsOf(order)).at(-1) ?? '', /unconfirmed: .*record could not be read/);
    });
  }

  it('a cancel that is taken ends the order with the trades its record has from before', async () => {
    exchangeAnswers(cancelled);
    recordSays(report(2n, ReportKind.TRADE, 30n), report(3n, ReportKind.CANCELLED));
    assert.equal(await cancel(), 'cancelled');
    const now = await settling.readOrder(order);
    assert.deepEqual([now.filledQuantity, now.lastReport, now.cancelUntil], [30n, 3n, null]);
    assert.equal(await openCancels(), 0);
  });

  it('a cancel that came too late shows the order as its record has it, and leaves nothing uncertain', async () => {
    exchangeAnswers(() => ({ outcome: 'too-late' }));
    recordSays(report(2n, ReportKind.TRADE, 100n));
    assert.equal(await cancel(), 'order_not_cancelable');
    const now = await settling.readOrder(order);
    assert.deepEqual([now.state, now.cancelUntil], ['filled', null]);
    assert.equal(await openCancels(), 0);
  });

  it('does not end an order by reports behind some that a failover lost while the record was read', async () => {
    exchangeAnswers(cancelled);
    settling.broker.lookUpOrder = async () => {
      await settling.database.write(
        statement('UPDATE orders SET last_report = 0, checks = checks + 1 WHERE id = ?', order.id),
      );
      return { found: true, answer: [report(3n, ReportKind.CANCELLED)] };
    };
    assert.equal(await cancel(), 'cancel_unconfirmed');
    const now = await settling.readOrder(order);
    assert.deepEqual([now.state, now.lastReport], ['pending', 0n], 'report 1 would never be applied again');
  });

  it('is not sent while another replica sends one, and may be sent once that had its time', async () => {
    const ends: ((answer: Cancelled) => void)[] = [];
    const held = heldCancel(ends);
    exchangeAnswers(held.answer, cancelled);
    recordSays(report(2n, ReportKind.CANCELLED));
    const first = cancel();
    await held.reached;
    settling.clock.advance(submitTimeoutMs - 1);
    assert.equal(await cancel(), 'cancel_unconfirmed', 'the first may still be taken');
    assert.equal(sends, 1, `${sends} cancels were sent`);
    settling.clock.advance(1);
    assert.equal(await cancel(), 'cancelled');
    ends[0]?.({ outcome: 'unclear', evidence: 'no answer' });
    assert.equal(await first, 'cancelled');
    const now = await settling.readOrder(order);
    assert.deepEqual([now.state, now.cancelUntil], ['cancelled', null], 'the late end of the first changes nothing');
  });

  it('a cancel that ends late leaves a newer one under way', async () => {
    const unclear: Cancelled = { outcome: 'unclear', evidence: 'no answer' };
    const ends: ((answer: Cancelled) => void)[] = [];
    const sent = [heldCancel(ends), heldCancel(ends)];
    exchangeAnswers(...sent.map(({ answer }) => answer));
    const first = cancel();
    await sent[0]?.reached;
    settling.clock.advance(submitTimeoutMs);
    const second = cancel();
    await Promise.race([sent[1]?.reached, second.then((answer) => assert.fail(`not sent, and answered ${answer}`))]);
    const secondUntil = settling.clock.realNow() + submitTimeoutMs;
    ends[0]?.(unclear);
    assert.equal(await first, 'cancel_unconfirmed');
    const { cancelUntil } = await settling.readOrder(order);
    assert.equal(cancelUntil, secondUntil, 'the end of the first cancel made the second one over');
    assert.equal(await cancel(), 'cancel_unconfirmed', 'no third is sent while the second is under way');
    ends[1]?.(unclear);
    assert.equal(await second, 'cancel_unconfirmed');
    assert.equal(await openCancels(), 1);
  });

  describe('that is unconfirmed', () => {
    beforeEach(async () => {
      exchangeAnswers(() => ({ outcome: 'unclear', evidence: 'no answer' }), cancelled);
      assert.equal(await cancel(), 'cancel_unconfirmed');
      assert.equal(await openCancels(), 1);
    });

    const reconcile = () => settling.newCanceller().reconcileNow(order.partnerId, order.id);

    it('is left alone until clocks cannot make it one under way', async () => {
      let looks = 0;
      settling.broker.lookUpOrder = async () => {
        looks += 1;
        return { found: true, answer: [] };
      };
      settling.clock.advance(clockSkewMs - 1);
      assert.notEqual((await reconcile()).after.cancelUntil, null);
      assert.equal(looks, 0);
      settling.clock.advance(1);
      assert.equal((await reconcile()).after.cancelUntil, null);
      assert.equal(await openCancels(), 0);
      assert.equal((await settling.stepsOf(order)).at(-1), "the exchange's record has no cancel of it");
    });

    it('is found to be taken, with what traded before', async () => {
      settling.clock.advance(clockSkewMs);
      recordSays(report(2n, ReportKind.TRADE, 10n), report(3n, ReportKind.CANCELLED));
      const { before, after: now } = await reconcile();
      assert.deepEqual([before.state, now.state, now.filledQuantity], ['pending', 'cancelled', 10n]);
      assert.equal(await openCancels(), 0);
    });

    it('is clear once the stream of reports ends the order, and not with a trade before that', async () => {
      const applied = (each: Report) => settling.applyReports(order, [each]);
      await applied(report(2n, ReportKind.TRADE, 10n));
      assert.equal(await openCancels(), 1, 'a trade says nothing of the cancel');
      const ended = await applied(report(3n, ReportKind.CANCELLED));
      assert.deepEqual([ended.state, ended.cancelUntil], ['cancelled', null]);
      assert.equal(await openCancels(), 0, 'operators still see a cancel as unconfirmed whose order is cancelled');
    });

    it('stays so when the record does not have the order', async () => {
      settling.clock.advance(clockSkewMs);
      settling.broker.lookUpOrder = async () => ({ found: false, completeUntil: undefined, brokerTime: undefined });
      const { after: now } = await reconcile();
      assert.deepEqual([now.state, now.cancelUntil !== null], ['pending', true]);
      assert.equal(await openCancels(), 1);
    });

    it('does not end a newer one that is sent while the record is read', async () => {
      settling.clock.advance(clockSkewMs);
      const ends: ((answer: Cancelled) => void)[] = [];
      const held = heldCancel(ends);
      exchangeAnswers(() => assert.fail('sent before'), held.answer);
      let newer: Promise<string> | undefined;
      settling.broker.lookUpOrder = async () => {
        // The record is as it was before the newer cancel.
        newer = cancel();
        await held.reached;
        return { found: true, answer: [] };
      };
      const { after: now } = await reconcile();
      assert.equal(
        now.cancelUntil,
        settling.clock.realNow() + submitTimeoutMs,
        'the record was read before the newer cancel, and what it says ended that cancel',
      );
      assert.equal(await openCancels(), 1);
      assert.equal(await cancel(), 'cancel_unconfirmed', 'no third is sent while the newer is under way');
      ends[0]?.({ outcome: 'unclear', evidence: 'no answer' });
      assert.equal(await newer, 'cancel_unconfirmed');
    });
  });

  it('a cancel that is unclear since a clock was an hour ahead can be sent again', async () => {
    const cancelUntil = settling.clock.realNow() + 3_600_000;
    const { partnerId } = order;
    order = await settling.storeOrder({
      partnerId,
      state: 'pending',
      exchangeOrderId: 'X2',
      lastReport: 1n,
      cancelUntil,
    });
    settling.broker.cancelOrder = async () => cancelled();
    settling.broker.lookUpOrder = async () => ({ found: true, answer: [report(2n, ReportKind.CANCELLED)] });
    const { state } = await settling.newCanceller().cancel(order, call);
    assert.equal(state, 'cancelled');
  });
});
