/** Requests to cancel, over a record in memory and an exchange that answers as the test says. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Cancels, type CancelsOptions } from '../../../src/fix-adapter/orders/cancels.ts';
import type { OwnMessage } from '../../../src/fix-adapter/orders/own-message.ts';
import type { FixCancel, FixOrder, FixReport, FixReportKind } from '../../../src/fix-adapter/store/table.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { eventually } from '../../support/eventually.ts';
import { fixOrder } from '../../support/fix-order.ts';

const shortly = 100;

class Desk {
  order: FixOrder = fixOrder({ state: 'open' });
  readonly requests: FixCancel[] = [];
  readonly names: string[] = [];
  readonly reports: FixReport[] = [];
  readonly lost: string[] = [];
  isRecordAway = false;
  /** Turns whose messages are neither sent nor given up. */
  turns = 0;
  settled = 0;
  isUp = true;
  outcome: Parameters<OwnMessage['settled']>[0] = 'written';
  hasTurns = true;
  /** Called for each request before the session says what became of it. */
  onSent: () => void = () => {};
  /** Called when the record was asked about the order. */
  onRead: () => void = () => {};
  readonly cancels: Cancels;

  constructor(more: Partial<CancelsOptions> = {}) {
    const store = {
      order: async () => {
        const { order } = this;
        this.onRead();
        return order;
      },
      cancelsOf: async () => [...this.requests],
      lost: async (ids: readonly string[]) => {
        if (this.isRecordAway) throw new Error('the record is away');
        this.lost.push(...ids);
      },
      cancellationOf: async () => this.reports.find(({ kind }) => kind === 'cancelled'),
    };
    const send = (message: OwnMessage) => {
      if (message.kept.kind === 'cancel') this.requests.push(message.kept.row);
      this.names.push(message.fields.find(([tag]) => tag === tags.ClOrdID)?.[1] ?? '');
      this.turns -= 1;
      this.onSent();
      message.settled(this.outcome);
    };
    const desk = this;
    this.cancels = new Cancels({
      store: store as never,
      session: {
        get isUp() {
          return desk.isUp;
        },
        send,
      },
      style: { symbols: new Map(), more: () => [], nameLength: 70, toPrice: String },
      throttle: {
        take: async () => {
          if (this.hasTurns) this.turns += 1;
          return this.hasTurns;
        },
        settled: () => {
          this.turns -= 1;
        },
      } as never,
      now: () => 0,
      cancelTimeoutMs: 60_000,
      log: createLogger({ name: 'desk', level: 'silent' }),
      settle: async () => {
        this.settled += 1;
      },
      ...more,
    });
  }

  async requested(count: number): Promise<void> {
    await eventually(() => assert.equal(this.requests.length, count));
    await turn();
  }

  report(kind: FixReportKind): FixReport {
    const report = { orderId: this.order.id, kind } as FixReport;
    this.reports.push(report);
    if (kind !== 'accepted' && kind !== 'trade') this.order = { ...this.order, state: 'final' };
    return report;
  }
}

describe('a request to cancel an order', () => {
  it('is answered by the report of the cancel', async () => {
    const desk = new Desk();
    const cancelling = desk.cancels.cancel('ord_a', 10_000);
    await desk.requested(1);
    const report = desk.report('cancelled');
    desk.cancels.reported(report);
    assert.equal(await cancelling, report);
  });

  for (const kind of ['expired', 'rejected'] as const) {
    it(`comes too late for an order that ends as ${kind}, and does not wait for its deadline`, async () => {
      const desk = new Desk();
      const cancelling = desk.cancels.cancel('ord_a', 10_000);
      await desk.requested(1);
      desk.cancels.reported(desk.report(kind));
      assert.equal(await cancelling, undefined);
      assert.equal(desk.settled, 1);
    });
  }

  it('waits on after a trade, which does not end the order', async () => {
    const desk = new Desk();
    const refused = assert.rejects(desk.cancels.cancel('ord_a', shortly), /not answered yet/);
    await desk.requested(1);
    desk.cancels.reported(desk.report('trade'));
    await refused;
  });

  it('is sent once for all that come together', async () => {
    const desk = new Desk();
    const both = [desk.cancels.cancel('ord_a', 10_000), desk.cancels.cancel('ord_a', 10_000)];
    await desk.requested(1);
    const report = desk.report('cancelled');
    desk.cancels.reported(report);
    assert.deepEqual(await Promise.all(both), [report, report]);
    assert.equal(desk.requests.length, 1);
  });

  it('is not sent again while an earlier one may still be answered', async () => {
    const desk = new Desk();
    await assert.rejects(desk.cancels.cancel('ord_a', shortly), /not answered yet/);
    await assert.rejects(desk.cancels.cancel('ord_a', shortly), /not answered yet/);
    assert.deepEqual(desk.names, ['ord_a.c1']);
  });

  it('has a ClOrdID that no request of the order has had, whatever became of those', async () => {
    const desk = new Desk();
    for (const state of ['done', 'refused', 'unsent', 'lost'] as const) {
      const count = desk.requests.length + 1;
      await assert.rejects(desk.cancels.cancel('ord_a', shortly), /not answered yet/);
      assert.equal(desk.requests.length, count);
      desk.requests.splice(-1, 1, { ...(desk.requests.at(-1) as FixCancel), state });
    }
    assert.deepEqual(desk.names, ['ord_a.c1', 'ord_a.c2', 'ord_a.c3', 'ord_a.c4']);
  });

  it('is sent again over another connection, and the one before it is noted as lost', async () => {
    const desk = new Desk();
    await assert.rejects(desk.cancels.cancel('ord_a', shortly), /not answered yet/);
    desk.cancels.disconnected();
    await assert.rejects(desk.cancels.cancel('ord_a', shortly), /not answered yet/);
    assert.deepEqual(desk.names, ['ord_a.c1', 'ord_a.c2']);
    assert.deepEqual(desk.lost, ['ord_a.c1']);
  });

  it('a request gives its turn back if the one before it cannot be noted as lost', async () => {
    const desk = new Desk();
    await assert.rejects(desk.cancels.cancel('ord_a', shortly), /not answered yet/);
    desk.cancels.disconnected();
    desk.isRecordAway = true;
    for (let times = 0; times < 2; times += 1) await assert.rejects(desk.cancels.cancel('ord_a', shortly), /is away/);
    assert.deepEqual([desk.turns, desk.names], [0, ['ord_a.c1']]);
    desk.isRecordAway = false;
    await assert.rejects(desk.cancels.cancel('ord_a', shortly), /not answered yet/);
    assert.deepEqual([desk.turns, desk.names], [0, ['ord_a.c1', 'ord_a.c2']]);
  });

  it('a request that the exchange refuses leaves the order to be cancelled again if the order has not ended', async () => {
    const desk = new Desk();
    const cancelling = desk.cancels.cancel('ord_a', 10_000);
    await desk.requested(1);
    desk.cancels.refused(desk.requests[0] as FixCancel);
    await assert.rejects(cancelling, /refused to cancel it/);
  });

  it('a request that was not written is an error, and nobody waits for its answer', async () => {
    const desk = new Desk();
    desk.outcome = 'unwritten';
    await assert.rejects(desk.cancels.cancel('ord_a', shortly), /not written/);
  });

  it('is not sent for an order that has ended, and its cancel is found in the record', async () => {
    const desk = new Desk();
    const report = desk.report('cancelled');
    assert.equal(await desk.cancels.cancel('ord_a', 10_000), report);
    assert.deepEqual(desk.names, []);
  });

  it('is refused without a session, and for an order that was never sent', async () => {
    const desk = new Desk();
    desk.isUp = false;
    await assert.rejects(desk.cancels.cancel('ord_a', 10_000), /no session/);
    desk.order = { ...desk.order, state: 'unsent' };
    await assert.rejects(desk.cancels.cancel('ord_a', 10_000), /no such order/);
  });

  it('a request is answered by a report that comes before the session says that it was written', async () => {
    const desk = new Desk();
    desk.onSent = () => desk.cancels.reported(desk.report('cancelled'));
    assert.equal((await desk.cancels.cancel('ord_a', shortly))?.kind, 'cancelled');
  });

  it('a request is not sent for an order that ends just before it would be sent', async () => {
    const desk = new Desk();
    desk.onRead = () => void desk.report('cancelled');
    assert.equal((await desk.cancels.cancel('ord_a', shortly))?.kind, 'cancelled');
    assert.deepEqual(desk.names, []);
  });

  it('a request that has no turn in time is not sent, and the next call sends one', async () => {
    const desk = new Desk();
    desk.hasTurns = false;
    for (let times = 0; times < 2; times += 1) {
      await assert.rejects(desk.cancels.cancel('ord_a', shortly), /not answered yet/);
    }
    desk.hasTurns = true;
    desk.onSent = () => desk.cancels.reported(desk.report('cancelled'));
    await desk.cancels.cancel('ord_a', 10_000);
    assert.deepEqual([desk.names, desk.turns], [['ord_a.c1'], 0]);
  });

  it('a request that the exchange leaves unanswered for its time is noted as lost, and another one is sent', async () => {
    const desk = new Desk({ cancelTimeoutMs: shortly / 2 });
    for (let times = 0; times < 2; times += 1) {
      await assert.rejects(desk.cancels.cancel('ord_a', shortly), /not answered yet/);
    }
    assert.deepEqual([desk.names, desk.lost], [['ord_a.c1', 'ord_a.c2'], ['ord_a.c1']]);
  });

  it('a request that the exchange refuses came too late if the order has ended meanwhile', async () => {
    const desk = new Desk({
      settle: async () => {
        desk.report('expired');
      },
    });
    desk.onSent = () => desk.cancels.refused(desk.requests[0] as FixCancel);
    assert.equal(await desk.cancels.cancel('ord_a', 10_000), undefined);
  });
});
