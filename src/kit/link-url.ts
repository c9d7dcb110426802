const encoded = 'in a name or password, @ : / ? # , and % must be written as %40 %3A %2F %3F %23 %2C %25';

/** A URL of a link without its schemes' differences. */
export interface LinkUrl {
  readonly protocol: string;
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  /** Undefined: the usual one. */
  readonly port: number | undefined;
  readonly user: string;
  readonly password: string;
  /** Without the first slash. */
  readonly path: string;
}

/**
 * Reads a URL that names one host. Throws an error that says what is wrong, and never has a part of the user or
 * password. A part that the gateway does not know is refused: it would have no effect.
 */
export function parseLinkUrl(url: string, protocols: readonly string[]): LinkUrl {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !protocols.includes(parsed.protocol) || parsed.hostname === '') {
    throw new Error(`must be ${protocols.map((protocol) => `${protocol}//`).join(' or ')} and one host; ${encoded}`);
  }
  const { protocol, hostname, port, username, password, pathname, search, searchParams, hash } = parsed;
  if (hostname.includes(',')) throw new Error('must name one host');
  const [parameter] = searchParams.keys();
  if (parameter !== undefined) {
    // If an @ follows the ?, both may be parts of a password.
    const isName = !search.includes('@') && /^[A-Za-z][\w.-]{0,40}$/.test(parameter);
    throw new Error(`has an unknown parameter${isName ? ` ${parameter}` : `; ${encoded}`}`);
  }
  if (hash !== '') throw new Error(`has an unknown part after #; ${encoded}`);
  return {
    protocol,
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? undefined : Number(port),
    user: decoded(username),
    password: decoded(password),
    path: decoded(pathname.slice(1)),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(`has a % that begins no code; ${encoded}`);
  }
}
