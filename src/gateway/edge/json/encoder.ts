import {
  type DescField,
  type DescMessage,
  type DescOneof,
  getOption,
  type Message,
  ScalarType,
} from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { message as messageOption } from '../../../gen/marina/options/v1/options_pb.ts';
import { enumNames, type StoredNames, storedNames, unnamed } from '../../../kit/enums.ts';
import { formatTimestamp, type ValueType } from './reader.ts';

/** Writes a message as JSON for partners. */
export type Encoder<Written extends string = string> = (message: Message) => Written;

/** Bytes as a string with a character for each, Node's `latin1`: what Node joins and sends fastest. */
export type ByteText = string & { readonly isByteText: true };

/** A text's bytes in UTF-8. */
export function toByteText(text: string): ByteText {
  return Buffer.from(text).toString('latin1') as ByteText;
}

/** The key of a message's stored JSON, which the encoder writes unchanged. */
export const storedBytes: unique symbol = Symbol('stored JSON');

/** How strings and stored JSON are written; the rest of an answer is ASCII. */
interface Form {
  readonly encoders: WeakMap<DescMessage, Encoder>;
  readonly quote: (text: string) => string;
  readonly stored: (json: Buffer) => string;
}

const asText: Form = { encoders: new WeakMap(), quote, stored: (json) => json.toString('utf8') };
const asBytes: Form = {
  encoders: new WeakMap(),
  quote: (text) => toQuoted(text, (json) => toByteText(json)),
  stored: (json) => json.toString('latin1'),
};

/**
 * Compiles the writer of a message type's JSON: its `object` member first, then every field in the order of the proto,
 * null if absent. It generates code, which is as fast as handwritten code. Only our own descriptors go into the code.
 */
export function compileEncoder(schema: DescMessage): Encoder {
  return compile(schema, asText);
}

/** The same for an answer: JSON in UTF-8, as bytes. */
export function compileByteEncoder(schema: DescMessage): Encoder<ByteText> {
  return compile(schema, asBytes) as Encoder<ByteText>;
}

function compile(schema: DescMessage, form: Form): Encoder {
  const { encoders } = form;
  const known = encoders.get(schema);
  if (known !== undefined) return known;
  // A placeholder while the nested types are compiled, because they may contain this one again.
  let encode: Encoder | undefined;
  encoders.set(schema, (message) => encode?.(message) ?? 'null');
  encode = new Program(form).generate(schema);
  encoders.set(schema, encode);
  return encode;
}

/** Writes a text as JSON. Short plain texts, the usual case, take a fast path. */
export function quote(text: string): string {
  return toQuoted(text, (json) => json);
}

function toQuoted(text: string, write: (json: string) => string): string {
  const { length } = text;
  if (length > 64) return write(JSON.stringify(text));
  for (let at = 0; at < length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return write(JSON.stringify(text));
  }
  return `"${text}"`;
}

/** A function under construction: its expressions, and the values they refer to by name. */
class Program {
  readonly #form: Form;
  readonly #values = new Map<unknown, string>();
  readonly #parts: string[] = [];
  #literal = '';

  constructor(form: Form) {
    this.#form = form;
  }

  generate(schema: DescMessage): Encoder {
    this.#literal += '{';
    const { object } = getOption(schema, messageOption);
    if (object !== '') this.#literal += `"object":${JSON.stringify(object)}`;
    for (const member of schema.members) {
      if (!this.#literal.endsWith('{') || this.#parts.length > 0) this.#literal += ',';
      this.#literal += `${JSON.stringify(member.name)}:`;
      this.#add(member.kind === 'oneof' ? this.#oneof(member) : this.#field(member));
    }
    this.#literal += '}';
    this.#flush();
    const stored = this.#refer(storedBytes);
    const write = this.#refer(this.#form.stored);
    const body = `const s = m[${stored}]; return s === undefined ? ${this.#parts.join(' + ')} : ${write}(s);`;
    const make = new Function(...this.#values.values(), `return (m) => { ${body} };`);
    return make(...this.#values.keys()) as Encoder;
  }

  #add(expression: string): void {
    this.#flush();
    this.#parts.push(expression);
  }

  #flush(): void {
    if (this.#literal !== '') this.#parts.push(JSON.stringify(this.#literal));
    this.#literal = '';
  }

  #refer(value: unknown): string {
    const name = this.#values.get(value) ?? `k${this.#values.size}`;
    this.#values.set(value, name);
    return name;
  }

  #field(field: DescField): string {
    const value = `m[${JSON.stringify(field.localName)}]`;
    if (field.fieldKind === 'map') throw new Error(`${field}: no form in JSON`);
    const name = JSON.stringify(field.localName);
    if (field.fieldKind === 'list' && field.enum !== undefined) {
      return `${this.#refer(joinedNames)}(${value}, ${this.#refer(enumTable(field))}, m, ${name}, ${this.#refer(this.#form.quote)})`;
    }
    if (field.fieldKind === 'list') return `${this.#refer(joined)}(${value}, ${this.#refer(this.#writer(field))})`;
    if (field.fieldKind === 'enum') {
      return `(${this.#refer(enumTable(field))}[${value}] ?? ${this.#refer(storedName)}(m, ${name}, ${this.#refer(this.#form.quote)}))`;
    }
    const written = this.#written(field, value);
    // A value without presence needs no check.
    const alwaysThere = field.fieldKind === 'scalar' && !hasPresence(field);
    return alwaysThere ? written : `(${value} === undefined ? 'null' : ${written})`;
  }

  #written(type: ValueType, value: string): string {
    if (type.scalar === ScalarType.STRING) return `${this.#refer(this.#form.quote)}(${value})`;
    if (type.scalar !== undefined && plainScalars.has(type.scalar)) return value;
    return `${this.#refer(this.#writer(type))}(${value})`;
  }

  #writer(type: ValueType): (value: never) => string {
    if (type.message?.typeName === TimestampSchema.typeName) return quotedTimestamp;
    if (type.message !== undefined) return compile(type.message, this.#form);
    if (type.scalar === ScalarType.STRING) return this.#form.quote;
    if (type.scalar !== undefined && plainScalars.has(type.scalar)) return String;
    throw new Error(`a field of scalar type ${type.scalar} has no form in JSON`);
  }

  #oneof(oneof: DescOneof): string {
    const writers: Record<string, Encoder> = Object.create(null);
    for (const field of oneof.fields) {
      if (field.message === undefined) throw new Error(`${oneof}: only messages may stand in a oneof`);
      writers[field.localName] = compile(field.message, this.#form);
    }
    return `${this.#refer(chosen)}(m[${JSON.stringify(oneof.localName)}], ${this.#refer(writers)})`;
  }
}

/** Types that JSON writes as JavaScript does: integers of any length, and booleans. */
const plainScalars: ReadonlySet<ScalarType> = new Set([
  ScalarType.BOOL,
  ScalarType.INT32,
  ScalarType.UINT32,
  ScalarType.INT64,
  ScalarType.UINT64,
]);

function hasPresence(field: DescField): boolean {
  return field.presence !== FeatureSet_FieldPresence.IMPLICIT;
}

function enumTable(type: ValueType): string[] {
  const table: string[] = [];
  if (type.enum !== undefined) for (const [number, name] of enumNames(type.enum)) table[number] = JSON.stringify(name);
  return table;
}

function quotedTimestamp(timestamp: Parameters<typeof formatTimestamp>[0]): string {
  return `"${formatTimestamp(timestamp)}"`;
}

function joined<Item>(items: readonly Item[], write: (item: Item) => string): string {
  let text = '[';
  for (let at = 0; at < items.length; at += 1) {
    text += at === 0 ? write(items[at] as Item) : `,${write(items[at] as Item)}`;
  }
  return `${text}]`;
}

/** A message that may have stored enumeration names unknown to this version. */
interface MaybeNamed {
  readonly [storedNames]?: StoredNames;
}

/** The stored name of an enumeration field; null if it has no value. */
function storedName(message: MaybeNamed, field: string, write: Form['quote']): string {
  const name = message[storedNames]?.[field];
  return typeof name === 'string' ? write(name) : 'null';
}

/** The names in a list of an enumeration: stored names if this version does not know the value. */
function joinedNames(
  values: readonly number[],
  table: readonly string[],
  message: MaybeNamed,
  field: string,
  write: Form['quote'],
): string {
  const names = message[storedNames]?.[field];
  const stored = Array.isArray(names) ? names : [];
  return `[${values.map((value, at) => table[value] ?? write(stored[at] ?? unnamed)).join(',')}]`;
}

function chosen(choice: { case?: string; value?: Message }, writers: Readonly<Record<string, Encoder>>): string {
  const write = choice.case === undefined ? undefined : writers[choice.case];
  return write === undefined || choice.value === undefined ? 'null' : write(choice.value);
}
