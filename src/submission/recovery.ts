import type { SubmissionsBroker, Taken } from '../broker/port.ts';
import type { Database } from '../db/database.ts';
import { isMisfit } from '../db/errors.ts';
import { underLease } from '../db/lease.ts';
import type { LockedPartner } from '../db/locked-partner.ts';
import { type SqlRow, type Statement, statement } from '../db/statement.ts';
import { leaveVersionGaps } from '../events/version-gaps.ts';
import { ApiError } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import { pause, type Worker } from '../lib/worker.ts';
import type { StartGate } from './gate.ts';
import type { ObjectKind, RenewedSubmission, Stored, Submittable } from './kind.ts';
import { type FactReader, type Note, type Notes, UnreadableNote } from './notes.ts';

/** How one kind of object is stored anew from its note. */
export interface RecoveredKind<Row extends Submittable> extends ObjectKind<Row> {
  /** How ids of the kind begin. */
  readonly prefix: string;
  findByKey(partnerId: string, idempotencyKey: string): Statement;
  /** Where objects of the kind are. */
  readonly table: 'orders' | 'applications' | 'allocations';
  /** What must be known under the lock. */
  renewReads(partnerId: string): readonly Statement[];
  /**
   * Stores what was sent as it is when nobody knows what became of it, for the reconciler to find out: nothing that was
   * checked when it was first stored is checked again. Throws `wallet_too_low` where its money is not there, and
   * `UnreadableNote` where the facts are not those that this version knows.
   */
  renew(
    id: string,
    submission: RenewedSubmission,
    facts: FactReader,
    partner: LockedPartner,
    rows: readonly SqlRow[][],
  ): Stored<Row>;
}

export interface RecoveryOptions {
  readonly database: Database;
  readonly broker: SubmissionsBroker;
  // biome-ignore lint/suspicious/noExplicitAny: kinds of several rows stand in one list; each is only used with itself.
  readonly kinds: readonly RecoveredKind<any>[];
  readonly notes: Notes;
  readonly gate: StartGate;
  readonly log: Logger;
  readonly holder: string;
}

const positionName = 'submissions';
/** At which position the database was last said, or seen, to be restored. */
const restoredName = 'restored-at-submission';
const mostAtOnce = 1_000;
const lookEveryMs = 10_000;
/** While something cannot be stored that must be. */
const lookEveryWhileHeldMs = 1_000;
const retryMs = 500;

/** What became of one submission that is not stored here. */
type Outcome = 'renewed' | 'passed over' | 'held';

/**
 * Stores anew what the broker was given and the database lacks, as after a restore from a backup. The broker lists what it
 * took, each with the note that we sent with it; what is listed and not stored is stored from its note, under its own id
 * and Idempotency-Key, as it was before anything came back. What became of it then comes as it does after a crash: from the
 * broker's record, by reports and the reconciler.
 */
export class Recovery {
  /** Looks once, as soon as the broker answers, and opens the gate. */
  readonly starting: Worker;
  /** Looks now and then, in one process at a time, so that a start has little to look at. */
  readonly worker: Worker;
  #looking: Promise<void> | undefined;
  #saidMissing = false;

  constructor(private readonly options: RecoveryOptions) {
    this.starting = { name: 'start', run: (signal) => this.#start(signal) };
    this.worker = underLease(options.database, positionName, options.holder, async ({ signal }) => {
      while (!signal.aborted) {
        await pause(options.gate.held.length > 0 ? lookEveryWhileHeldMs : lookEveryMs, signal);
        if (!signal.aborted) await this.look();
      }
    });
  }

  /** Looks through what the broker took since the last look. Those who ask meanwhile share one. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #start(signal: AbortSignal): Promise<void> {
    const { gate, log } = this.options;
    for (let tries = 0; !gate.isOpen && !signal.aborted; tries += 1) {
      try {
        await this.look();
        gate.open();
      } catch (error) {
        if (tries % 20 === 0) {
          log.warn({ err: error }, 'what the broker was given cannot be listed; nothing new is taken until it can');
        }
        await pause(retryMs, signal);
      }
    }
    // A worker that ends is begun again.
    while (!signal.aborted) await pause(lookEveryMs, signal);
  }

  async #look(): Promise<void> {
    const { database, broker, gate, log } = this.options;
    const first = await readPosition(database, positionName);
    const held = new Set<string>();
    for (let position = first; ; ) {
      const taken = await broker.submissionsAfter(position, mostAtOnce);
      if (taken === undefined) {
        if (!this.#saidMissing)
          log.warn('the broker does not list what it was given: a restored database stays as it is');
        this.#saidMissing = true;
        return;
      }
      const lost = await this.#lostOf(taken);
      // Later ones are the last sends of a process that ended meanwhile. What is of no kind of ours was never stored here.
      const ours = lost.filter((one) => this.#kindOf(one) !== undefined);
      if (ours.length > 0 && !gate.isOpen) await declareRestored(database, first);
      for (const one of lost) {
        const outcome = await this.#renew(one);
        if (outcome === 'held') held.add(this.#kindOf(one)?.name ?? '');
      }
      position = taken.at(-1)?.number ?? position;
      if (held.size === 0 && taken.length > 0) await movePosition(database, positionName, position);
      if (taken.length < mostAtOnce) break;
    }
    gate.hold(held);
  }

  async #lostOf(taken: readonly Taken[]): Promise<Taken[]> {
    const known = new Set<string>();
    for (const kind of this.options.kinds) {
      const ids = taken.filter((one) => this.#kindOf(one) === kind).map(({ clientId }) => clientId);
      if (ids.length === 0) continue;
      const [rows = []] = await this.options.database.readAll([
        statement(`SELECT id FROM ${kind.table} WHERE id IN (?)`, ids),
      ]);
      for (const { id } of rows) known.add(String(id));
    }
    return taken.filter(({ clientId }) => !known.has(clientId));
  }

  // biome-ignore lint/suspicious/noExplicitAny: see `kinds`.
  #kindOf({ clientId }: Taken): RecoveredKind<any> | undefined {
    return this.options.kinds.find(({ prefix }) => clientId.startsWith(`${prefix}_`));
  }

  async #renew(taken: Taken): Promise<Outcome> {
    const { database, notes, log } = this.options;
    const { clientId: id, number } = taken;
    const kind = this.#kindOf(taken);
    let note: Note | undefined;
    try {
      note = notes.read(id, taken.note);
    } catch (error) {
      return this.#hold(id, error);
    }
    if (kind === undefined || note === undefined) {
      log.error({ objectId: id, number: Number(number) }, 'the broker was given what is not ours');
      return 'passed over';
    }
    const { partnerId, idempotencyKey, requestDigest, origin, facts } = note;
    const partners = await database.read(statement('SELECT id FROM partners WHERE id = ?', partnerId));
    if (partners.length === 0) {
      log.error({ objectId: id, partnerId }, 'what the broker was given is of a partner who is not stored here');
      return 'passed over';
    }
    try {
      const isNew = await database.inPartner(partnerId, {
        touches: [id, `${kind.name} key ${idempotencyKey}`],
        reads: [kind.find(partnerId, id), kind.findByKey(partnerId, idempotencyKey), ...kind.renewReads(partnerId)],
        decide: (partner, [found = [], sameKey = [], ...rows]) => {
          if (found.length > 0) return { writes: [], result: undefined };
          const isFree = sameKey.length === 0;
          const submission = { partnerId, requestDigest, origin, idempotencyKey: isFree ? idempotencyKey : null };
          return { writes: kind.renew(id, submission, facts, partner, rows).writes, result: { isFree } };
        },
      });
      if (isNew === undefined) return 'renewed';
      if (!isNew.isFree)
        log.error({ objectId: id, partnerId }, 'a request was sent twice: its key was lost, and came again');
      log.warn({ objectId: id, partnerId }, "what the database had lost was stored anew from the broker's record");
      return 'renewed';
    } catch (error) {
      if (error instanceof UnreadableNote || isMisfit(error)) return this.#hold(id, error);
      if (!(error instanceof ApiError) || error.code !== 'wallet_too_low') throw error;
      log.error(
        { objectId: id, partnerId, err: error },
        'an allocation that was lost cannot be stored: its wallet lacks the money, so credits were lost too',
      );
      return 'held';
    }
  }

  /**
   * What another version sent and this one cannot store is held until that version stores it: a partner who repeats the
   * request meanwhile would have it sent again.
   */
  #hold(id: string, error: unknown): Outcome {
    this.options.log.error(
      { objectId: id, err: error },
      'what was lost cannot be stored from the note of another version: start a replica of that version',
    );
    return 'held';
  }
}

/**
 * Says that the database was restored from a backup: partners may have seen events that it does not know of, so no version
 * of theirs is used again. To be said before a gateway starts; one that finds it by itself does the same, once.
 */
export async function declareRestored(database: Database, position?: bigint): Promise<boolean> {
  const at = position ?? (await readPosition(database, positionName));
  const [row] = await database.read(statement('SELECT position FROM positions WHERE name = ?', restoredName));
  if (row?.position === at.toString()) return false;
  await leaveVersionGaps(database);
  await database.write(
    statement(
      'INSERT INTO positions (name, position) VALUES (?, ?) ON DUPLICATE KEY UPDATE position = VALUES(position)',
      restoredName,
      at.toString(),
    ),
  );
  return true;
}

async function readPosition(database: Database, name: string): Promise<bigint> {
  const [row] = await database.read(statement('SELECT position FROM positions WHERE name = ?', name));
  return row === undefined ? 0n : BigInt(String(row.position));
}

/** Never back: whoever looks, has looked at all before it. */
async function movePosition(database: Database, name: string, position: bigint): Promise<void> {
  await database.write(
    statement(
      `INSERT INTO positions (name, position) VALUES (?, ?) ON DUPLICATE KEY UPDATE
        position = IF(CAST(position AS UNSIGNED) < CAST(VALUES(position) AS UNSIGNED), VALUES(position), position)`,
      name,
      position.toString(),
    ),
  );
}
