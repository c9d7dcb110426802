import { type Envelope, encodeMessage, type FixVersion, utcTimestamp, type WireField, WireMessage } from './wire.ts';

/** A message that was sent under a number, as it must be sent again when it is asked for. */
interface SentMessage {
  readonly type: string;
  readonly fields: readonly WireField[];
  readonly sentAt: number;
}

/** How one message leaves, where it is not as usual. */
export interface Delivery {
  readonly envelope?: Envelope;
  /** Fields of the header after SendingTime. */
  readonly header?: readonly WireField[];
  /** Takes this number in place of the next one, and leaves the next one as it is. */
  readonly number?: number;
  /** The number is used up, and nothing is written: it is lost on the way and can be asked for. */
  readonly isLost?: boolean;
  /** The SendingTime, in place of now. */
  readonly sentAt?: number;
  /** Changes the bytes before they are written. */
  readonly bytes?: (bytes: Buffer) => Buffer;
}

/** Session-level types, which are never sent again but passed over by a gap fill. */
const sessionTypes = new Set(['0', '1', '2', '3', '4', '5', 'A']);

/** One side of a FIX session: the numbers in both directions and what was sent. It outlives connections. */
export class SessionNumbers {
  nextOut = 1;
  nextIn = 1;
  readonly sent = new Map<number, SentMessage>();
  /** The SendingTime of everything is off by so much. */
  clockOffMs = 0;

  constructor(
    readonly version: FixVersion,
    readonly ourName: string,
    readonly theirName: string,
  ) {}

  /** Makes the bytes of a message under the next number, and keeps it. */
  make(type: string, fields: readonly WireField[], delivery: Delivery = {}): Buffer {
    const number = delivery.number ?? this.nextOut++;
    const sentAt = delivery.sentAt ?? Date.now() + this.clockOffMs;
    if (delivery.number === undefined) this.sent.set(number, { type, fields, sentAt });
    const bytes = this.#encode(type, number, sentAt, delivery.header ?? [], fields, delivery.envelope);
    return delivery.bytes?.(bytes) ?? bytes;
  }

  /** The messages that answer a ResendRequest: application messages again with PossDupFlag, gap fills over the others. */
  resend(
    from: number,
    to: number,
    isPassedOver: (message: WireMessage) => boolean = () => false,
    gapFill = (begin: number, newNumber: number): Buffer[] => [this.gapFill(begin, newNumber)],
  ): Buffer[] {
    const last = to === 0 ? this.nextOut - 1 : Math.min(to, this.nextOut - 1);
    const parts: Buffer[] = [];
    let gapFrom: number | undefined;
    for (let number = from; number <= last + 1; number += 1) {
      const kept = number <= last ? this.sent.get(number) : undefined;
      const isGap =
        number <= last &&
        (kept === undefined ||
          sessionTypes.has(kept.type) ||
          isPassedOver(new WireMessage([[35, kept.type], ...kept.fields])));
      if (isGap) {
        gapFrom ??= number;
        continue;
      }
      if (gapFrom !== undefined) parts.push(...gapFill(gapFrom, number));
      gapFrom = undefined;
      if (kept === undefined) continue;
      const again: WireField[] = [
        [43, 'Y'],
        [122, utcTimestamp(kept.sentAt)],
      ];
      parts.push(this.#encode(kept.type, number, Date.now() + this.clockOffMs, again, kept.fields));
    }
    return parts;
  }

  gapFill(from: number, newNumber: number, isPossDup = true): Buffer {
    const again: WireField[] = [
      [43, 'Y'],
      [122, utcTimestamp(Date.now() + this.clockOffMs)],
    ];
    const header = isPossDup ? again : [];
    const fields: WireField[] = [
      [123, 'Y'],
      [36, String(newNumber)],
    ];
    return this.#encode('4', from, Date.now() + this.clockOffMs, header, fields);
  }

  /** Numbers begin at 1 in both directions. */
  reset(): void {
    this.nextOut = 1;
    this.nextIn = 1;
    this.sent.clear();
  }

  #encode(
    type: string,
    number: number,
    sentAt: number,
    header: readonly WireField[],
    fields: readonly WireField[],
    envelope?: Envelope,
  ): Buffer {
    const head: WireField[] = [
      [35, type],
      [49, this.ourName],
      [56, this.theirName],
      [34, String(number)],
      [52, utcTimestamp(sentAt)],
      ...header,
    ];
    return encodeMessage(this.version, [...head, ...fields], envelope);
  }
}
