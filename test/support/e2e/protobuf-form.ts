import { create, type DescField, type Message, ScalarType, toBinary } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type Call, operations, Raw } from './calls.ts';

/** A value JSON or a query can write and protobuf cannot. */
const noForm = Symbol('no form in protobuf');
const unknownValue = 99;

/** A call's message in protobuf's encoding; undefined when protobuf cannot say what the call says. */
export function toProtobuf(call: Call): Uint8Array | undefined {
  const message = toMessage(call);
  return message === undefined ? undefined : toBinary(operations[call.operation].rpc.input, message);
}

/** A call's message; undefined when protobuf cannot say what the call says. */
export function toMessage({ operation, id, query = {}, body = {} }: Call): Message | undefined {
  const { rpc, names, takesFile } = operations[operation];
  const { input } = rpc;
  const values: Record<string, unknown> = {};
  const named = { [names?.[0] ?? 'id']: id, ...(takesFile ? { type: 'photo' } : {}) };
  for (const [name, value] of Object.entries({ ...named, ...query, ...body })) {
    if (value === undefined) continue;
    const field = input.fields.find((candidate) => candidate.name === name);
    if (field !== undefined && value === null) continue;
    const converted = field === undefined ? noForm : convert(field, value, name in query);
    if (field === undefined || converted === noForm) return undefined;
    values[field.localName] = converted;
  }
  return create(input, values);
}

function convert(field: DescField, value: unknown, isText: boolean): unknown {
  if (field.fieldKind === 'list') return toList(field, value);
  return convertOne(field, value, isText);
}

function toList(field: DescField, value: unknown): unknown {
  if (!Array.isArray(value)) return noForm;
  const items = value.map((item) => convertOne(field, item, false));
  return items.includes(noForm) ? noForm : items;
}

function convertOne(field: DescField, value: unknown, isText: boolean): unknown {
  if (field.enum !== undefined) return toEnum(field, value);
  if (field.message !== undefined) return toTime(value);
  if (field.scalar === ScalarType.STRING) {
    return typeof value === 'string' && !/\p{Surrogate}/u.test(value) ? value : noForm;
  }
  if (typeof value === 'object' ? !(value instanceof Raw) : typeof value === 'string' && !isText) return noForm;
  const text = value instanceof Raw ? value.text.trim() : String(value);
  if (!/^(0|-?[1-9]\d{0,17})$/.test(text)) return noForm;
  if (field.scalar === ScalarType.INT64) return BigInt(text);
  return Math.abs(Number(text)) < 2 ** 31 ? Number(text) : noForm;
}

/** A word nobody knows becomes a number nobody knows. */
function toEnum(field: DescField, value: unknown): unknown {
  if (typeof value !== 'string' || value === '') return noForm;
  const wanted = `${field.enum?.sharedPrefix ?? ''}${value}`.toUpperCase();
  const known = field.enum?.values.find(({ name, number }) => number > 0 && name === wanted);
  return known !== undefined && value === value.toLowerCase() ? known.number : unknownValue;
}

/** Times in UTC alone; one that is no day of the calendar has no form. */
function toTime(value: unknown): unknown {
  const text = String(value);
  const date = new Date(text);
  const isWhole = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text) && !Number.isNaN(date.getTime());
  return isWhole && date.toISOString().slice(0, 19) === text.slice(0, 19) ? timestampFromDate(date) : noForm;
}
