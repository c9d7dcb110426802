import type { Database } from '../db/database.ts';
import type { LockedPartner } from '../db/locked-partner.ts';
import type { SqlRow, Statement } from '../db/statement.ts';
import { appendEvents } from '../events/outbox.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdMaker } from '../lib/ids.ts';
import type { StartGate } from './gate.ts';
import type { Change, ObjectKind, Submittable } from './kind.ts';

/** What a change reads under the lock beside its object, and touches there. */
export interface Beside {
  readonly touches: readonly string[];
  readonly reads: readonly Statement[];
}

const nothing: Beside = { touches: [], reads: [] };

/** What the upstream said of an object that cannot be, by whichever way it came. The object's state was kept. */
export interface Contradiction {
  readonly kind: 'order' | 'application' | 'allocation';
  readonly partnerId: string;
  readonly id: string;
  readonly state: string;
  /** What it said, in our own words. */
  readonly detail: string;
}

/** What becomes of an object, as it is under the lock; undefined where nothing changes. */
type Decide<Row> = (row: Row, beside: readonly SqlRow[][]) => Change<Row> | undefined;

/** Saves what became of objects, with their events, in one partner transaction: the only way an object ever changes. */
export class Recorder {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly ids: IdMaker,
    /** Tells the relay that there is something to carry. */
    private readonly wakeRelay: () => void,
    /** Hears of what a person must look at, once it is recorded. */
    private readonly alarm: (contradiction: Contradiction) => void,
    /** Hears of each change with reports how long after its object was stored the earliest of them happened. */
    private readonly reported: (afterMs: number) => void,
    private readonly gate: StartGate,
  ) {}

  /**
   * Reads an object under its partner's lock, lets `decide` say what becomes of it, and saves that with its events.
   * `decide` answers undefined where nothing changes. Returns the object as it is afterwards; throws where there is no
   * such object, without asking `decide`. What has to be read beside it for that is handed to `decide` too. An object
   * that this version does not know (`ObjectKind.isKnown`) is returned as it is, without asking `decide`.
   */
  async change<Row extends Submittable>(
    kind: ObjectKind<Row>,
    partnerId: string,
    id: string,
    decide: Decide<Row>,
    beside: Beside = nothing,
  ): Promise<Row> {
    const [row] = await this.changeMany(kind, partnerId, [id], kind.find(partnerId, id), decide, beside);
    if (row === undefined) throw new Error(`${id} is not stored`);
    return row;
  }

  /**
   * The same for an object that was stored a moment ago: it is decided on the row as it was stored, and read under the
   * lock only where something came to it, or to its partner, since.
   */
  async changeStored<Row extends Submittable>(kind: ObjectKind<Row>, stored: Row, decide: Decide<Row>): Promise<Row> {
    const { partnerId, id } = stored;
    const [row] = await this.changeMany(kind, partnerId, [id], kind.find(partnerId, id), decide, nothing, {
      assumed: stored,
    });
    if (row === undefined) throw new Error(`${id} is not stored`);
    return row;
  }

  /**
   * The same for some objects of a partner, and the statement that finds them. Those that are not there are left out.
   * `assumed` is the one row it would find, as far as is known without reading. `decideUnknown` decides about objects that
   * this version does not know; without it they are left alone.
   */
  async changeMany<Row extends Submittable>(
    kind: ObjectKind<Row>,
    partnerId: string,
    ids: readonly string[],
    find: Statement,
    decide: Decide<Row>,
    beside: Beside = nothing,
    { assumed, decideUnknown }: { readonly assumed?: Row; readonly decideUnknown?: Decide<Row> } = {},
  ): Promise<Row[]> {
    await this.gate.pass();
    const count = beside.reads.length;
    const save = (rows: readonly SqlRow[][]) => (change: Change<Row>, partner: LockedPartner) =>
      kind.save(change, partner, rows);
    const saveAssumed = assumed && kind.saveAssumed?.bind(kind);
    const { rows, told, contradictions, reportedAfterMs } = await this.database.inPartner(partnerId, {
      touches: [...ids, ...beside.touches],
      reads: [find, ...beside.reads, ...(kind.saveReads?.(partnerId) ?? [])],
      decide: (partner, [found = [], ...read]) => {
        const besideRows = read.slice(0, count);
        const decided = found.map((sqlRow) => {
          const row = kind.toRow(sqlRow);
          const change = kind.isKnown(row) ? decide(row, besideRows) : decideUnknown?.(row, besideRows);
          return { row, change };
        });
        return this.#decision(kind, partner, decided, save(read.slice(count)));
      },
      decideAssumed:
        assumed &&
        saveAssumed &&
        ((partner) => this.#decision(kind, partner, [{ row: assumed, change: decide(assumed, []) }], saveAssumed)),
    });
    if (told) this.wakeRelay();
    for (const afterMs of reportedAfterMs) this.reported(afterMs);
    for (const contradiction of contradictions) this.alarm(contradiction);
    return rows;
  }

  /** What is written of some decided objects, and what they are then. */
  #decision<Row extends Submittable>(
    kind: ObjectKind<Row>,
    partner: LockedPartner,
    decided: readonly { readonly row: Row; readonly change: Change<Row> | undefined }[],
    save: (change: Change<Row>, partner: LockedPartner) => readonly Statement[],
  ) {
    const changes = decided.flatMap(({ change }) => (change === undefined ? [] : [change]));
    const events = changes.flatMap((change) => change.told.map((row) => kind.toEvent(row)));
    const writes = [
      ...changes.flatMap((change) => [...save(change, partner), ...change.writes]),
      ...appendEvents(partner, events, this.ids, this.clock.realNow()),
    ];
    const result = {
      rows: decided.map(({ row, change }) => change?.after ?? row),
      told: events.length > 0,
      reportedAfterMs: changes.flatMap(({ reportedAfterMs }) => reportedAfterMs ?? []),
      contradictions: changes.flatMap(({ after: { partnerId, id, state }, contradictions }) =>
        contradictions.map((detail) => ({ kind: kind.name, partnerId, id, state, detail })),
      ),
    };
    return { writes, result };
  }
}
