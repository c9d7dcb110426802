import { lengthOf } from '../wire/data-fields.ts';
import type { Field } from '../wire/message.ts';
import { tags } from '../wire/tags.ts';
import { alwaysMasked, firmRoles, roleOf } from './masked-tags.ts';

/** Stands for a value that the log must not have. */
export const mask = '***';
/** The longest text of a message in the log, in characters. A message about an order is below 2 KiB. */
export const maxTextLength = 8_192;
/** A shorter password could be found by what is masked in other fields. */
const shortestSecret = 4;
/** BodyLength and CheckSum say nothing to a reader. */
const leftOut: ReadonlySet<number> = new Set([tags.BodyLength, tags.CheckSum]);
/** A field of a credential inside another value: its separator was lost on the way, perhaps behind a digit. */
const credentialInside = /(?:89|96|554|925|1402|1404)=/;
/** Characters that could be taken for a separator, for an escape, or that are not printable. */
const notPlain = /[^ -[\]-{}~]/g;

export interface MaskingOptions {
  /** Tags to mask in addition to those that always are. */
  readonly moreTags: readonly number[];
  /** The credentials of the session: they are masked wherever the other side repeats them. */
  readonly secrets: () => readonly string[];
}

/** Makes the texts of messages for the log: without credentials and personal fields, with `|` for SOH, cut at a length. */
export class Masking {
  readonly #masked: ReadonlySet<number>;
  readonly #secrets: () => readonly string[];

  constructor({ moreTags, secrets }: MaskingOptions) {
    this.#masked = new Set([...alwaysMasked.keys(), ...lengthOf.values(), ...moreTags]);
    this.#secrets = secrets;
  }

  /** The text of a message. `problem` is why its bytes end here. */
  text(fields: readonly Field[], problem?: string): string {
    let text = '';
    for (const [at, [tag, value]] of fields.entries()) {
      if (leftOut.has(tag)) continue;
      const shown = this.#isMasked(tag, fields, at) ? mask : this.value(value);
      text += `${text === '' ? '' : '|'}${tag}=${shown}`;
      if (text.length > maxTextLength) return `${text.slice(0, maxTextLength - 3)}...`;
    }
    return problem === undefined ? text : `${text}${text === '' ? '' : '|'}(${problem})`.slice(0, maxTextLength);
  }

  /** The value of a single field, masked as in the text of a message. */
  field(tag: number, value: string): string {
    return this.#isMasked(tag, [], 0) ? mask : this.value(value);
  }

  /** A value without credentials, in printable ASCII. */
  value(value: string): string {
    let shown = value;
    for (const secret of this.#secrets()) {
      if (secret.length >= shortestSecret) shown = shown.replaceAll(secret, mask);
    }
    const inside = credentialInside.exec(shown);
    if (inside !== null) shown = `${shown.slice(0, inside.index)}${mask}`;
    return shown.replace(notPlain, (one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, '0')}`);
  }

  #isMasked(tag: number, fields: readonly Field[], at: number): boolean {
    if (this.#masked.has(tag)) return true;
    const roleTag = roleOf.get(tag);
    if (roleTag === undefined) return false;
    // The role follows in the same entry of the group. A party without a role may be a customer.
    for (const [next, value] of fields.slice(at + 1)) {
      if (next === roleTag) return !firmRoles.has(value);
      if (next === tag) return true;
    }
    return true;
  }
}
