import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Report, ReportKind } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { type Defect, DefectiveAdapter } from '../../../support/defective-adapter.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, type TestPartner } from '../../../support/gateway.ts';
import { Reconciling } from '../../../support/reconciliation.ts';

/** Whether the adapter has not yet learnt how orders ended: it reports nothing from the first end on. */
let isBehind = false;
/** Kinds of reports of which the adapter does not know when they happened. */
let untimed: ReadonlySet<ReportKind> = new Set();

const ends = new Set([ReportKind.CANCELLED, ReportKind.EXPIRED]);

function told<Answer extends { readonly report?: Report | undefined }>(answer: Answer): Answer {
  return { ...answer, report: answer.report && withoutTime(answer.report) };
}

function withoutTime(report: Report): Report {
  const { at: _, ...rest } = report;
  return untimed.has(report.kind) ? rest : report;
}

/** The records of a FIX adapter about an order that a status reported as ended. */
const adapter: Defect = {
  orders: {
    submitOrder: async ({ next }) => told(await next()),
    cancelOrder: async ({ next }) => told(await next()),
    lookUpOrder: async ({ next }) => {
      const answer = await next();
      return { ...answer, reports: answer.reports.map(withoutTime) };
    },
  },
  reports: (message) => {
    const firstEnd = message.reports.findIndex(({ kind }) => ends.has(kind));
    const known = isBehind && firstEnd >= 0 ? message.reports.slice(0, firstEnd) : message.reports;
    return { ...message, reports: known.map(withoutTime) };
  },
};

describe('a broker that does not know when an order was accepted or ended', () => {
  let days: Reconciling;
  let partner: TestPartner;
  let front: DefectiveAdapter;
  before(async () => {
    days = await Reconciling.start(
      {},
      {
        prepare: async (variables) => {
          front = await DefectiveAdapter.start(variables.MARINA_BROKER_ADDRESS ?? '', adapter);
          variables.MARINA_BROKER_ADDRESS = `127.0.0.1:${front.port}`;
        },
      },
    );
    partner = await days.gateway.newPartner();
  });
  after(async () => {
    await days.stop();
    front.close();
  });

  const get = async (id: string) => (await days.gateway.rest('GET', `/v1/orders/${id}`, { key: partner.key })).body;
  const until = (id: string, state: string) => eventually(async () => assert.equal((await get(id)).state, state));
  const all = new Set([ReportKind.ACCEPTED, ReportKind.REJECTED, ReportKind.CANCELLED, ReportKind.EXPIRED]);

  /** The kinds of an order's reports, with whether they have the broker's time. */
  async function reportsOf(id: string): Promise<[string, boolean][]> {
    const { entries } = await days.operator.call('Diagnostics.GetTimeline', { id });
    const reports = entries.filter((entry: { report_number?: string }) => entry.report_number !== undefined);
    return reports.map((entry: { state: string; upstream_at?: string }) => [entry.state, entry.upstream_at != null]);
  }

  it('is believed by the answer to a send, to a cancel and to a look-up', async () => {
    untimed = all;
    const { status, body } = await days.gateway.place(partner, { symbol: 'SIM-REST' });
    assert.deepEqual([status, body.state], [201, 'pending']);
    const cancelled = await days.gateway.rest('DELETE', `/v1/orders/${body.id}`, { key: partner.key });
    assert.deepEqual([cancelled.status, cancelled.body.state], [200, 'cancelled']);
    assert.deepEqual(await reportsOf(body.id), [
      ['pending', false],
      ['cancelled', false],
    ]);
    const rejected = await days.gateway.place(partner, { symbol: 'SIM-REJECT' });
    assert.deepEqual([rejected.status, rejected.body.error.code], [422, 'order_rejected']);
    await days.gateway.controls.injectFault({ call: Call.SUBMIT_ORDER, fault: WireFault.LOSE_ANSWER }, callTimeout);
    const lost = await days.gateway.place(partner, { symbol: 'SIM-REST', quantity: 7 });
    assert.equal(lost.status, 201);
    await until(lost.body.id, 'pending');
  });

  it('makes no break on any day if an order expired on one day and the broker learns of it on the next', async () => {
    untimed = ends;
    const day = await days.toNextDay(9 * 60);
    isBehind = true;
    const { body } = await days.gateway.place(partner, { symbol: 'SIM-REST', quantity: 9 });
    await until(body.id, 'pending');
    await days.gateway.controls.expireOrder({ clientOrderId: body.id }, callTimeout);
    const next = await days.toNextDay(9 * 60);
    assert.equal((await get(body.id)).state, 'pending', 'it has expired, and the adapter does not know it');
    isBehind = false;
    // A further report shows the gateway that it has missed some.
    await days.gateway.place(partner, { symbol: 'SIM-REST', quantity: 10 });
    await until(body.id, 'expired');
    assert.deepEqual(await reportsOf(body.id), [
      ['pending', true],
      ['expired', false],
    ]);
    await days.toNextDay();
    for (const compared of [day, next]) {
      await days.complete(compared);
      assert.deepEqual(await days.open(compared), [], `breaks on ${compared}`);
    }
  });
});
