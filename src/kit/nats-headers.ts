import { type MsgHdrs, MsgHdrsImpl } from 'nats';

/** The most bytes of headers that are read. A gateway's messages have less than 700, and JetStream adds less than 300. */
export const maxHeaderBytes = 2_048;

const firstLine = 'NATS/1.0';
/** Printable ASCII without the colon. */
const nameForm = /^[!-9;-~]*$/;
const utf8 = new TextDecoder();

/** Why headers cannot be read. */
type Flaw = 'nonsense' | 'too_large';

/** The headers of a message whose headers are too large, or malformed. It looks as if it had none. */
class UnreadableHeaders extends MsgHdrsImpl {
  constructor(readonly flaw: Flaw) {
    super();
  }
}

/** Why a message's headers could not be read; undefined if they could, or if it has none. */
export function flawOf(head: MsgHdrs | undefined): Flaw | undefined {
  return head instanceof UnreadableHeaders ? head.flaw : undefined;
}

/**
 * Reads the headers of a message from their bytes, as nats.js does, but in linear time, and only up to `maxHeaderBytes`.
 * It never throws: whatever nats.js would throw for makes unreadable headers (`flawOf`).
 */
export function readHeaders(bytes: Uint8Array): MsgHdrsImpl {
  if (bytes.length > maxHeaderBytes) return new UnreadableHeaders('too_large');
  const [first = '', ...lines] = utf8.decode(bytes).split('\r\n');
  const head = new MsgHdrsImpl(...statusOf(first));
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon === -1) continue;
    const name = line.slice(0, colon);
    const value = line.slice(colon + 1).trim();
    if (!nameForm.test(name) || /[\r\n]/.test(value)) return new UnreadableHeaders('nonsense');
    const values = head.headers.get(name);
    if (values === undefined) head.headers.set(name, [value]);
    else values.push(value);
  }
  return head;
}

/** The code and the description of a status message, such as `NATS/1.0 503 No Responders`; otherwise 0 and no text. */
function statusOf(line: string): [code: number, description: string] {
  const text = line.replace(firstLine, '').trim();
  const code = Number.parseInt(text, 10) || 0;
  return [code, text.replace(`${code}`, '').trim()];
}

/**
 * nats.js reads headers wherever a message has some: in its dispatcher of replies, in consumers of JetStream, in entries of a
 * bucket, and when they are asked for. Its own reader throws at a blank in a name, which ends the connection's loop of
 * messages, and takes 5 s for 60 kB. So the reader itself is replaced, where this module is loaded, for the whole process.
 */
MsgHdrsImpl.decode = readHeaders;
