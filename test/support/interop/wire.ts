/**
 * The bytes of FIX as an exchange's engine writes and reads them, from the specification (FIX 4.4 volume 1 and 2, FIXT 1.1).
 * Nothing here is shared with the adapter, so that one misreading of the specification cannot hide another.
 */

/** One field as it is on the wire. */
export type WireField = readonly [tag: number, value: string];

/** The versions that the tests speak. FIXT.1.1 carries FIX 5.0 SP2. */
export type FixVersion = 'FIX.4.4' | 'FIXT.1.1';

const soh = '\u0001';
const headForm = new RegExp(`^8=FIXT?\\.\\d\\.\\d${soh}9=(\\d{1,7})${soh}`);

/** A message that came, with its fields in the order of the wire. */
export class WireMessage {
  constructor(readonly fields: readonly WireField[]) {}

  get type(): string {
    return this.text(35);
  }

  get number(): number {
    return Number(this.text(34));
  }

  /** The first field of a tag. */
  find(tag: number): string | undefined {
    return this.fields.find(([each]) => each === tag)?.[1];
  }

  /** The first field of a tag, or nothing as an empty text. */
  text(tag: number): string {
    return this.find(tag) ?? '';
  }

  toString(): string {
    return this.fields.map(([tag, value]) => `${tag}=${value}`).join('|');
  }
}

/** How the envelope of a message is written, where it is not as the specification says. */
export interface Envelope {
  /** The text of BodyLength 9, made from the true length. */
  readonly bodyLength?: (bytes: number) => string;
  /** The text of CheckSum 10, made from the true sum. */
  readonly checkSum?: (sum: number) => string;
}

/** Writes a message: its fields from MsgType 35 on, with BeginString, BodyLength and CheckSum around them. */
export function encodeMessage(beginString: string, fields: readonly WireField[], envelope: Envelope = {}): Buffer {
  const body = Buffer.from(fields.map(([tag, value]) => `${tag}=${value}${soh}`).join(''), 'utf8');
  const length = envelope.bodyLength?.(body.length) ?? String(body.length);
  const head = Buffer.from(`8=${beginString}${soh}9=${length}${soh}`, 'latin1');
  const sum = [...head, ...body].reduce((total, byte) => total + byte, 0) % 256;
  const text = envelope.checkSum?.(sum) ?? String(sum).padStart(3, '0');
  return Buffer.concat([head, body, Buffer.from(`10=${text}${soh}`, 'latin1')]);
}

/** Cuts the bytes of a connection into messages. Throws on bytes that are no FIX message: our side must never send them. */
export class Framer {
  #rest = Buffer.alloc(0);

  push(bytes: Buffer): WireMessage[] {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    const messages: WireMessage[] = [];
    for (let message = this.#next(); message !== undefined; message = this.#next()) messages.push(message);
    return messages;
  }

  #next(): WireMessage | undefined {
    const text = this.#rest.toString('latin1');
    if (text.length < 16) return undefined;
    const head = headForm.exec(text);
    if (head === null) {
      if (text.length < 32) return undefined;
      throw new Error(`the adapter sent bytes that are no FIX message: ${text.slice(0, 80)}`);
    }
    const end = head[0].length + Number(head[1]);
    const tail = text.slice(end, end + 7);
    if (tail.length < 7) return undefined;
    const sum = [...this.#rest.subarray(0, end)].reduce((total, byte) => total + byte, 0) % 256;
    if (tail !== `10=${String(sum).padStart(3, '0')}${soh}`)
      throw new Error(`the adapter sent a wrong CheckSum: ${text.slice(0, end + 7)}`);
    const fields = this.#rest
      .subarray(0, end)
      .toString('utf8')
      .split(soh)
      .filter((each) => each !== '')
      .map(readField);
    this.#rest = this.#rest.subarray(end + 7);
    return new WireMessage(fields);
  }
}

function readField(text: string): WireField {
  const at = text.indexOf('=');
  if (at < 1) throw new Error(`the adapter sent a field without a tag: ${text}`);
  return [Number(text.slice(0, at)), text.slice(at + 1)];
}

/** An instant as UTCTimestamp with milliseconds. */
export function utcTimestamp(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '').replaceAll('-', '').replace('T', '-');
}
