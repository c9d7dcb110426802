import { SendFailure } from '../rules.ts';

/** The largest head of one answer, informational heads before it included. */
export const maxHeadBytes = 65_536;

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const version = 'HTTP/1.';
const statusLine = /^(HTTP\/1\.[01])[ \t]+(\d{3})(?:[ \t\r]|$)/;
/** Values that the HTTP client gets: printable ASCII. */
const plainValue = /^[ -~]*$/;
/** A length of more digits is no number that a client could count to. */
const maxLengthDigits = 15;

/**
 * Reads the head of an answer leniently, because only the status of a webhook's answer counts: lines may end with LF, and
 * headers may have any form. The HTTP client gets a strict head with the status and the headers that say where the answer ends
 * and whether its connection stays open. If those cannot be read, it gets the status alone, and the connection is closed.
 */
export class AnswerHead {
  #bytes: Buffer = Buffer.alloc(0);
  #length = 0;
  /** Where the present head begins: behind informational ones. */
  #start = 0;
  /** Where the search for the end of the head goes on, so that no byte is searched again. */
  #searched = 0;

  /**
   * Adds bytes from the connection. Returns the strict head, with the bytes that follow it, once the head is complete. If nobody
   * can tell where the answer ends, the bytes are left out. Skips informational heads (1xx). Throws `SendFailure` if this is no
   * head of an HTTP answer.
   */
  add(chunk: Buffer): Buffer | undefined {
    this.#append(chunk);
    for (let end = this.#findEnd(); end !== undefined; end = this.#findEnd()) {
      if (end > maxHeadBytes) throw invalid('the head is too long');
      const strict = strictHead(this.#bytes.toString('latin1', this.#start, end));
      if (strict !== undefined) {
        const body = this.#bytes.subarray(end, strict.hasEnd ? this.#length : end);
        return Buffer.concat([Buffer.from(strict.head, 'latin1'), body]);
      }
      this.#start = end;
      this.#searched = end;
    }
    if (this.#length > maxHeadBytes) throw invalid('the head is too long');
    this.#checkStart();
    return undefined;
  }

  #append(chunk: Buffer): void {
    const length = this.#length + chunk.length;
    if (this.#length === 0) {
      this.#bytes = chunk; // Most heads come at once, so they are not copied.
    } else {
      if (length > this.#bytes.length) {
        const larger = Buffer.allocUnsafe(2 * length);
        this.#bytes.copy(larger, 0, 0, this.#length);
        this.#bytes = larger;
      }
      chunk.copy(this.#bytes, this.#length);
    }
    this.#length = length;
  }

  /** The position behind the empty line that ends the head. Undefined if it has not come. */
  #findEnd(): number | undefined {
    const bytes = this.#bytes.subarray(0, this.#length);
    for (let at = bytes.indexOf(lineFeed, this.#searched); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) {
      this.#searched = at + 1;
      const lineEnd = bytes[at - 1] === carriageReturn ? at - 1 : at;
      if (lineEnd > this.#start && bytes[lineEnd - 1] === lineFeed) return at + 1;
    }
    return undefined;
  }

  /** Fails early if the bytes so far cannot become a head, because such a peer may never send an empty line. */
  #checkStart(): void {
    const start = this.#bytes.toString('latin1', this.#start, Math.min(this.#length, this.#start + version.length));
    if (!version.startsWith(start)) throw invalid('the answer is no HTTP');
  }
}

/** The head that the HTTP client reads, and whether it says where the answer ends. */
interface StrictHead {
  readonly head: string;
  readonly hasEnd: boolean;
}

/** Undefined for an informational head. */
function strictHead(head: string): StrictHead | undefined {
  const lines = head.split('\n').map((line) => line.replace(/\r$/, ''));
  const [, protocol, status] = statusLine.exec(lines[0] ?? '') ?? [];
  if (protocol === undefined || status === undefined || status < '100') throw invalid('the answer has no status');
  if (status.startsWith('1')) return undefined;
  const headers = framingHeaders(lines.slice(1));
  const end = endOf(headers);
  const isOdd = end === 'unreadable' || [...headers.values()].some((value) => !plainValue.test(value));
  // A length beside chunks does not count, and the connection is not used again (RFC 9112, 6.3).
  const isDouble = headers.has('transfer-encoding') && headers.has('content-length');
  const strict = [`${protocol} ${status} -`];
  if (end !== undefined) strict.push(end === 'unreadable' ? 'content-length: 0' : end);
  if (isOdd || isDouble) strict.push('connection: close');
  else {
    for (const name of ['connection', 'keep-alive']) {
      const value = headers.get(name);
      if (value !== undefined) strict.push(`${name}: ${value}`);
    }
  }
  return { head: `${strict.join('\r\n')}\r\n\r\n`, hasEnd: end !== 'unreadable' };
}

const framing = new Set(['content-length', 'transfer-encoding', 'connection', 'keep-alive']);

/**
 * The values of the headers that frame an answer, as lists, by their names in lower case. A folded line continues the one before.
 */
function framingHeaders(lines: readonly string[]): Map<string, string> {
  const unfolded: string[][] = [];
  for (const line of lines) {
    if (/^[ \t]/.test(line)) unfolded.at(-1)?.push(line.trim());
    else unfolded.push([line]);
  }
  const found = new Map<string, string[]>();
  for (const [line = '', ...folded] of unfolded) {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon)).trim().toLowerCase();
    if (!framing.has(name)) continue;
    const values = found.get(name) ?? [];
    values.push([line.slice(colon + 1).trim(), ...folded].join(' '));
    found.set(name, values);
  }
  return new Map([...found].map(([name, values]) => [name, values.join(', ')]));
}

/** The header that says where an answer ends; undefined: it ends with its connection. */
function endOf(headers: ReadonlyMap<string, string>): string | 'unreadable' | undefined {
  const codings = headers.get('transfer-encoding');
  if (codings !== undefined) {
    return /(?:^|,)[ \t]*chunked[ \t]*$/i.test(codings) ? 'transfer-encoding: chunked' : 'unreadable';
  }
  const length = headers.get('content-length');
  if (length === undefined) return undefined;
  const lengths = length.split(',').map((each) => each.trim().replace(/^0+(?=\d)/, ''));
  if (!lengths.every((each) => /^\d+$/.test(each))) return 'unreadable';
  if (new Set(lengths).size > 1) throw invalid('two values of Content-Length differ');
  const [digits = ''] = lengths;
  return digits.length > maxLengthDigits ? 'unreadable' : `content-length: ${digits}`;
}

function invalid(message: string): SendFailure {
  return new SendFailure('invalid_response', message);
}
