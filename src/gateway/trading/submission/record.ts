import type { Clock } from '../../../kit/clock.ts';
import type { Logger } from '../../../kit/log.ts';
import { appendEvents, type NewEvent } from '../../delivery/events/outbox.ts';
import type { IdMaker } from '../../edge/ids.ts';
import type { Metrics } from '../../edge/metrics.ts';
import type { Database } from '../../store/database.ts';
import { allFacts, existsFact, type Fact, noFact, sharedFact } from '../../store/facts.ts';
import type { PartnerTransaction } from '../../store/partner-transaction.ts';
import { type Statement, statement } from '../../store/statement.ts';
import type { Table } from '../../store/table.ts';
import type { Change } from './change.ts';
import type { ClockWatch } from './clock-watch.ts';
import { count } from './day-limit.ts';
import { freeOldKey } from './key-retention.ts';
import type { Kind } from './kind.ts';
import type { StartGate } from './start-gate.ts';
import { type Submission, sentFrom } from './table.ts';

export interface RecorderParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly ids: IdMaker;
  readonly gate: StartGate;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'contradictions' | 'falseRefusals' | 'partner'>;
  /** Notified when there are events to publish. */
  readonly relay: { notify(): void };
  /** For each change made by reports, it is told the time from the storing of the object to the earliest of these reports. */
  readonly clocks: Pick<ClockWatch, 'reported'>;
}

/** Decides how an object changes, from its row under the lock; undefined if nothing changes. */
type Decide<Row extends Submission, Report, Extra> = (row: Row, extra: Extra) => Change<Row, Report> | undefined;

/** The objects of a change, and the other facts that it depends on. */
interface Objects<Row extends Submission, Report, Extra> {
  readonly partnerId: string;
  readonly ids: readonly string[];
  readonly decide: Decide<Row, Report, Extra>;
  /** Decides about objects that this version does not know. Without it they do not change. */
  readonly decideUnknown?: Decide<Row, Report, Extra>;
  readonly extra?: Fact<Extra>;
  readonly touches?: readonly string[];
  /** The expected row, if there is one object. */
  readonly expected?: Row;
}

/** Saves changed objects with their events in one partner transaction. No other code changes objects. */
export class Recorder {
  constructor(private readonly parts: RecorderParts) {}

  /**
   * Reads an object under its partner's lock, calls `decide`, and saves the change with its events.
   * Returns the object as it is afterwards. Throws if there is no such object, without calling `decide`. An object that
   * this version does not know (`Table.isKnown`) is returned as it is. `extra` is a further fact for `decide`.
   */
  async change<Row extends Submission, Report, Extra = undefined>(
    kind: Kind<Row, Report>,
    partnerId: string,
    id: string,
    decide: Decide<Row, Report, Extra>,
    extra?: { readonly fact: Fact<Extra>; readonly touches: readonly string[] },
  ): Promise<Row> {
    const given = extra === undefined ? {} : { extra: extra.fact, touches: extra.touches };
    const [row] = await this.changeMany(kind, { partnerId, ids: [id], decide, ...given });
    if (row === undefined) throw new Error(`${id} is not stored`);
    return row;
  }

  /**
   * The same for an object that was read or stored a moment ago. It decides on that row, and reads it again under
   * the lock only if the object or its partner has changed since.
   */
  async changeCached<Row extends Submission, Report>(
    kind: Kind<Row, Report>,
    expected: Row,
    decide: Decide<Row, Report, undefined>,
  ): Promise<Row> {
    const { partnerId, id } = expected;
    const [row] = await this.changeMany(kind, { partnerId, ids: [id], decide, expected });
    if (row === undefined) throw new Error(`${id} is not stored`);
    return row;
  }

  /** The same for some objects of a partner. Those that are not there are left out. */
  async changeMany<Row extends Submission, Report, Extra = undefined>(
    kind: Kind<Row, Report>,
    { partnerId, ids, decide, decideUnknown, extra, touches = [], expected }: Objects<Row, Report, Extra>,
  ): Promise<Row[]> {
    const { database, gate, relay, clocks, clock } = this.parts;
    await gate.pass();
    const { rows, changes } = await database.inPartnerTransaction(partnerId, {
      touches: [...ids, ...touches],
      fact: allFacts({
        rows: rowsOf(kind.table, partnerId, ids, expected),
        extra: (extra ?? noFact) as Fact<Extra>,
        shared: sharedFact(...(kind.shared?.(partnerId) ?? [])),
      }),
      decide: ({ rows, extra }, partner) => {
        const decided = rows.map((row) => ({
          row,
          change: kind.table.isKnown(row) ? decide(row, extra) : decideUnknown?.(row, extra),
        }));
        const changes = decided.flatMap(({ change }) => change ?? []);
        return {
          writes: this.#save(kind, changes, partner),
          result: { rows: decided.map(({ row, change }) => change?.after ?? row), changes },
        };
      },
    });
    if (changes.some(({ events }) => events.length > 0)) relay.notify();
    for (const { after, reportedAfterMs, inconsistencies } of changes) {
      if (reportedAfterMs !== undefined) clocks.reported(reportedAfterMs, sentFrom(after) - clock.now());
      for (const detail of inconsistencies) this.#warnOf(kind.name, after, detail);
    }
    return rows;
  }

  /** The broker reported something impossible about an object. The object's state was kept; a person must look at it. */
  #warnOf(kind: string, { partnerId, id, state }: Submission, detail: string): void {
    const { metrics, log } = this.parts;
    const labels = { kind, partner: metrics.partner(partnerId) };
    metrics.contradictions.inc(labels);
    if (state === 'refused' || state === 'unplaced') {
      metrics.falseRefusals.inc(labels);
      log.error(
        { kind, partnerId, objectId: id, state, reported: detail },
        'the broker has what its partner was told had never arrived',
      );
    }
    log.error(
      { kind, partnerId, objectId: id, state, contradiction: detail },
      'the upstream says what contradicts the state of an object',
    );
  }

  #save<Row extends Submission, Report>(
    kind: Kind<Row, Report>,
    changes: readonly Change<Row, Report>[],
    partner: PartnerTransaction,
  ): Statement[] {
    const { clock, ids } = this.parts;
    const events = changes.flatMap((change) =>
      change.events.map((row) => ({
        type: `${kind.name}.${row.state}`,
        occurredAt: row.updatedAt,
        origin: row,
        data: { case: kind.name, value: kind.toMessage(row) } as NewEvent['data'],
      })),
    );
    return [
      ...changes.flatMap(({ before, after, writes }) => {
        count(kind.dayLimit, before, after, partner);
        return [
          ...kind.table.update(before, after),
          // Once an object is final and its Idempotency-Key is too old to be used again, the key is removed from its row.
          ...(kind.states.isFinal(after.state) ? freeOldKey(kind.table.name, after, clock) : []),
          ...kind.settle(before, after, partner),
          ...writes,
        ];
      }),
      ...appendEvents(partner, events, ids, clock.realNow()),
    ];
  }
}

/**
 * The present rows of some objects. All columns are compared to prove that a row is still as expected. So a change by any
 * writer is noticed, even if that writer does not count its changes.
 */
function rowsOf<Row extends Submission>(
  table: Table<Row>,
  partnerId: string,
  ids: readonly string[],
  expected: Row | undefined,
): Fact<Row[]> {
  const read = table.find({ partnerId, id: ids } as never);
  const fact: Fact<Row[]> = { reads: [read], value: ([rows = []]) => rows.map((row) => table.all.read(row)) };
  if (expected === undefined) return fact;
  const { sql, values } = table.isRow(expected);
  const isSame = existsFact(statement(`SELECT 1 FROM ${table.name} WHERE ${sql}`, ...values), true).expected;
  return { expected: isSame && { ...isSame, value: [expected] }, ...fact };
}
