/** The parts of a case. The canary is a whole request that must never run; it is alone in its packet. */
export interface Parts {
  /** The honest key's header line. */
  readonly auth: string;
  readonly canary: string;
}

/** One attack on the framing of HTTP/1, and what the gateway does with it. */
export interface FramingCase {
  readonly name: string;
  /** The packets, in order. */
  readonly packets: (parts: Parts) => readonly string[];
  /** The statuses of the answers; undefined: whichever there are. */
  readonly answers?: readonly number[];
  /** Whether the gateway closes the connection, or serves the next request on it; undefined: one of the two. */
  readonly ends?: boolean;
}

type Packets = FramingCase['packets'];

export const estimate = '{"account":"A1","symbol":"SIM-REST","side":"buy","quantity":1,"type":"market"}';
export const estimateBytes = String(estimate.length);

/** A head: the request line and the header lines as given, with the key and a Host. */
export function head(line: string, auth: string, ...lines: string[]): string {
  return `${[line, 'Host: gateway', auth, ...lines].join('\r\n')}\r\n\r\n`;
}

export const get = (auth: string, ...lines: string[]) => head('GET /v1/limits HTTP/1.1', auth, ...lines);
export const post = (auth: string, ...lines: string[]) =>
  head('POST /v1/orders/estimate HTTP/1.1', auth, 'Content-Type: application/json', ...lines);

/** Refused with 400 as the connection's last answer. */
export function refused(name: string, packets: Packets, status = 400): FramingCase {
  return { name, packets, answers: [status], ends: true };
}

/** Answered as an ordinary request, and the connection ends. */
export function ended(name: string, packets: Packets, answers: readonly number[] = [200]): FramingCase {
  return { name, packets, answers, ends: true };
}

/** Answered as an ordinary request, and the connection goes on with the next one. */
export function served(name: string, packets: Packets, answers: readonly number[] = [200]): FramingCase {
  return { name, packets, answers, ends: false };
}

/** Of an estimate that was read whole: the account is nobody's. */
export const read = [422];

/** The header lines of an estimate, and its body with the canary behind it. */
export function onPost(lines: readonly string[], body = estimate): Packets {
  return ({ auth, canary }) => [post(auth, ...lines), body, canary];
}

/** The same with a body in chunks. */
export function chunked(body: string): Packets {
  return onPost(['Transfer-Encoding: chunked'], body);
}

export const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
export const wholeBody = `${chunk(estimate)}0\r\n\r\n`;
export const hex = estimate.length.toString(16);
