import { checkSum, decode, FixMessage, maxKeptBytes, sumOf, sumText } from './message.ts';
import { tags } from './tags.ts';

/** A message of an exchange about an order is below 2 KiB. Longer ones than this are not kept in memory. */
const longestMessage = 65_536;
/**
 * The longest BodyLength whose message is read at all. News with a document and lists of securities stay below it, and it
 * comes before the other side counts as silent over any line of 1 Mbit/s. A longer one is a length that was damaged.
 */
const longestSkipped = 8_388_608;

const begin = Buffer.from('8=FIX', 'latin1');
const separator = '\x01';
/** The first two fields, `8=FIXT.1.1` and `9=65536`, are shorter, also with zeros before the length. */
const longestHead = 48;
const trailerLength = 7;

/**
 * One message, or why some bytes are none. A message that is longer than those that are kept is not whole, and has the fields
 * of its first bytes. `tooLong`: the stated BodyLength is one that no message has, and nothing behind it can be trusted.
 */
export type Framed =
  | { readonly message: FixMessage; readonly beginString: string }
  | { readonly garbage: string }
  | { readonly tooLong: string };

/** A long message that passes by. */
interface Passing {
  readonly beginString: string;
  readonly length: number;
  /** Its first bytes. */
  kept: Buffer;
  /** How many bytes come until its trailer. */
  left: number;
  sum: number;
}

/**
 * Splits a stream of bytes into messages. What has a wrong length or sum is skipped up to the next thing that looks like a
 * message's begin, as FIX demands: the gap in the numbers then shows what was lost. Its buffer is bounded by one message.
 */
export class Framing {
  #rest: Buffer = Buffer.alloc(0);
  #passing: Passing | undefined;

  /** The BodyLength of a long message of which not all bytes have come. Undefined: there is none. */
  get passingLength(): number | undefined {
    return this.#passing?.length;
  }

  /** Takes bytes, and returns what is complete. */
  push(bytes: Buffer): Framed[] {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const found: Framed[] = [];
    for (;;) {
      const one = this.#passing === undefined ? this.#next(found) : this.#pass(this.#passing);
      if (one === undefined) return found;
      if (one !== 'begun') found.push(one);
    }
  }

  #next(found: Framed[]): Framed | 'begun' | undefined {
    const start = this.#rest.indexOf(begin);
    if (start !== 0) {
      const kept = start < 0 ? this.#possibleBegin() : start;
      if (kept > 0) found.push({ garbage: 'bytes outside a message' });
      this.#rest = this.#rest.subarray(kept);
      if (start < 0) return undefined;
    }
    return this.#take();
  }

  /** Where the last bytes begin that could be the first ones of a message. */
  #possibleBegin(): number {
    for (let length = Math.min(begin.length - 1, this.#rest.length); length > 0; length -= 1) {
      if (this.#rest.subarray(-length).equals(begin.subarray(0, length))) return this.#rest.length - length;
    }
    return this.#rest.length;
  }

  /** Takes the message that the bytes begin with. Undefined: it is not complete. */
  #take(): Framed | 'begun' | undefined {
    const text = this.#rest.toString('latin1', 0, longestHead);
    const [first = '', second = '', ...more] = text.split(separator);
    if (more.length === 0 && this.#rest.length < longestHead) return undefined;
    const [, beginString] = /^8=(FIX[.0-9A-Z]{1,8})$/.exec(first) ?? [];
    // Some engines put zeros before the length.
    const [, digits] = /^9=0*(\d+)$/.exec(second) ?? [];
    if (beginString === undefined || digits === undefined || more.length === 0) return this.#skip('no BodyLength');
    const length = Number(digits);
    const bodyEnd = first.length + second.length + 2 + length;
    if (length > longestMessage) return this.#begin(beginString, length, bodyEnd);
    if (this.#rest.length < bodyEnd + trailerLength) return undefined;
    const trailer = this.#rest.toString('latin1', bodyEnd, bodyEnd + trailerLength);
    const body = this.#rest.subarray(0, bodyEnd);
    // The sum is last, because it reads every byte.
    if (!/^10=\d{3}/.test(trailer) || trailer !== `10=${checkSum(body)}${separator}`) {
      return this.#skip('a wrong length or sum');
    }
    const message = decode(body);
    if (message.fields[2]?.[0] !== tags.MsgType) return this.#skip('no MsgType');
    this.#rest = this.#rest.subarray(bodyEnd + trailerLength);
    return { message, beginString };
  }

  /** Goes on behind the begin that was none. */
  #skip(garbage: string): Framed {
    this.#rest = this.#rest.subarray(begin.length);
    return { garbage };
  }

  /** Begins to let a long message pass. */
  #begin(beginString: string, length: number, left: number): Framed | 'begun' {
    if (length > longestSkipped) {
      this.#skip('too long');
      return { tooLong: `BodyLength is ${length}` };
    }
    this.#passing = { beginString, length, kept: Buffer.alloc(0), left, sum: 0 };
    return 'begun';
  }

  /** Lets the next bytes of a long message pass. Undefined: it is not complete. */
  #pass(passing: Passing): Framed | undefined {
    const some = this.#rest.subarray(0, passing.left);
    if (passing.kept.length < maxKeptBytes) {
      passing.kept = Buffer.concat([passing.kept, some.subarray(0, maxKeptBytes - passing.kept.length)]);
    }
    passing.sum = sumOf(some, passing.sum);
    passing.left -= some.length;
    this.#rest = this.#rest.subarray(some.length);
    if (passing.left > 0 || this.#rest.length < trailerLength) return undefined;
    this.#passing = undefined;
    const trailer = this.#rest.toString('latin1', 0, trailerLength);
    // Messages that a wrong length made a part of this one are missing now, and come again.
    if (trailer !== `10=${sumText(passing.sum)}${separator}`) return { garbage: 'a wrong length or sum' };
    this.#rest = this.#rest.subarray(trailerLength);
    const { fields } = decode(passing.kept);
    if (fields[2]?.[0] !== tags.MsgType) return { garbage: 'no MsgType' };
    return { message: new FixMessage(fields, false, passing.kept), beginString: passing.beginString };
  }
}
