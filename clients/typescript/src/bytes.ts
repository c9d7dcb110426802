/** Bytes as JavaScript has them: a Buffer, a Uint8Array or another view, or a whole buffer. */
export type Bytes = ArrayBufferView | ArrayBufferLike;

const buffers: readonly string[] = ['[object ArrayBuffer]', '[object SharedArrayBuffer]'];

/** A copy, which nobody can change while it is in use; undefined if the value is not bytes. */
export function copyOfBytes(value: unknown): Uint8Array<ArrayBuffer> | undefined {
  if (ArrayBuffer.isView(value)) {
    return new Uint8Array(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  }
  return isBuffer(value) ? new Uint8Array(new Uint8Array(value)) : undefined;
}

/** Buffers of another realm, such as a test runner's, are none of this one's classes. */
function isBuffer(value: unknown): value is ArrayBufferLike {
  return typeof value === 'object' && value !== null && buffers.includes(Object.prototype.toString.call(value));
}

/** Names the kind of a value, for the sentence of an error. It has nothing of the value itself. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  if (typeof value !== 'object') return `a ${typeof value}`;
  const name = Object.getPrototypeOf(value)?.constructor?.name;
  return name === undefined || name === 'Object' ? 'a parsed object' : `an object of ${name}`;
}
