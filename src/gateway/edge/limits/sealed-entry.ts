import type { PeerMac } from '../peers/mac.ts';
import type { UntrustedReason } from '../peers/untrusted.ts';

/** The longest entry. One of the most replicas there can be is half as long. */
export const maxEntryBytes = 65_536;
/** How far the time in an entry may be from the one that the NATS server gave it. Replicas know the server's clock far better. */
const apartMs = 5_000;
/** Time, MAC, and behind a line end the value as JSON. */
const form = /^(\d{1,15}) ([\w-]{22})\n/;

/** An entry's text, which only a gateway of the ring can have made, and when it was made by the NATS server's clock. */
export interface OpenedEntry {
  readonly text: string;
  /** Each entry of a name has a higher one than those before, which may be a millisecond or more ahead of the clock. */
  readonly stamp: number;
}

/** An entry of the shared counter store that is not believed. */
export class UntrustedEntryError extends Error {
  override readonly name = 'UntrustedEntryError';

  constructor(
    readonly reason: UntrustedReason,
    /** The revision of the entry, which may be overwritten; 0 if there is none. */
    readonly revision: number,
  ) {
    super(`an entry of the shared counter store is not believed: ${reason}`);
  }
}

/** Seals an entry's text. `subject`: the bucket and the key, so that it means nothing elsewhere. */
export function sealEntry(mac: PeerMac, subject: string, { text, stamp }: OpenedEntry): string {
  return `${stamp} ${mac.make(['entry', subject, stamp], text)}\n${text}`;
}

/** Opens an entry that the NATS server stored at `createdAt`. Nothing in it is parsed unless its MAC is right. */
export function openEntry(
  mac: PeerMac,
  subject: string,
  sealed: Uint8Array,
  createdAt: number,
): OpenedEntry | UntrustedReason {
  if (sealed.length > maxEntryBytes) return 'too_large';
  const all = Buffer.from(sealed).toString('utf8');
  const [head, stampText, macText] = form.exec(all) ?? [];
  if (head === undefined || macText === undefined) return 'unsigned';
  const opened = { text: all.slice(head.length), stamp: Number(stampText) };
  if (!mac.isOf(macText, ['entry', subject, opened.stamp], opened.text)) return 'forged';
  return Math.abs(createdAt - opened.stamp) > apartMs ? 'late' : opened;
}
