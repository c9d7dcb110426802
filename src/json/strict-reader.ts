import { isUtf8 } from 'node:buffer';

/** A JSON value as it was written: numbers keep their text, objects keep every member in its place. */
export type JsonTree = string | boolean | null | JsonNumber | JsonObject | readonly JsonTree[];

/** A number as it was written, so that no digit is lost before it is known what the number is for. */
export class JsonNumber {
  constructor(readonly text: string) {}
}

/** An object's members in the order written, repeated ones included. */
export class JsonObject {
  readonly names: string[] = [];
  readonly values: JsonTree[] = [];
}

/** The text is not JSON, not UTF-8, or nested too deep. */
export class MalformedJson extends Error {
  override readonly name = 'MalformedJson';
}

/** How deep values may be nested: no request needs a tenth of it, and no text can exhaust the stack. */
export const maxDepth = 32;

/**
 * Reads a whole JSON text (RFC 8259), exactly what the grammar allows: no byte order mark, nothing after the value.
 * Throws MalformedJson.
 */
export function readJson(bytes: Buffer): JsonTree {
  if (!isUtf8(bytes)) throw new MalformedJson('not UTF-8');
  const reader = new Reader(bytes.toString('utf8'));
  const tree = reader.value(0);
  reader.end();
  return tree;
}

const quote = 0x22;
const backslash = 0x5c;
const integerOrNot = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const hexDigits = /^[0-9A-Fa-f]{4}$/;
const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

class Reader {
  #at = 0;

  constructor(readonly text: string) {}

  value(depth: number): JsonTree {
    this.#skipSpace();
    const code = this.text.charCodeAt(this.#at);
    if (code === quote) return this.#string();
    if (code === 0x7b) return this.#object(depth + 1);
    if (code === 0x5b) return this.#array(depth + 1);
    if (code === 0x74) return this.#word('true', true);
    if (code === 0x66) return this.#word('false', false);
    if (code === 0x6e) return this.#word('null', null);
    return this.#number();
  }

  end(): void {
    this.#skipSpace();
    if (this.#at !== this.text.length) throw this.#malformed();
  }

  #object(depth: number): JsonObject {
    this.#enter(depth);
    const object = new JsonObject();
    if (this.#skipSpace() === 0x7d) {
      this.#at += 1;
      return object;
    }
    for (;;) {
      if (this.#skipSpace() !== quote) throw this.#malformed();
      object.names.push(this.#string());
      if (this.#skipSpace() !== 0x3a) throw this.#malformed();
      this.#at += 1;
      object.values.push(this.value(depth));
      if (this.#another(0x7d)) continue;
      return object;
    }
  }

  #array(depth: number): JsonTree[] {
    this.#enter(depth);
    const items: JsonTree[] = [];
    if (this.#skipSpace() === 0x5d) {
      this.#at += 1;
      return items;
    }
    for (;;) {
      items.push(this.value(depth));
      if (this.#another(0x5d)) continue;
      return items;
    }
  }

  /** Past the opening bracket, unless it is one too many. */
  #enter(depth: number): void {
    if (depth > maxDepth) throw new MalformedJson('nested too deep');
    this.#at += 1;
  }

  /** Past a comma (true) or the closing bracket (false). */
  #another(closing: number): boolean {
    const code = this.#skipSpace();
    if (code !== 0x2c && code !== closing) throw this.#malformed();
    this.#at += 1;
    return code === 0x2c;
  }

  #string(): string {
    const { text } = this;
    const start = this.#at + 1;
    for (let at = start; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === quote) {
        this.#at = at + 1;
        return text.slice(start, at);
      }
      if (code === backslash) return this.#escapedString(start, at);
      if (code < 0x20) break;
    }
    throw this.#malformed();
  }

  /** A string with at least one escape, which `at` points to. */
  #escapedString(start: number, at: number): string {
    const { text } = this;
    let value = text.slice(start, at);
    let plainFrom = at;
    let position = at;
    while (position < text.length) {
      const code = text.charCodeAt(position);
      if (code === quote) {
        this.#at = position + 1;
        return value + text.slice(plainFrom, position);
      }
      if (code < 0x20) break;
      if (code !== backslash) {
        position += 1;
        continue;
      }
      value += text.slice(plainFrom, position);
      const letter = text.charAt(position + 1);
      if (letter === 'u') {
        const digits = text.slice(position + 2, position + 6);
        if (!hexDigits.test(digits)) throw this.#malformed();
        value += String.fromCharCode(Number.parseInt(digits, 16));
        position += 6;
      } else {
        const character = escapes[letter];
        if (character === undefined) throw this.#malformed();
        value += character;
        position += 2;
      }
      plainFrom = position;
    }
    throw this.#malformed();
  }

  #number(): JsonNumber {
    integerOrNot.lastIndex = this.#at;
    const match = integerOrNot.exec(this.text);
    if (match === null) throw this.#malformed();
    this.#at += match[0].length;
    return new JsonNumber(match[0]);
  }

  #word<Value>(word: string, value: Value): Value {
    if (!this.text.startsWith(word, this.#at)) throw this.#malformed();
    this.#at += word.length;
    return value;
  }

  /** Past white space; returns the code of what follows, NaN at the end. */
  #skipSpace(): number {
    for (;;) {
      const code = this.text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code;
      this.#at += 1;
    }
  }

  #malformed(): MalformedJson {
    return new MalformedJson('not JSON');
  }
}
