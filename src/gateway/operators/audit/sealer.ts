import type { Clock } from '../../../kit/clock.ts';
import type { Logger } from '../../../kit/log.ts';
import { pause, type Worker } from '../../../kit/worker.ts';
import type { Database } from '../../store/database.ts';
import { fenced, type Lease, underLease } from '../../store/lease.ts';
import { statement } from '../../store/statement.ts';
import { type BatchFault, nextBatch, noBatch } from './rules.ts';
import type { AuditSeals } from './seals.ts';
import { auditSeals } from './table.ts';
import { entriesBetween, lastBatch, maxEntries, readLastBatch, toSealedEntry, walkBatches } from './walk.ts';

interface SealerParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly seals: AuditSeals;
  readonly log: Logger;
  readonly holder: string;
  /** Called with the number of batches that do not match, after each round, and with none at the end. */
  readonly checked: (faulty: number) => void;
  /** How long the newest entry waits for its seal, in milliseconds of real time. A transaction ends long before. */
  readonly settleMs?: number;
  /** The pause between two rounds. */
  readonly betweenRoundsMs?: number;
}

/** Batches that one round checks again. */
const checkedTogether = 20;

/**
 * Seals the entries of the audit, in the order of their numbers, and checks batch after batch again. An entry may be committed after
 * one with a higher number, so it seals up to a number only when that has been there for a while. Its writes are fenced.
 */
export function auditSealer(parts: SealerParts): Worker {
  const { betweenRoundsMs = 20_000 } = parts;
  return underLease(parts.database, 'audit-seals', parts.holder, async (lease) => {
    const sealer = new AuditSealer(parts, lease);
    try {
      while (!lease.signal.aborted) {
        await sealer.round();
        await pause(betweenRoundsMs, lease.signal);
      }
    } finally {
      // Another process reports them from now on.
      parts.checked(0);
    }
  });
}

class AuditSealer {
  /** The highest number some time ago. */
  #seen: { readonly id: bigint; readonly at: number } | undefined;
  /** The batch that was checked last. */
  #checked = 0n;
  /** Faulty batches, which stay until they are found right. */
  readonly #faulty = new Map<bigint, BatchFault>();

  constructor(
    private readonly parts: SealerParts,
    private readonly lease: Lease,
  ) {}

  async round(): Promise<void> {
    const { settleMs = 60_000 } = this.parts;
    this.#seen ??= await this.#newest();
    if (performance.now() - this.#seen.at >= settleMs) {
      const { id } = this.#seen;
      this.#seen = await this.#newest();
      while (!this.lease.signal.aborted && (await this.#sealNext(id)));
    }
    await this.#checkAgain();
  }

  async #newest() {
    const at = performance.now();
    const [row] = await this.parts.database.read(statement('SELECT MAX(id) AS id FROM audit_entries'));
    return { id: BigInt(String(row?.id ?? 0)), at };
  }

  /** Seals the next batch, up to a number. False if there is nothing more to seal, or the end of the chain is not proven. */
  async #sealNext(upTo: bigint): Promise<boolean> {
    const { database, seals, clock, log } = this.parts;
    const [end] = await database.read(lastBatch);
    const after = end === undefined ? noBatch : auditSeals.all.read(end);
    const reads = [fenced(this.lease), lastBatch, entriesBetween(after.lastId, upTo, maxEntries)];
    const sealed = await database.transaction(reads, ([leases, ends, rows = []]) => {
      const last = ends?.[0] && auditSeals.all.read(ends[0]);
      const isSame = (last ?? noBatch).number === after.number;
      // Nothing is sealed on top of a batch that no gateway sealed.
      const isProven = last === undefined || seals.prove(last, last.seal) === 'right';
      const needsSeal = rows.length > 0 || (last !== undefined && !seals.isCurrent(last.seal));
      if (leases?.[0] === undefined || !isSame || !isProven || !needsSeal) return { writes: [], result: undefined };
      const batch = nextBatch(after, rows.map(toSealedEntry));
      const row = { ...batch, seal: seals.make(batch), sealedAt: clock.now() };
      return { writes: [auditSeals.insert(row)], result: batch };
    });
    if (sealed === undefined) return false;
    const { number, lastId, hash } = sealed;
    // Who keeps the log elsewhere sees by it whether the end of the chain was removed.
    log.info(
      { batch: Number(number), lastId: Number(lastId), hash: hash.toString('hex') },
      'entries of the audit are sealed',
    );
    return sealed.entries === maxEntries;
  }

  /** Checks some batches again, and the end of the chain. */
  async #checkAgain(): Promise<void> {
    const { database, seals, checked } = this.parts;
    const end = await readLastBatch(database, seals);
    let count = 0;
    for await (const { number, firstId, lastId, fault } of walkBatches(database, seals, this.#checked)) {
      const kind = number === end?.batch.number && end.proof !== 'right' ? 'unsealed' : fault;
      this.#note({ batch: number, kind, firstId, lastId });
      this.#checked = number;
      count += 1;
      if (count >= checkedTogether || this.lease.signal.aborted) break;
    }
    // It begins again when it has come to the end, or when the batch after which it goes on is gone.
    if (count < checkedTogether) this.#checked = 0n;
    checked(this.#faulty.size);
  }

  #note({
    batch,
    kind,
    firstId,
    lastId,
  }: {
    batch: bigint;
    kind: BatchFault | undefined;
    firstId: bigint;
    lastId: bigint;
  }) {
    if (kind === undefined) {
      this.#faulty.delete(batch);
      return;
    }
    if (this.#faulty.get(batch) !== kind) {
      const about = { batch: Number(batch), kind, firstId: Number(firstId), lastId: Number(lastId) };
      this.parts.log.error(about, 'entries of the audit do not match their seal');
    }
    this.#faulty.set(batch, kind);
  }
}
