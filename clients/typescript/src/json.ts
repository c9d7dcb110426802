import { checkedMode, type IntegerMode } from './integers.ts';
import { readJson } from './json-reader.ts';
import { endOfText, isName, mark } from './json-texts.ts';

/** How JSON is read. */
export interface JsonOptions {
  /** How whole numbers are given. With `number`, one that JavaScript cannot hold exactly throws an `UnsafeIntegerError`. */
  readonly integers?: IntegerMode | undefined;
}

/**
 * Reads JSON in linear time. Every whole number is a bigint with all its digits, unless `integers` asks for something else:
 * JavaScript's own numbers are not exact beyond 2^53. Throws a SyntaxError if the text is not JSON, nests more than 200 deep
 * or has a whole number of more than 1,000 digits.
 */
export function parseJson(text: string, { integers = 'bigint' }: JsonOptions = {}): unknown {
  return readJson(text, checkedMode(integers), () => undefined);
}

/**
 * Writes JSON. A bigint is written with all its digits. Throws a RangeError for a number that is not exact, which was
 * rounded before it came here.
 */
export function writeJson(value: unknown): string {
  const written = JSON.stringify(value, function (this: Readonly<Record<string, unknown>>, name, each: unknown) {
    // The member itself: programs often give bigints a toJSON that makes texts of them.
    if (typeof this[name] === 'bigint') return `${mark}${this[name]}`;
    if (typeof each === 'number' && !Number.isSafeInteger(each)) {
      throw new RangeError(`${each} is not an exact whole number. Pass a bigint.`);
    }
    return typeof each === 'string' && each.startsWith(mark) ? `${mark}${each}` : each;
  });
  return unmarkIntegers(written);
}

/** Undoes what writing marked. */
function unmarkIntegers(text: string): string {
  const pieces: string[] = [];
  let copied = 0;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at)) {
    const end = endOfText(text, at);
    if (text.startsWith(mark, at + 1) && !isName(text, end)) {
      const isText = text.startsWith(mark, at + 2);
      pieces.push(text.slice(copied, at), isText ? '"' : text.slice(at + 2, end - 1));
      copied = isText ? at + 2 : end;
    }
    at = end;
  }
  return pieces.join('') + text.slice(copied);
}
