import { isAddressOrRange } from '../../kit/addresses.ts';
import { parseLinkUrl } from '../../kit/link-url.ts';
import { natsAddress } from '../../kit/nats-address.ts';
import { oneOf, type Setting, setting, text, wholeNumber } from '../../kit/settings.ts';
import { databaseAddress } from '../store/address.ts';

/**
 * A process's role. `api` serves partners. `worker` publishes events, applies reports, settles unknown outcomes and
 * removes old rows. `webhooks` delivers. Every process has the operators' and the operations port.
 */
export type Role = (typeof roles)[number];

export const roles = ['api', 'worker', 'webhooks'] as const;

/** A connection to another system, as `MARINA_PLAINTEXT_LINKS` names it. */
export type LinkName = (typeof linkNames)[number];

export const linkNames = ['database', 'nats', 'broker', 'otlp'] as const;

export const address = text(/.+/, 'an address');
export const hostPort = text(/^.+:\d+$/, 'host:port');
export const contact = text(/^(?:[^\s@<>"]+@[^\s@<>"]+|https?:\/\/[^\s<>"]+)$/, 'an e-mail address or an http(s) URL');
export const httpUrl = text(/^https?:\/\/[^ ]+[^/ ]$/, 'an http(s) URL without a final slash');

export function port(variable: string, meaning: string, fallback: string): Setting<number> {
  return setting(variable, meaning, fallback, wholeNumber(0, 65_535));
}

export function parseRoles(value: string): readonly Role[] {
  const role = oneOf(...roles);
  return value.split(',').map((entry) => role.read(entry.trim()));
}

export function parseAddresses(value: string): readonly string[] {
  const addresses = value === '' ? [] : value.split(',').map((entry) => entry.trim());
  if (!addresses.every(isAddressOrRange)) throw new Error('must be addresses or ranges separated by commas');
  if (addresses.some((address) => address.endsWith('/0'))) {
    throw new Error('must be addresses of proxies, not all there are: any client could say that it is another');
  }
  return addresses;
}

export function parseDatabaseUrl(value: string): string {
  if (databaseAddress(value).database === '') throw new Error('must name a database after the host');
  return value;
}

export function parseNatsUrl(value: string): string {
  natsAddress(value);
  return value;
}

/** Odd numbers alone: an even one survives no more losses than the one below it. NATS keeps at most 5. */
export function parseReplicas(value: string): number {
  if (!['1', '3', '5'].includes(value)) throw new Error('not a number of replicas');
  return Number(value);
}

/** At most 16 names, none of which is that of the gateway's own consumer. */
export function parseConsumers(value: string): readonly string[] {
  const names = value === '' ? [] : value.split(',').map((entry) => entry.trim());
  if (names.length > 16) throw new Error('must be at most 16 names');
  if (names.some((name) => !/^[A-Za-z0-9_-]{1,32}$/.test(name) || name.endsWith('webhooks'))) {
    throw new Error("must be names of letters, digits, hyphens and underscores, and not the gateway's own `webhooks`");
  }
  return names;
}

export function parseOtlpUrl(value: string): string {
  const url = httpUrl.read(value);
  const { user, password } = parseLinkUrl(url, ['http:', 'https:']);
  if (user !== '' || password !== '') throw new Error('must have no user or password: use MARINA_OTLP_HEADERS');
  return url;
}

export function parseHeaders(value: string): Readonly<Record<string, string>> {
  const entries = value.split(/[,\n]/).filter((entry) => entry.trim() !== '');
  const pairs = entries.map((entry): [string, string] => {
    const [, name, text] = /^\s*([A-Za-z0-9!#$%&'*+.^_`|~-]+)=([ -~]+?)\s*$/.exec(entry) ?? [];
    if (name === undefined || text === undefined) throw new Error('must be name=value pairs');
    return [name.toLowerCase(), text];
  });
  return Object.fromEntries(pairs);
}

export function parseLinks(value: string): readonly LinkName[] {
  const link = oneOf(...linkNames);
  return value === '' ? [] : value.split(',').map((entry) => link.read(entry.trim()));
}

/** The greatest amount of one credit, in kobo. */
const maxCreditKobo = 10n ** 15n;

export function parseFourEyesAmount(text: string): bigint | 'off' {
  if (text === 'off') return text;
  const amount = /^(?:0|[1-9]\d{0,15})$/.test(text) ? BigInt(text) : undefined;
  if (amount === undefined || amount > maxCreditKobo) throw new Error(`must be off, or 0 to ${maxCreditKobo}`);
  return amount;
}

/** The minute of the day of a time such as `18:30`. */
export function parseTimeOfDay(text: string): number {
  const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  if (hours === undefined || minutes === undefined) throw new Error('is not a time of day');
  return Number(hours) * 60 + Number(minutes);
}
