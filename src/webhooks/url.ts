import { isIP } from 'node:net';
import { ApiError } from '../lib/errors.ts';
import { type AddressRules, mayDial } from './addresses.ts';

const mostCharacters = 1_024;

/** Names that no public resolver answers for: RFC 6761, 6762, 8375, and what private networks use (ICANN's .internal). */
const privateNames = ['localhost', 'local', 'internal', 'home.arpa', 'intranet', 'lan', 'home', 'corp'];

/**
 * Checks a URL that events are to be sent to and answers with it as it will be used: `https`, without user name, password,
 * query or fragment, with a public host. Where a name leads is looked at again at every connection (`sender`).
 *
 * @throws ApiError `invalid_request` with `param` = `url` and a sentence that names the rule.
 */
export function checkEndpointUrl(text: string, rules: AddressRules): string {
  const problem = findProblem(text, rules);
  if (problem !== undefined) throw new ApiError('invalid_request', { param: 'url', message: `The URL ${problem}.` });
  return new URL(text).href;
}

function findProblem(text: string, rules: AddressRules): string | undefined {
  if (text.length > mostCharacters) return `must have at most ${mostCharacters} characters`;
  // The parser drops or turns these, so that what was read would not be what is used.
  if (/[\s\\\p{Cc}]/u.test(text)) return 'must not contain spaces, backslashes or control characters';
  if (!/^https:\/\/(?!\/)/i.test(text)) return 'must begin with https:// and a host';
  if (!URL.canParse(text)) return 'cannot be read';
  const url = new URL(text);
  if (url.username !== '' || url.password !== '' || authorityOf(text).includes('@')) {
    return 'must not contain a user name or password';
  }
  // Also an empty one: the parsed URL would not show it.
  if (text.includes('?')) return 'must not contain a query';
  if (text.includes('#')) return 'must not contain a fragment';
  if (url.port === '0') return 'must not name port 0';
  if (!isPublicHost(url.hostname, rules)) return 'must have a public host';
  return undefined;
}

function authorityOf(text: string): string {
  return text.slice('https://'.length).split(/[/?#]/, 1)[0] ?? '';
}

/** The parser has turned every spelling of an IPv4 address (hex, octal, short, one number) into the dotted one. */
function isPublicHost(hostname: string, rules: AddressRules): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  if (isIP(host) !== 0) return mayDial(host, rules);
  if (isLoopbackName(host)) return rules.allowLoopback;
  const isPrivate = privateNames.some((name) => host === name || host.endsWith(`.${name}`));
  return host.includes('.') && !isPrivate && host.length <= 253;
}

/** A name that stands for loopback by itself and is never looked up (RFC 6761). */
export function isLoopbackName(host: string): boolean {
  return /(^|\.)localhost\.?$/i.test(host);
}
