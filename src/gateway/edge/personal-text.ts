/**
 * A number as long as those that name a person: a BVN, a NIN, a telephone or an account number. Digits of any script, also with
 * spaces or signs between them.
 */
const longNumber = /\p{Nd}(?:[\s().+-]{0,2}\p{Nd}){9,}/gu;
const mailAddress = /[^\s@]{1,64}@[^\s@]{1,255}/gu;

/** The mark for a text that is left out. */
export const leftOut = '…';

/** A short text that a caller chose, such as a field's name, without long numbers and mail addresses. */
export function withoutPersonalText(text: string): string {
  return text.replace(mailAddress, leftOut).replace(longNumber, leftOut);
}

/** A text's longest run of digits, of any script and with signs or blanks between them. */
export function longestNumber(text: string): number {
  let longest = 0;
  let length = 0;
  for (const character of text) {
    if (/\p{Nd}/u.test(character)) length += 1;
    else if (!/[\s().+\-_/:,]/u.test(character)) length = 0;
    if (length > longest) longest = length;
  }
  return longest;
}
