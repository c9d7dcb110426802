import assert from 'node:assert/strict';
import type { ReadQueue } from '../../src/gateway/trading/broker/read-queue.ts';
import { StatementLie } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay, nextLagosMidnight } from '../../src/kit/clock.ts';
import type { Lie } from '../../src/simulator/statements/lies.ts';
import { adminClient } from './admin.ts';
import { eventually } from './eventually.ts';
import { callTimeout, type GatewaySurroundings } from './gateway.ts';
import { type Found, TestOperator } from './operator.ts';
import type { WorldPart } from './world.ts';

const minuteMs = 60_000;

/** Reads of the broker that wait for nobody. */
export const unqueued: Pick<ReadQueue, 'readFor'> = { readFor: (_, work) => work({ timeoutMs: 5_000 }) };

/** A gateway, its operator, and the calls about days that a test makes. */
export class Reconciling {
  private constructor(readonly operator: TestOperator) {}

  static async start(variables?: Record<string, string>, surroundings?: GatewaySurroundings): Promise<Reconciling> {
    return new Reconciling(await TestOperator.start(variables, surroundings));
  }

  get gateway() {
    return this.operator.gateway;
  }

  /** Business time. */
  async now(): Promise<number> {
    return Date.parse((await this.operator.call('Diagnostics.GetStatus')).now);
  }

  async today(): Promise<string> {
    return lagosDay(await this.now());
  }

  /** Moves business time on, at the gateway and at the broker. */
  async advance(ms: number): Promise<void> {
    await this.operator.call('Clock.AdvanceClock', { by: `${Math.ceil(ms / 1_000)}s` });
  }

  /** Moves business time to the next Lagos day, some minutes after midnight. */
  async toNextDay(minutes = 30): Promise<string> {
    const now = await this.now();
    await this.advance(nextLagosMidnight(now) - now + minutes * minuteMs);
    return this.today();
  }

  async lie(lie: keyof typeof StatementLie, about: Partial<Lie> = {}): Promise<void> {
    await this.gateway.controls.lieInStatements({ lie: StatementLie[lie], ...about }, callTimeout);
  }

  async tellTheTruth(): Promise<void> {
    await this.gateway.controls.clearDirectives({}, callTimeout);
  }

  /** Compares a day, and waits until it is compared. */
  async reconcile(day: string): Promise<Found> {
    const { reconciliation } = await this.operator.call('Diagnostics.ReconcileDay', { day, reason: 'a test' });
    return reconciliation;
  }

  async complete(day: string): Promise<Found> {
    const run = await this.reconcile(day);
    assert.equal(run.state, 'RECONCILIATION_STATE_COMPLETE', JSON.stringify(run));
    return run;
  }

  async runs(day: string): Promise<Found[]> {
    return (await this.operator.call('Diagnostics.ListReconciliations', { day, limit: 100 })).reconciliations;
  }

  async breaks(filter: Record<string, string | boolean>): Promise<Found[]> {
    return (await this.operator.call('Diagnostics.ListReconciliationBreaks', { limit: 100, ...filter })).breaks;
  }

  open(day: string): Promise<Found[]> {
    return this.breaks({ day, open_only: true });
  }

  /** The day's run in a state, as soon as the worker has brought it there by itself. */
  untilRun(day: string, state: string): Promise<Found> {
    return eventually(async () => {
      const [run] = await this.runs(day);
      assert.equal(run?.state, `RECONCILIATION_STATE_${state}`, JSON.stringify(run));
      return run;
    }, 20_000);
  }

  /** The breaks as CSV. */
  async exported(filter: { day?: string; open_only?: boolean }): Promise<string> {
    const admin = adminClient(this.gateway.app.adminPort);
    try {
      let csv = '';
      const request = { day: filter.day ?? '', openOnly: filter.open_only ?? false };
      for await (const piece of admin.diagnostics.exportReconciliationBreaks(request, admin.options)) csv += piece.csv;
      return csv;
    } finally {
      admin.close();
    }
  }

  /** `left`: what the test leaves in disorder on purpose (`checkWorld`). */
  stop(left?: readonly WorldPart[]): Promise<void> {
    return this.operator.stop(left);
  }
}
