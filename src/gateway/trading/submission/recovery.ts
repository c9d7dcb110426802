import type { Clock } from '../../../kit/clock.ts';
import type { Logger } from '../../../kit/log.ts';
import { Refusal } from '../../../kit/refusal.ts';
import { pause, type Worker } from '../../../kit/worker.ts';
import { partners } from '../../edge/auth/store.ts';
import { ApiError, isUnproven } from '../../edge/errors.ts';
import type { Database } from '../../store/database.ts';
import { isMisfit } from '../../store/errors.ts';
import { allFacts, existsFact, sharedFact } from '../../store/facts.ts';
import { type SqlRow, type Statement, statement } from '../../store/statement.ts';
import type { Broker, BrokerId, Taken } from '../broker/broker.ts';
import { type AnyKind, type Kinds, type NewSubmission, newRow, unclearReason } from './kind.ts';
import { type FactReader, type Note, type Notes, readFacts, UnreadableNote } from './notes.ts';
import { advancePosition, readPosition } from './positions.ts';
import { noteRestore, restoredPosition, submissionsPosition } from './restored.ts';
import type { HeldObjects, StartGate } from './start-gate.ts';
import { storing } from './submit.ts';
import { byId, readUpToDate } from './table.ts';

export interface RecoveryOptions {
  readonly database: Database;
  readonly broker: Pick<Broker, 'id' | 'submissions'>;
  readonly kinds: Kinds;
  readonly clock: Clock;
  readonly notes: Notes;
  readonly gate: StartGate;
  readonly log: Logger;
  /** The ids of secret keys that may have sealed what is lost, and that this process does not have. */
  readonly lackedKeys: () => Promise<readonly string[]>;
  /** Whether what looks like ours, and has a note that no key opens, may be of another installation. */
  readonly isShared: boolean;
}

const maxAtOnce = 1_000;
/** How often the list is polled, and while an object cannot be restored. A long poll is followed by a longer rest. */
const pollEveryMs = { usual: 10_000, whileHeld: 1_000 };
const maxOfTheTime = 0.1;
const retryMs = 500;

/** Logs why an object that was lost cannot be restored. */
type Obstacle = (log: Logger, facts: object) => void;

const noKey: Obstacle = (log, facts) =>
  log.error(facts, 'what was lost cannot be restored: no key of MARINA_SECRET_KEY opens its note');
const noteOfOtherVersion: Obstacle = (log, facts) =>
  log.error(facts, 'what was lost cannot be stored from the note of another version: start a replica of that version');
const damagedRows: Obstacle = (log, facts) =>
  log.error(facts, 'what was lost cannot be stored: rows of its partner are damaged, or contradict it');
const unsealedWallet: Obstacle = (log, facts) =>
  log.error(facts, 'an allocation that was lost cannot be stored: its wallet has no right seal');
const poorWallet: Obstacle = (log, facts) =>
  log.error(
    facts,
    'an allocation that was lost cannot be stored: its wallet lacks the money, so credits were lost too',
  );

/** The history's sentence for a restored object. */
const restoredDetail = "restored from the note in the broker's record: the database had lost it";

/**
 * The outcome for one submission that is not stored here. One that cannot be restored holds new ones of its kind and partner,
 * or of all partners if its own is not known.
 */
type Outcome = 'restored' | 'passed over' | HeldObjects;

/**
 * Restores the objects that the broker was sent and the database lacks, as after a restore from a backup. The broker lists
 * the submissions it took, each with our note. A submission that is not stored is restored from its note, with its own id
 * and Idempotency-Key, as it was when it was sent. Its outcome then comes as after a crash: from the
 * broker's record, by reports and the reconciler.
 */
export class Recovery {
  /**
   * Looks as soon as the broker answers, and opens the start-up gate. Then it looks every few seconds, so that a start has
   * little to do, and so that each process knows by itself what cannot be restored.
   */
  readonly worker: Worker;
  #finding: Promise<void> | undefined;
  #saidMissing = false;
  /** The objects that are held, each logged once. */
  #held: ReadonlySet<string> = new Set();

  constructor(private readonly options: RecoveryOptions) {
    this.worker = { name: 'recovery', run: (signal) => this.#run(signal) };
  }

  /** Goes through the submissions that the broker took since the last run. Callers at the same time share one run. */
  findLost(): Promise<void> {
    this.#finding ??= this.#goThrough().finally(() => {
      this.#finding = undefined;
    });
    return this.#finding;
  }

  async #run(signal: AbortSignal): Promise<void> {
    await this.#start(signal);
    for (let tookMs = 0; !signal.aborted; ) {
      const leastMs = this.options.gate.held.length > 0 ? pollEveryMs.whileHeld : pollEveryMs.usual;
      await pause(Math.max(leastMs, tookMs / maxOfTheTime), signal);
      if (signal.aborted) return;
      const began = performance.now();
      await this.findLost();
      tookMs = performance.now() - began;
    }
  }

  async #start(signal: AbortSignal): Promise<void> {
    const { gate, log } = this.options;
    for (let tries = 0; !gate.isOpen && !signal.aborted; tries += 1) {
      try {
        await this.findLost();
        gate.open();
      } catch (error) {
        if (tries % 20 === 0) {
          log.warn({ err: error }, 'what the broker was given cannot be listed; nothing new is taken until it can');
        }
        await pause(retryMs, signal);
      }
    }
  }

  async #goThrough(): Promise<void> {
    const { database, broker, gate, log, kinds } = this.options;
    const first = BigInt((await readPosition(database, submissionsPosition(broker.id))) ?? 0);
    const held: HeldObjects[] = [];
    const heldIds = new Set<string>();
    for (let position = first; ; ) {
      const taken = await broker.submissions.submissionsAfter(position, maxAtOnce);
      if (taken === undefined) {
        if (!this.#saidMissing)
          log.warn('the broker does not list what it was given: a restored database stays as it is');
        this.#saidMissing = true;
        return;
      }
      const lost = await this.#lostOf(taken);
      // Later ones are the last sends of a process that ended meanwhile. What is of no kind of ours was never stored here.
      const ours = lost.filter((one) => kinds.ofId(one.clientId) !== undefined);
      if (ours.length > 0 && !gate.isOpen) await declareRestored(database, broker.id, first);
      const passedOver = new Set<string>();
      for (const one of lost) {
        const outcome = await this.#restore(one);
        if (outcome === 'passed over') passedOver.add(one.clientId);
        if (typeof outcome === 'string') continue;
        heldIds.add(one.clientId);
        const { kind, partnerId } = outcome;
        if (!held.some((other) => other.kind === kind && other.partnerId === partnerId)) held.push(outcome);
      }
      position = taken.at(-1)?.number ?? position;
      if (held.length === 0 && taken.length > 0) await this.#advance(taken, passedOver, position);
      if (taken.length < maxAtOnce) break;
    }
    gate.hold(held);
    this.#held = heldIds;
  }

  /** Those that are not stored. A read can come from a replica that lags: the rest is looked for in a transaction. */
  async #lostOf(taken: readonly Taken[]): Promise<Taken[]> {
    const { database } = this.options;
    const unread = without(taken, await database.readAll(this.#find(taken)));
    if (unread.length === 0) return [];
    return database.transaction(this.#find(unread), (rows) => ({ writes: [], result: without(unread, rows) }));
  }

  /**
   * Moves the position past some submissions, with the proof that those which are stored still are: a failover can lose them
   * after they were seen. Throws without it: the next run looks at them again, and no later ones may be passed before them.
   */
  async #advance(taken: readonly Taken[], passedOver: ReadonlySet<string>, position: bigint): Promise<void> {
    const { database, broker } = this.options;
    const needed = taken.filter(({ clientId }) => !passedOver.has(clientId));
    await database.transaction(this.#find(needed), (rows) => {
      const [lost] = without(needed, rows);
      if (lost !== undefined) throw new Error(`the database has lost ${lost.clientId}, which it had a moment before`);
      return { writes: [advancePosition(submissionsPosition(broker.id), position)], result: undefined };
    });
  }

  /** Finds those of some submissions that are stored. */
  #find(taken: readonly Taken[]): Statement[] {
    const { kinds } = this.options;
    return kinds.all.flatMap((kind) => {
      const ids = taken.filter((one) => kinds.ofId(one.clientId) === kind).map(({ clientId }) => clientId);
      // With a column that is not in the index: by some statistics the server would read the whole index.
      return ids.length === 0 ? [] : [statement(`SELECT id, created_at FROM ${byId(kind)} WHERE id IN (?)`, ids)];
    });
  }

  async #restore(taken: Taken): Promise<Outcome> {
    const { database, notes, log, kinds, clock } = this.options;
    const { clientId: id, number } = taken;
    const kind = kinds.ofId(id);
    let note: Note | undefined;
    try {
      note = notes.read(id, taken.note);
    } catch (error) {
      this.#logOnce(id, { err: error }, noteOfOtherVersion);
      return { kind: kind?.name ?? '' };
    }
    if (kind === undefined || (note === undefined && !(await this.#mayBeOurs(id)))) {
      log.error({ objectId: id, number: Number(number) }, 'the broker was given what is not ours');
      return 'passed over';
    }
    if (note === undefined) return { kind: kind.name };
    const { submission, facts } = note;
    const { partnerId, idempotencyKey } = submission;
    const [partner] = await readUpToDate(database, partners.find({ id: partnerId }));
    if (partner === undefined) {
      log.error({ objectId: id, partnerId }, 'what the broker was given is of a partner who is not stored here');
      return 'passed over';
    }
    try {
      const isNew = await database.inPartnerTransaction(partnerId, {
        touches: [id, `${kind.name} key ${idempotencyKey}`],
        fact: allFacts({
          isStored: existsFact(kind.table.find({ partnerId, id }), false),
          isUsed: existsFact(kind.table.find({ partnerId, idempotencyKey }), false),
          shared: sharedFact(...(kind.shared?.(partnerId) ?? [])),
        }),
        decide: ({ isStored, isUsed }, partner) => {
          if (isStored) return { writes: [], result: undefined };
          const restored = { ...submission, idempotencyKey: isUsed ? null : idempotencyKey };
          const row = restoredRow(kind, id, restored, facts, clock.realNow());
          return { writes: storing(kind, row, partner, restoredDetail), result: { isFree: !isUsed } };
        },
      });
      if (isNew === undefined) return 'restored';
      if (!isNew.isFree)
        log.error({ objectId: id, partnerId }, 'a request was sent twice: its key was lost, and came again');
      log.warn({ objectId: id, partnerId }, "what the database had lost was restored from the broker's record");
      return 'restored';
    } catch (error) {
      const obstacle = obstacleIn(error);
      if (obstacle === undefined) throw error;
      this.#logOnce(id, obstacle === noteOfOtherVersion ? { err: error } : { partnerId, err: error }, obstacle);
      return { kind: kind.name, partnerId };
    }
  }

  /**
   * Whether a note that no key opens can be ours. Then its kind is held: the request that it belongs to may come again. The
   * database cannot prove that it is not, because it may be older than the key.
   */
  async #mayBeOurs(id: string): Promise<boolean> {
    const { isShared, lackedKeys } = this.options;
    const keyIds = await lackedKeys();
    if (isShared && keyIds.length === 0) return false;
    this.#logOnce(id, { keyIds }, noKey);
    return true;
  }

  /**
   * Logs once why an object cannot be restored. It waits for what it lacks, and new ones like it are held, because a partner
   * who repeats the request meanwhile would have it sent again.
   */
  #logOnce(objectId: string, facts: object, obstacle: Obstacle): void {
    if (!this.#held.has(objectId)) obstacle(this.options.log, { objectId, ...facts });
  }
}

/** The submissions that no row is of. */
function without(taken: readonly Taken[], rows: readonly SqlRow[][]): Taken[] {
  const known = new Set(rows.flat().map(({ id }) => String(id)));
  return taken.filter(({ clientId }) => !known.has(clientId));
}

/**
 * Why one partner's rows do not let its object be stored: that must not keep the start-up gate shut for everybody. Undefined if
 * the database cannot serve now.
 */
function obstacleIn(error: unknown): Obstacle | undefined {
  if (error instanceof UnreadableNote || isMisfit(error)) return noteOfOtherVersion;
  if (!(error instanceof Refusal)) return damagedRows;
  if (isUnproven(error)) return unsealedWallet;
  return error instanceof ApiError && error.code === 'wallet_too_low' ? poorWallet : undefined;
}

/** The row of a restored object, with an unknown outcome for the reconciler to settle. */
function restoredRow(kind: AnyKind, id: string, submission: NewSubmission, facts: FactReader, realNow: number) {
  const createdAt = facts.instant('createdAt');
  const noted = readFacts(kind, facts);
  const times = { now: createdAt, notAfter: facts.instant('notAfter'), checkAt: realNow };
  return newRow(kind, id, submission, { ...noted, state: 'uncertain', reason: unclearReason(kind) }, times);
}

/**
 * Declares that the database was restored (`noteRestore`), unless that was done since the last submission that is known to be
 * stored. For a gateway that finds out by itself: it calls this once.
 */
export async function declareRestored(database: Database, broker: BrokerId, position?: bigint): Promise<boolean> {
  const at = (position ?? (await readPosition(database, submissionsPosition(broker))) ?? 0).toString();
  if ((await readPosition(database, restoredPosition(broker))) === at) return false;
  await noteRestore(database, broker, BigInt(at));
  return true;
}
