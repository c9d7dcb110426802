import { partners } from '../auth/table.ts';
import type { SubmissionsBroker, Taken } from '../broker/port.ts';
import type { Database } from '../db/database.ts';
import { isMisfit } from '../db/errors.ts';
import { sharing, together, whether } from '../db/facts.ts';
import { underLease } from '../db/lease.ts';
import { statement } from '../db/statement.ts';
import { leaveVersionGaps } from '../events/version-gaps.ts';
import type { Clock } from '../lib/clock.ts';
import { ApiError } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import { pause, type Worker } from '../lib/worker.ts';
import { type AnyKind, type Kinds, type NewSubmission, newRow, unclearReason } from './kind.ts';
import { type FactReader, type Note, type Notes, readFacts, UnreadableNote } from './notes.ts';
import type { StartGate } from './start-gate.ts';
import { storing } from './submit.ts';
import { advancePosition, readPosition, savePosition } from './table.ts';

export interface RecoveryOptions {
  readonly database: Database;
  readonly broker: SubmissionsBroker;
  readonly kinds: Kinds;
  readonly clock: Clock;
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

/** What the history of an object says that was lost and restored. */
const restoredDetail = "stored anew from the note in the broker's record: the database had lost it";

/** What became of one submission that is not stored here. */
type Outcome = 'restored' | 'passed over' | 'held';

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
    const { database, broker, gate, log, kinds } = this.options;
    const first = BigInt((await readPosition(database, positionName)) ?? 0);
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
      const ours = lost.filter((one) => kinds.ofId(one.clientId) !== undefined);
      if (ours.length > 0 && !gate.isOpen) await declareRestored(database, first);
      for (const one of lost) {
        const outcome = await this.#restore(one);
        if (outcome === 'held') held.add(kinds.ofId(one.clientId)?.name ?? '');
      }
      position = taken.at(-1)?.number ?? position;
      if (held.size === 0 && taken.length > 0) await database.write(advancePosition(positionName, position));
      if (taken.length < mostAtOnce) break;
    }
    gate.hold(held);
  }

  async #lostOf(taken: readonly Taken[]): Promise<Taken[]> {
    const { kinds, database } = this.options;
    const known = new Set<string>();
    for (const kind of kinds.all) {
      const ids = taken.filter((one) => kinds.ofId(one.clientId) === kind).map(({ clientId }) => clientId);
      if (ids.length === 0) continue;
      const [rows = []] = await database.readAll([statement(`SELECT id FROM ${kind.table.name} WHERE id IN (?)`, ids)]);
      for (const { id } of rows) known.add(String(id));
    }
    return taken.filter(({ clientId }) => !known.has(clientId));
  }

  async #restore(taken: Taken): Promise<Outcome> {
    const { database, notes, log, kinds, clock } = this.options;
    const { clientId: id, number } = taken;
    const kind = kinds.ofId(id);
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
    const { submission, facts } = note;
    const { partnerId, idempotencyKey } = submission;
    const owners = await database.read(partners.find({ id: partnerId }));
    if (owners.length === 0) {
      log.error({ objectId: id, partnerId }, 'what the broker was given is of a partner who is not stored here');
      return 'passed over';
    }
    try {
      const isNew = await database.inPartner(partnerId, {
        touches: [id, `${kind.name} key ${idempotencyKey}`],
        fact: together({
          isStored: whether(kind.table.find({ partnerId, id }), false),
          isUsed: whether(kind.table.find({ partnerId, idempotencyKey }), false),
          shared: sharing(...(kind.shared?.(partnerId) ?? [])),
        }),
        decide: ({ isStored, isUsed }, partner) => {
          if (isStored) return { writes: [], result: undefined };
          const restored = { ...submission, idempotencyKey: isUsed ? null : idempotencyKey };
          const row = restoredRow(kind, id, restored, facts, clock.realNow());
          kind.take?.(row, partner);
          return { writes: storing(kind, row, restoredDetail), result: { isFree: !isUsed } };
        },
      });
      if (isNew === undefined) return 'restored';
      if (!isNew.isFree)
        log.error({ objectId: id, partnerId }, 'a request was sent twice: its key was lost, and came again');
      log.warn({ objectId: id, partnerId }, "what the database had lost was restored from the broker's record");
      return 'restored';
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

/** An object as it was when it was sent and nothing more is known of it, for the reconciler to find out. */
function restoredRow(kind: AnyKind, id: string, submission: NewSubmission, facts: FactReader, realNow: number) {
  const createdAt = facts.instant('createdAt');
  const noted = readFacts(kind, facts);
  const times = { now: createdAt, notAfter: facts.instant('notAfter'), checkAt: realNow };
  return newRow(kind, id, submission, { ...noted, state: 'uncertain', reason: unclearReason(kind) }, times);
}

/**
 * Says that the database was restored from a backup: partners may have seen events that it does not know of, so no version
 * of theirs is used again. To be said before a gateway starts; one that finds it by itself does the same, once.
 */
export async function declareRestored(database: Database, position?: bigint): Promise<boolean> {
  const at = (position ?? (await readPosition(database, positionName)) ?? 0).toString();
  if ((await readPosition(database, restoredName)) === at) return false;
  await leaveVersionGaps(database);
  await database.write(savePosition(restoredName, at));
  return true;
}
