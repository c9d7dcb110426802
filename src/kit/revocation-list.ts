/** From when to when a list of revoked certificates holds, in milliseconds since 1970. */
export interface ListDates {
  readonly from: number;
  /** Undefined: the list does not say. */
  readonly until: number | undefined;
}

/** One element of DER: its tag, and where its content is. */
interface Element {
  readonly tag: number;
  readonly start: number;
  readonly end: number;
}

const tags = { integer: 0x02, utcTime: 0x17, generalizedTime: 0x18, sequence: 0x30 };

/**
 * Reads the dates of a list (RFC 5280, 5.1), because Node does not tell them. Throws if the text is not a list in PEM. TLS
 * refuses all certificates of an authority whose list has ended.
 */
export function datesOfList(pem: string): ListDates {
  const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64');
  const [list] = elementsOf(der, { tag: tags.sequence, start: 0, end: der.length });
  const [content] = elementsOf(der, demanded(list, tags.sequence));
  const members = elementsOf(der, demanded(content, tags.sequence));
  // Version (if there is one), algorithm and issuer come before the times.
  const times = members.slice(members[0]?.tag === tags.integer ? 3 : 2);
  const [from, until] = [timeOf(der, times[0]), timeOf(der, times[1])];
  if (from === undefined) throw new Error('a list without its time');
  return { from, until };
}

function demanded(element: Element | undefined, tag: number): Element {
  if (element?.tag !== tag) throw new Error('no list of revoked certificates');
  return element;
}

/** The elements right within another one. */
function elementsOf(der: Buffer, { start, end }: Element): Element[] {
  const found: Element[] = [];
  for (let at = start; at < end; ) {
    const tag = der.readUInt8(at);
    const first = der.readUInt8(at + 1);
    const lengthBytes = first < 0x80 ? 0 : first - 0x80;
    const length = lengthBytes === 0 ? first : der.readUIntBE(at + 2, lengthBytes);
    const from = at + 2 + lengthBytes;
    at = from + length;
    if (at > end) throw new Error('an element that is longer than what it is in');
    found.push({ tag, start: from, end: at });
  }
  return found;
}

/** A time; undefined if the element is something else, such as the entries. */
function timeOf(der: Buffer, element: Element | undefined): number | undefined {
  if (element?.tag !== tags.utcTime && element?.tag !== tags.generalizedTime) return undefined;
  const text = der.toString('latin1', element.start, element.end);
  // Two digits of a year are from 1950 to 2049.
  const century = element.tag === tags.generalizedTime ? '' : Number(text.slice(0, 2)) < 50 ? '20' : '19';
  const [, day, time] = /^(\d{8})(\d{6})Z$/.exec(`${century}${text}`) ?? [];
  if (day === undefined || time === undefined) throw new Error('a time that is not one of a list');
  return Date.parse(`${day.replace(/(....)(..)(..)/, '$1-$2-$3')}T${time.replace(/(..)(..)(..)/, '$1:$2:$3')}Z`);
}
