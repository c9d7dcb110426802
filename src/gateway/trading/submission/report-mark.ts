import type { SqlRow, Statement } from '../../store/statement.ts';
import { positions, savePosition } from './positions.ts';

/** Which process wrote a mark, by the fence of its lease, and a number that grows with each mark of that process. */
interface Mark {
  readonly fence: bigint;
  readonly number: bigint;
}

/**
 * A row that stands for reports which were proven while the position could not move: `order-reports proven` has
 * `5 1764194817000`. It is written in the transaction that proves them, so a database that loses one of them in a failover
 * loses the mark too.
 */
export class ProvenMark {
  readonly name: string;
  /** The one that this process wrote since it read the position; undefined: nothing rests on a mark. */
  #current: Mark | undefined;
  /** The last one that the database has acknowledged, over all times this process had the lease. */
  #acknowledged: Mark | undefined;
  /** The number of the last one, which may be stored or not. */
  #last = 0n;

  constructor(
    positionName: string,
    private readonly realNow: () => number,
  ) {
    this.name = `${positionName} proven`;
  }

  /** What must be in the database now, or later; undefined if nothing rests on a mark. */
  get least(): Mark | undefined {
    return this.#current;
  }

  /** Reads the mark, without a lock. */
  get read(): Statement {
    return positions.find({ name: this.name });
  }

  /** Begins anew from what the database has. Returns the mark that it had acknowledged and has lost; undefined if none. */
  begin(rows: readonly SqlRow[] | undefined): string | undefined {
    const [stored, acknowledged] = [markOf(rows), this.#acknowledged];
    this.#acknowledged = stored;
    this.#current = undefined;
    if (acknowledged === undefined || isSameOrLater(stored, acknowledged)) return undefined;
    return textOf(acknowledged);
  }

  /** The next mark, for the transaction that proves. It counts once the database has acknowledged it. */
  next(fence: bigint): { readonly write: Statement; readonly acknowledged: () => void } {
    const now = BigInt(this.realNow());
    this.#last = now > this.#last ? now : this.#last + 1n;
    const mark = { fence, number: this.#last };
    const acknowledged = () => {
      this.#current = mark;
      this.#acknowledged = mark;
    };
    return { write: savePosition(this.name, textOf(mark)), acknowledged };
  }
}

/** Whether a database has a mark, or a later one of the same process. */
export function hasMark(rows: readonly SqlRow[] | undefined, least: Mark | undefined): boolean {
  if (least === undefined) return true;
  const stored = markOf(rows);
  return stored !== undefined && stored.fence === least.fence && stored.number >= least.number;
}

/** A later fence is another process's, which took over from this one and wrote its own. */
function isSameOrLater(stored: Mark | undefined, { fence, number }: Mark): boolean {
  if (stored === undefined) return false;
  return stored.fence > fence || (stored.fence === fence && stored.number >= number);
}

function textOf({ fence, number }: Mark): string {
  return `${fence} ${number}`;
}

function markOf(rows: readonly SqlRow[] | undefined): Mark | undefined {
  const [, fence, number] = /^(\d+) (\d+)$/.exec(String(rows?.[0]?.position ?? '')) ?? [];
  return fence === undefined || number === undefined ? undefined : { fence: BigInt(fence), number: BigInt(number) };
}
