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
  /** The values by the fields of the message they are read into. */
  readonly bound: (JsonTree | undefined)[] = [];
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
const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

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
    const start = this.#at;
    let isPlain = true;
    let at = start + 1;
    for (let code = text.charCodeAt(at); code !== quote; code = text.charCodeAt(at)) {
      if (code < 0x20 || Number.isNaN(code)) throw this.#malformed();
      // What follows a backslash is no end of the text.
      if (code === backslash) isPlain = false;
      at += code === backslash ? 2 : 1;
    }
    this.#at = at + 1;
    return isPlain ? text.slice(start + 1, at) : this.#unescaped(text.slice(start, at + 1));
  }

  #unescaped(literal: string): string {
    try {
      return JSON.parse(literal);
    } catch {
      throw this.#malformed();
    }
  }

  #number(): JsonNumber {
    number.lastIndex = this.#at;
    const match = number.exec(this.text);
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
