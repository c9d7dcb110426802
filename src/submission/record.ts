import type { Database } from '../db/database.ts';
import { type Fact, noFact, sharing, together, whether } from '../db/facts.ts';
import type { PartnerTransaction } from '../db/partner-transaction.ts';
import { type Statement, statement } from '../db/statement.ts';
import type { Table } from '../db/table.ts';
import { appendEvents } from '../events/outbox.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdMaker } from '../lib/ids.ts';
import type { Change } from './change.ts';
import { freeOldKey } from './key-retention.ts';
import type { Kind } from './kind.ts';
import type { StartGate } from './start-gate.ts';
import type { Submission } from './table.ts';

/** What the upstream said of an object that cannot be, by whichever way it came. The object's state was kept. */
export interface Inconsistency {
  /** The kind's name. */
  readonly kind: string;
  readonly partnerId: string;
  readonly id: string;
  readonly state: string;
  /** What it said, in our own words. */
  readonly detail: string;
}

export interface RecorderParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly ids: IdMaker;
  readonly gate: StartGate;
  /** Called when there are events to publish. */
  readonly onEvents: () => void;
  /** Called with what a person must look at, once it is recorded. */
  readonly onInconsistency: (inconsistency: Inconsistency) => void;
  /** Called for each change with reports: how long after its object was stored the earliest of them happened. */
  readonly onReported: (afterMs: number) => void;
}

/** What becomes of an object, as it is under the lock; undefined if nothing changes. */
type Decide<Row extends Submission, Report, Extra> = (row: Row, extra: Extra) => Change<Row, Report> | undefined;

/** Which objects a change is about, and what else it depends on. */
interface Objects<Row extends Submission, Report, Extra> {
  readonly partnerId: string;
  readonly ids: readonly string[];
  readonly decide: Decide<Row, Report, Extra>;
  /** Decides about objects that this version does not know; without it they are left alone. */
  readonly decideUnknown?: Decide<Row, Report, Extra>;
  readonly extra?: Fact<Extra>;
  readonly touches?: readonly string[];
  /** The one object, as it is expected to be. */
  readonly expected?: Row;
}

/** Saves what became of objects, with their events, in one partner transaction: the only way an object ever changes. */
export class Recorder {
  constructor(private readonly parts: RecorderParts) {}

  /**
   * Reads an object under its partner's lock, lets `decide` say what becomes of it, and saves that with its events.
   * Returns the object as it is afterwards. Throws if there is no such object, without calling `decide`. An object that
   * this version does not know (`Table.isKnown`) is returned as it is. `extra` is what `decide` depends on besides.
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
   * The same for an object that was read or stored a moment ago. It is decided on the row as it was then, and read under
   * the lock only if something came to it, or to its partner, since.
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
    const { database, gate, onEvents, onReported, onInconsistency } = this.parts;
    await gate.pass();
    const { rows, changes } = await database.inPartner(partnerId, {
      touches: [...ids, ...touches],
      fact: together({
        rows: rowsOf(kind.table, partnerId, ids, expected),
        extra: (extra ?? noFact) as Fact<Extra>,
        shared: sharing(...(kind.shared?.(partnerId) ?? [])),
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
    if (changes.some(({ events }) => events.length > 0)) onEvents();
    for (const { after, reportedAfterMs, inconsistencies } of changes) {
      if (reportedAfterMs !== undefined) onReported(reportedAfterMs);
      const { id, state } = after;
      for (const detail of inconsistencies) onInconsistency({ kind: kind.name, partnerId, id, state, detail });
    }
    return rows;
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
        ...kind.toEvent(row),
      })),
    );
    return [
      ...changes.flatMap(({ before, after, writes }) => [
        ...kind.table.update(before, after),
        // An object whose key nobody may use any more loses it when it is final.
        ...(kind.states.isFinal(after.state) ? freeOldKey(kind.table.name, after, clock) : []),
        ...(kind.settle?.(before, after, partner) ?? []),
        ...writes,
      ]),
      ...appendEvents(partner, events, ids, clock.realNow()),
    ];
  }
}

/**
 * Some objects, as they are. Everything that comes to an object makes a step of its history or is counted as a check, so a
 * row with the same counts is the same row.
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
  const { id, state, steps, checks } = expected;
  const { sql, values } = table.where({ partnerId, id, state, steps, checks } as never);
  const isSame = whether(statement(`SELECT 1 FROM ${table.name} WHERE ${sql}`, ...values), true).expected;
  return { ...fact, expected: isSame && { ...isSame, value: [expected] } };
}
