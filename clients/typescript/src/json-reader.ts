import { UnsafeIntegerError } from './errors.ts';
import type { IntegerMode } from './integers.ts';
import { endOfText, isName, mark } from './json-texts.ts';

/** The contract nests ten deep at most. The walk through a value calls itself for each level. */
const maxDepth = 200;
/** The contract's whole numbers have 20 digits at most. Reading one takes more than linear time. */
const maxDigits = 1_000;
/** Every number of so many digits is exact as a JavaScript number. */
const exactDigits = 15;
/** How many characters or values are read between two looks at the clock. */
const charactersPerCheck = 2 ** 18;
const valuesPerCheck = 2 ** 16;

const code = (character: string) => character.charCodeAt(0);
const [quote, backslash, letterU, markCode] = [code('"'), code('\\'), code('u'), code(mark)];
const [zero, nine, minus, plus, point] = [code('0'), code('9'), code('-'), code('+'), code('.')];
const [smallE, largeE] = [code('e'), code('E')];
const [openList, closeList, openObject, closeObject] = [code('['), code(']'), code('{'), code('}')];

/** Most numbers are small, and making a bigint takes longer than finding it. */
const smallIntegers = Array.from({ length: 1_024 }, (_, value) => BigInt(value));

/**
 * Reads JSON in linear time, with JSON.parse for nearly all of it: only numbers that it would not give exactly become marked texts
 * before. `check` is called while a long text is read, and may throw.
 */
export function readJson(text: string, mode: IntegerMode, check: () => void): unknown {
  const edits = findEdits(text, check);
  const isMarked = edits.numbers > 0;
  const value: unknown = JSON.parse(isMarked ? withMarks(text, edits) : text);
  check();
  // Without marks every number is a whole one that JavaScript holds exactly.
  if (!isMarked && mode === 'number') return value;
  return new Walk(mode, isMarked, check).converted(value);
}

/** Where the text has to change: pairs of start and end of a number, or twice the place where a text needs another mark. */
interface Edits {
  readonly places: readonly number[];
  readonly numbers: number;
}

/** Finds numbers that JSON.parse would round or that are written with a point or an exponent, and texts that begin with the mark. */
function findEdits(text: string, check: () => void): Edits {
  const places: number[] = [];
  let numbers = 0;
  let depth = 0;
  let nextCheck = charactersPerCheck;
  for (let at = 0; at < text.length; ) {
    if (at >= nextCheck) {
      check();
      nextCheck = at + charactersPerCheck;
    }
    const each = text.charCodeAt(at);
    if (each === quote) {
      const end = endOfText(text, at);
      if (beginsWithMark(text, at + 1) && !isName(text, end)) places.push(at + 1, at + 1);
      at = end;
    } else if (each === minus || (each >= zero && each <= nine)) {
      const end = endOfNumber(text, at);
      if (needsMark(text, at, end)) {
        places.push(at, end);
        numbers += 1;
      }
      at = end;
    } else {
      if (each === openList || each === openObject) depth += 1;
      else if (each === closeList || each === closeObject) depth -= 1;
      if (depth > maxDepth) throw new SyntaxError(`The JSON nests more than ${maxDepth} deep.`);
      at += 1;
    }
  }
  return { places, numbers };
}

/** Whether a text begins with the mark, or with its escape. */
function beginsWithMark(text: string, at: number): boolean {
  const first = text.charCodeAt(at);
  if (first !== backslash) return first === markCode;
  return text.charCodeAt(at + 1) === letterU && text.slice(at + 2, at + 6).toLowerCase() === 'e000';
}

function endOfNumber(text: string, start: number): number {
  let end = start + 1;
  for (; end < text.length; end += 1) {
    const each = text.charCodeAt(end);
    const isDigit = each >= zero && each <= nine;
    const isSign = each === point || each === minus || each === plus;
    if (!isDigit && !isSign && each !== smallE && each !== largeE) break;
  }
  return end;
}

/** A text that is no number of JSON stays as it is, so that JSON.parse refuses it. */
function needsMark(text: string, start: number, end: number): boolean {
  const length = end - start;
  if (length <= exactDigits && isPlain(text, start, end)) return false;
  const number = text.slice(start, end);
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(number) || isName(text, end)) return false;
  if (length > maxDigits && /^-?\d+$/.test(number)) {
    throw new SyntaxError(`A whole number has more than ${maxDigits} digits.`);
  }
  return true;
}

/** Whether it has digits alone, with a sign before a number that is not zero. */
function isPlain(text: string, start: number, end: number): boolean {
  const isNegative = text.charCodeAt(start) === minus;
  if (isNegative && text.charCodeAt(start + 1) === zero) return false;
  for (let at = isNegative ? start + 1 : start; at < end; at += 1) {
    const each = text.charCodeAt(at);
    if (each < zero || each > nine) return false;
  }
  return true;
}

function withMarks(text: string, { places }: Edits): string {
  const pieces: string[] = [];
  let copied = 0;
  for (let at = 0; at < places.length; at += 2) {
    const [start = 0, end = 0] = [places[at], places[at + 1]];
    const number = text.slice(start, end);
    pieces.push(text.slice(copied, start), number === '' ? mark : `"${mark}${number}"`);
    copied = end;
  }
  pieces.push(text.slice(copied));
  return pieces.join('');
}

/** Gives the whole numbers of a value that was just read, as they are asked for. */
class Walk {
  #values = 0;
  readonly #mode: IntegerMode;
  readonly #isMarked: boolean;
  readonly #check: () => void;

  constructor(mode: IntegerMode, isMarked: boolean, check: () => void) {
    this.#mode = mode;
    this.#isMarked = isMarked;
    this.#check = check;
  }

  /** A function for JSON.parse would do the same several times slower. */
  converted(value: unknown): unknown {
    this.#values += 1;
    if (this.#values % valuesPerCheck === 0) this.#check();
    if (typeof value === 'number') return exactOf(value, this.#mode);
    if (typeof value === 'string') {
      return this.#isMarked && value.charCodeAt(0) === markCode ? unmarked(value, this.#mode) : value;
    }
    if (Array.isArray(value)) {
      for (let at = 0; at < value.length; at += 1) value[at] = this.converted(value[at]);
    } else if (typeof value === 'object' && value !== null) {
      const members = value as Record<string, unknown>;
      // Also a member named `__proto__` is its own after JSON.parse, so this changes no prototype.
      for (const name of Object.keys(members)) members[name] = this.converted(members[name]);
    }
    return value;
  }
}

/** A whole number that is exact as it is. */
function exactOf(value: number, mode: IntegerMode): bigint | number | string {
  if (mode === 'number') return value;
  return mode === 'string' ? String(value) : (smallIntegers[value] ?? BigInt(value));
}

function unmarked(marked: string, mode: IntegerMode): unknown {
  const text = marked.slice(1);
  if (text.startsWith(mark)) return text;
  return /^-?\d+$/.test(text) ? integerOf(text, mode) : Number(text);
}

function integerOf(digits: string, mode: IntegerMode): bigint | number | string {
  const exact = BigInt(digits);
  if (mode === 'bigint') return exact;
  if (mode === 'string') return String(exact);
  const rounded = Number(exact);
  if (!Number.isSafeInteger(rounded)) throw new UnsafeIntegerError(digits);
  return rounded;
}
