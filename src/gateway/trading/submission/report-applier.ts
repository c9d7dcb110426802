import type { Clock } from '../../../kit/clock.ts';
import { groupBy } from '../../../kit/group.ts';
import { Refusal } from '../../../kit/refusal.ts';
import { isGuardFalse } from '../../store/errors.ts';
import { Change, passOver } from './change.ts';
import type { Kind } from './kind.ts';
import type { Recorder } from './record.ts';
import { DatabaseDiffersError, type ReportPosition } from './report-position.ts';
import type { StuckPartners } from './stuck-partners.ts';
import { isBehind, type Submission } from './table.ts';

/** Reports that could be neither applied nor passed over, in the order of their numbers, and why. */
export interface Unapplied<Report> {
  readonly reports: readonly Report[];
  readonly error: unknown;
}

/** How often reports that failed together are halved. A partner of which most fail is passed over sooner. */
const maxHalvings = 64;

export interface PartnerReportsParts<Row extends Submission, Report extends { readonly number: bigint }> {
  readonly kind: Kind<Row, Report> & { objectIdOf(report: Report): string };
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly stuck: StuckPartners;
  readonly position: Pick<ReportPosition, 'factFor' | 'check'>;
  /** Aborted when reports are read again: what is under way then was decided on what may be lost. */
  readonly signal: AbortSignal;
}

/**
 * Applies reports about a partner's objects in one transaction. If that fails because of the reports or the rows, it applies
 * the first half and then the second, until the report that fails is alone. That one is passed over: its object is noted as
 * behind and looked up, and its later reports are not applied before it.
 */
export class PartnerReports<Row extends Submission, Report extends { readonly number: bigint }> {
  #halvings = 0;
  /** Objects that could not even be noted as behind: none of their later reports is applied. */
  readonly #failed = new Set<string>();
  readonly #unapplied = new Set<Report>();
  #error: unknown;

  constructor(
    private readonly parts: PartnerReportsParts<Row, Report>,
    private readonly partnerId: string,
  ) {}

  /**
   * Applies reports in the order of their numbers, once. Returns those that remain. Throws if the database cannot serve, has
   * lost what it had, or the partner is locked: then some are applied, and all can be applied again.
   */
  async apply(reports: readonly Report[]): Promise<Unapplied<Report> | undefined> {
    await this.#applyPart(reports);
    if (this.#unapplied.size === 0) return undefined;
    // A failed object's reports were found in another order than their numbers'.
    return { reports: reports.filter((report) => this.#unapplied.has(report)), error: this.#error };
  }

  async #applyPart(part: readonly Report[]): Promise<void> {
    const { kind, clock } = this.parts;
    const isFailed = (report: Report) => this.#failed.has(kind.objectIdOf(report));
    for (const report of part.filter(isFailed)) this.#unapplied.add(report);
    const reports = part.filter((report) => !isFailed(report));
    if (reports.length === 0) return;
    try {
      await this.#change(reports, (row, own) => {
        // Reports are applied in the order of their numbers: first the ones that were not applied before.
        if (isBehind(row)) return this.#lookUpLater(row, own);
        const change = new Change(kind, row, clock.now()).reports(own);
        return change.after === row ? undefined : change;
      });
    } catch (error) {
      if (error instanceof Refusal || error instanceof DatabaseDiffersError) throw error;
      if (reports.length === 1 || this.#halvings >= maxHalvings) return this.#passOver(reports, error);
      this.#halvings += 1;
      const half = Math.ceil(reports.length / 2);
      await this.#applyPart(reports.slice(0, half));
      await this.#applyPart(reports.slice(half));
    }
  }

  /** A damaged row must not hold up other reports: these are looked up once it is repaired. */
  async #passOver(reports: readonly Report[], error: unknown): Promise<void> {
    const { kind, stuck } = this.parts;
    const byObject = groupBy(reports, (report) => kind.objectIdOf(report));
    // A guard that fails under the lock is no damage: another partner's transaction came first, and the look-up decides anew.
    if (!isGuardFalse(error)) stuck.note(this.partnerId, [...byObject.keys()], error);
    for (const [id, own] of byObject) {
      try {
        await this.#change(own, (row) => this.#lookUpLater(row, own));
      } catch (failure) {
        if (failure instanceof Refusal || failure instanceof DatabaseDiffersError) throw failure;
        this.#failed.add(id);
        for (const report of own) this.#unapplied.add(report);
        this.#error = failure;
      }
    }
  }

  #lookUpLater(row: Row, reports: readonly Report[]): Change<Row, Report> | undefined {
    const { kind, clock } = this.parts;
    return passOver(kind, row, reports, clock.realNow(), clock.now());
  }

  #change(
    reports: readonly Report[],
    decide: (row: Row, own: readonly Report[]) => Change<Row, Report> | undefined,
  ): Promise<Row[]> {
    const { kind, recorder, clock, position, signal } = this.parts;
    const byObject = groupBy(reports, (report) => kind.objectIdOf(report));
    const own = (row: Row) => byObject.get(row.id) ?? [];
    return recorder.changeMany(kind, {
      partnerId: this.partnerId,
      ids: [...byObject.keys()],
      extra: position.factFor([...byObject.keys()]),
      decide: (row, stored) => {
        if (signal.aborted) throw new DatabaseDiffersError('reports are read again since');
        position.check(stored, row);
        return decide(row, own(row));
      },
      decideUnknown: (row) => passOver(kind, row, own(row), row.checkAt ?? clock.realNow(), clock.now()),
    });
  }
}
