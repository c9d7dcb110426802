import { UnsafeIntegerError } from './errors.ts';
import { checkedMode, type IntegerMode } from './integers.ts';

/** How JSON is read. */
export interface JsonOptions {
  /** How whole numbers are given. With `number`, one that JavaScript cannot hold exactly throws an `UnsafeIntegerError`. */
  readonly integers?: IntegerMode | undefined;
}

/** Stands before a whole number while JSON.parse or JSON.stringify takes it for a text. Private to Unicode. */
const mark = '\ue000';
/** The contract nests ten deep at most. The walk through a value calls itself for each level. */
const maxDepth = 200;
/** The contract's whole numbers have 20 digits at most. Reading one takes more than linear time. */
const maxDigits = 1_000;

const code = (character: string) => character.charCodeAt(0);
const quote = code('"');
const backslash = code('\\');
const [zero, nine, minus] = [code('0'), code('9'), code('-')];
const opening = [code('['), code('{')];
const closing = [code(']'), code('}')];

/**
 * Reads JSON in linear time. Every whole number is a bigint with all its digits, unless `integers` asks for something else:
 * JavaScript's own numbers are not exact beyond 2^53. Throws a SyntaxError if the text is not JSON, nests more than 200 deep
 * or has a whole number of more than 1,000 digits.
 */
export function parseJson(text: string, { integers = 'bigint' }: JsonOptions = {}): unknown {
  return withIntegers(JSON.parse(markIntegers(text)), checkedMode(integers));
}

/**
 * Replaces marked texts in a value that was just read, and returns it. A function for JSON.parse would do the same several times
 * slower.
 */
function withIntegers(value: unknown, mode: IntegerMode): unknown {
  if (typeof value === 'string') {
    if (!value.startsWith(mark)) return value;
    return value.startsWith(mark, 1) ? value.slice(1) : integerOf(value.slice(1), mode);
  }
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) value[at] = withIntegers(value[at], mode);
  } else if (typeof value === 'object' && value !== null) {
    const members = value as Record<string, unknown>;
    // Also a member named `__proto__` is its own after JSON.parse, so this changes no prototype.
    for (const name of Object.keys(members)) members[name] = withIntegers(members[name], mode);
  }
  return value;
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

function integerOf(digits: string, mode: IntegerMode): bigint | number | string {
  const exact = BigInt(digits);
  if (mode === 'bigint') return exact;
  if (mode === 'string') return String(exact);
  const rounded = Number(exact);
  if (!Number.isSafeInteger(rounded)) throw new UnsafeIntegerError(digits);
  return rounded;
}

/** Makes a marked text of each whole number, and marks texts that begin with the mark once more. */
function markIntegers(text: string): string {
  const pieces: string[] = [];
  let copied = 0;
  let depth = 0;
  for (let at = 0; at < text.length; ) {
    const each = text.charCodeAt(at);
    if (each === quote) {
      const end = endOfText(text, at);
      if (/^"(?:\ue000|\\u[eE]000)/.test(text.slice(at, at + 7)) && !isName(text, end)) {
        pieces.push(text.slice(copied, at), `"${mark}`);
        copied = at + 1;
      }
      at = end;
    } else if (each === minus || (each >= zero && each <= nine)) {
      const end = endOfNumber(text, at);
      const number = text.slice(at, end);
      if (/^-?(?:0|[1-9]\d*)$/.test(number)) {
        if (number.length > maxDigits) throw new SyntaxError(`A whole number has more than ${maxDigits} digits.`);
        pieces.push(text.slice(copied, at), `"${mark}${number}"`);
        copied = end;
      }
      at = end;
    } else {
      if (opening.includes(each)) depth += 1;
      else if (closing.includes(each)) depth -= 1;
      if (depth > maxDepth) throw new SyntaxError(`The JSON nests more than ${maxDepth} deep.`);
      at += 1;
    }
  }
  return pieces.join('') + text.slice(copied);
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

/** Where the text that begins at a quote ends, behind its closing quote, or the end of all if it has none. */
function endOfText(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const each = text.charCodeAt(at);
    if (each === quote) return at + 1;
    if (each === backslash) at += 1;
  }
  return text.length;
}

function endOfNumber(text: string, start: number): number {
  let end = start + 1;
  while (end < text.length && '0123456789+-.eE'.includes(text.charAt(end))) end += 1;
  return end;
}

/** Whether a colon follows, which makes a text the name of a member. */
function isName(text: string, end: number): boolean {
  let at = end;
  while (' \t\n\r'.includes(text.charAt(at)) && at < text.length) at += 1;
  return text.charAt(at) === ':';
}
