import { instantRange } from '../../../kit/clock.ts';
import type { Seal } from '../../../kit/key-ring.ts';
import type { Column } from '../../store/table.ts';
import type { KindOf, NewSubmission } from './kind.ts';
import type { Submission } from './table.ts';

/** The content of a note: it restores an object that was sent if the database has lost it. */
export interface Note {
  readonly submission: NewSubmission & { readonly idempotencyKey: string };
  /** The fields of the object, unread. */
  readonly facts: FactReader;
}

/** The longest note that brokers keep (`note` in `marina.broker.v1`). */
const maxNoteBytes = 2_048;
/** The most bytes that sealing adds to a note's text. */
const sealBytes = 32;

/** Thrown for a note of another version from which this version cannot restore the object. */
export class UnreadableNote extends Error {
  override readonly name = 'UnreadableNote';
}

/**
 * The notes that go out with submissions and come back from the broker's record. They are sealed for their object, because
 * they hold the partner's data, and because a note that comes back decides whose an order is.
 */
export class Notes {
  constructor(private readonly seal: Seal) {}

  /** The sealed note of a stored row. */
  write<Row extends Submission>(kind: NotedKind<Row>, row: Row): Buffer {
    return this.seal.seal(row.id, textOf(kind, row));
  }

  /** Throws for a note that would be too long for the broker. To be called before the row is stored. */
  checkLength<Row extends Submission>(kind: NotedKind<Row>, row: Row): void {
    const length = Buffer.byteLength(textOf(kind, row)) + sealBytes;
    if (length > maxNoteBytes) throw new Error(`a note of ${length} bytes is too long`);
  }

  /** Undefined if it is not our note for the object. Throws `UnreadableNote` if this version cannot read it. */
  read(id: string, bytes: Uint8Array): Note | undefined {
    const text = this.#open(id, bytes);
    if (text === undefined) return undefined;
    let note: unknown;
    try {
      note = JSON.parse(text);
    } catch (error) {
      throw new UnreadableNote('it is not JSON', { cause: error });
    }
    const reader = new FactReader(note);
    const origin = reader.inner('origin');
    return {
      submission: {
        partnerId: reader.text('partnerId'),
        requestId: origin.optionalText('requestId'),
        traceParent: origin.optionalText('traceParent'),
        keyId: origin.optionalText('keyId'),
        idempotencyKey: reader.text('idempotencyKey'),
        requestDigest: reader.digest('digest'),
      },
      facts: reader.inner('facts'),
    };
  }

  #open(id: string, bytes: Uint8Array): string | undefined {
    if (bytes.length > maxNoteBytes) return undefined;
    try {
      return this.seal.open(id, Buffer.from(bytes));
    } catch {
      return undefined; // Another user of the broker's connection writes other notes, or none.
    }
  }
}

type NotedKind<Row extends Submission> = Pick<KindOf<Row>, 'noted' | 'table'>;

function textOf<Row extends Submission>({ noted }: NotedKind<Row>, row: Row): string {
  const { partnerId, requestId, traceParent, keyId, idempotencyKey } = row;
  const digest = row.requestDigest.toString('base64');
  const facts = Object.fromEntries(
    noted.map((field) => [field, typeof row[field] === 'bigint' ? String(row[field]) : row[field]]),
  );
  const origin = { partnerId, requestId, traceParent, keyId };
  return JSON.stringify({ partnerId, idempotencyKey, digest, origin, facts });
}

/** Reads the object's fields from a note. Throws `UnreadableNote` if this version does not know one of them. */
export function readFacts<Row extends Submission>({ noted, table }: NotedKind<Row>, facts: FactReader): Partial<Row> {
  return Object.fromEntries(noted.map((field) => [field, facts.value(field, table.column(field))])) as Partial<Row>;
}

/**
 * Reads the members of a note. Another version may leave one out, write null for it, or add others. Throws
 * `UnreadableNote` if a member that is needed is missing or has another form.
 */
export class FactReader {
  readonly #members: Readonly<Record<string, unknown>>;

  constructor(value: unknown) {
    if (typeof value !== 'object' || value === null) throw new UnreadableNote('it has no members');
    this.#members = value as Record<string, unknown>;
  }

  /** A member, as the column of that name has it. */
  value(name: string, { kind, isNullable }: Column<unknown>): string | bigint | number | null {
    if (isNullable && (this.#members[name] ?? null) === null) return null;
    switch (kind) {
      case 'whole':
        return this.whole(name);
      case 'instant':
        return this.instant(name);
      case 'day':
        return this.day(name);
      case 'text':
        return this.text(name);
      default:
        throw new Error(`a note cannot keep ${name}`);
    }
  }

  text(name: string): string {
    const text = this.optionalText(name);
    if (text === null) throw new UnreadableNote(`it lacks ${name}`);
    return text;
  }

  optionalText(name: string): string | null {
    const value = this.#members[name] ?? null;
    if (value !== null && typeof value !== 'string') throw new UnreadableNote(`its ${name} is no text`);
    return value;
  }

  whole(name: string): bigint {
    const text = this.text(name);
    if (!/^[0-9]{1,18}$/.test(text)) throw new UnreadableNote(`its ${name} is no whole number`);
    return BigInt(text);
  }

  instant(name: string): number {
    const value = this.#members[name];
    const isInstant = Number.isSafeInteger(value) && Number(value) >= instantRange.least;
    if (!isInstant || Number(value) > instantRange.most) throw new UnreadableNote(`its ${name} is no instant`);
    return Number(value);
  }

  day(name: string): string {
    const text = this.text(name);
    if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) throw new UnreadableNote(`its ${name} is no day`);
    return text;
  }

  digest(name: string): Buffer {
    const digest = Buffer.from(this.text(name), 'base64');
    if (digest.length !== 32) throw new UnreadableNote(`its ${name} is no digest`);
    return digest;
  }

  inner(name: string): FactReader {
    return new FactReader(this.#members[name]);
  }
}
