import { checkSum, decode, type FixMessage } from './message.ts';
import { tags } from './tags.ts';

/** A message of an exchange about an order is below 2 KiB. */
export const longestMessage = 65_536;

const begin = Buffer.from('8=FIX', 'latin1');
const separator = '\x01';
/** The first two fields, `8=FIXT.1.1` and `9=65536`, are shorter. */
const longestHead = 32;
const trailerLength = 7;

/** One message, or why some bytes are none. */
export type Framed = { readonly message: FixMessage; readonly beginString: string } | { readonly garbage: string };

/**
 * Splits a stream of bytes into messages. What has a wrong length or sum is skipped up to the next thing that looks like a
 * message's begin, as FIX demands: the gap in the numbers then shows what was lost. Its buffer is bounded by one message.
 */
export class Framing {
  #rest: Buffer = Buffer.alloc(0);

  /** Takes bytes, and returns what is complete. */
  push(bytes: Buffer): Framed[] {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const found: Framed[] = [];
    for (;;) {
      const start = this.#rest.indexOf(begin);
      if (start !== 0) {
        const kept = start < 0 ? this.#possibleBegin() : start;
        if (kept > 0) found.push({ garbage: 'bytes outside a message' });
        this.#rest = this.#rest.subarray(kept);
        if (start < 0) return found;
      }
      const one = this.#take();
      if (one === undefined) return found;
      found.push(one);
    }
  }

  /** Where the last bytes begin that could be the first ones of a message. */
  #possibleBegin(): number {
    for (let length = Math.min(begin.length - 1, this.#rest.length); length > 0; length -= 1) {
      if (this.#rest.subarray(-length).equals(begin.subarray(0, length))) return this.#rest.length - length;
    }
    return this.#rest.length;
  }

  /** Takes the message that the bytes begin with. Undefined: it is not complete. */
  #take(): Framed | undefined {
    const text = this.#rest.toString('latin1', 0, longestHead);
    const [first = '', second = '', ...more] = text.split(separator);
    if (more.length === 0 && this.#rest.length < longestHead) return undefined;
    const [, beginString] = /^8=(FIX[.0-9A-Z]{1,8})$/.exec(first) ?? [];
    const [, length] = /^9=(\d{1,6})$/.exec(second) ?? [];
    if (beginString === undefined || length === undefined) return this.#skip('no BodyLength');
    if (Number(length) > longestMessage) return this.#skip('too long');
    const bodyEnd = first.length + second.length + 2 + Number(length);
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
}
