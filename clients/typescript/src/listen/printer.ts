/** Longer lines are cut: an event, an answer and an error of the system have less to say. */
const maxLength = 500;

/** Keys and secrets by their form, whoever's they are. */
const credentials = /marina_(?:test|live)_[\w-]+|whsec_[\w+/=-]+/g;

/**
 * What could change the terminal, hide text or change its order: control characters of C0 and C1, with DEL; format characters,
 * such as those that change the direction of text or take no room; marks that are drawn over the character before, of which
 * hundreds cover the lines around; line and paragraph separators; halves of characters; private and unassigned characters; letters
 * that show nothing.
 */
const unprintable =
  /[\p{Cc}\p{Cf}\p{M}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/**
 * Makes lines that are safe to show in a terminal and to keep in a log. Everything that came from elsewhere goes through it: names
 * in events, what the gateway and the program answered, errors of the system. Credentials are hidden, and what a terminal would
 * act on is shown as `\u{1b}`.
 */
export function safeLine(secrets: readonly (string | undefined)[]): (text: string) => string {
  // A short text may be part of any word, and is nobody's secret. Longer ones first: one may be part of another.
  const hidden = secrets
    .flatMap((secret) => (secret !== undefined && secret.length >= 8 ? [secret, encodeURIComponent(secret)] : []))
    .toSorted((one, other) => other.length - one.length);
  return (text) => {
    const masked = hidden
      .reduce((line, secret) => line.replaceAll(secret, '[hidden]'), text)
      .replace(credentials, '[hidden]');
    const [...characters] = masked;
    const cut = characters.length > maxLength ? `${characters.slice(0, maxLength).join('')}…` : masked;
    return cut.replace(unprintable, escaped);
  };
}

/** An address without what may be secret in it: the user name, the password and the query. */
export function addressOf({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

function escaped(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
