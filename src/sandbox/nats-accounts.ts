import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const configuration = join(import.meta.dirname, '../../docs/deploy/nats.conf');

/** The passwords of the users of NATS: hex, or other text without quotes and backslashes. */
export interface NatsPasswords {
  readonly gateway: string;
  readonly events: string;
  readonly 'back-office': string;
}

/** The accounts and permissions of docs/deploy/nats.conf, as lines of a configuration of NATS. */
export function natsAccounts(passwords: NatsPasswords, prefix = ''): string[] {
  const text = readFileSync(configuration, 'utf8');
  const accounts = text.slice(text.indexOf('\naccounts {') + 1).trimEnd();
  return [
    `GATEWAY_PASSWORD: "${passwords.gateway}"`,
    `EVENTS_PASSWORD: "${passwords.events}"`,
    `BACK_OFFICE_PASSWORD: "${passwords['back-office']}"`,
    ...withPrefix(accounts, prefix).split('\n'),
  ];
}

/** The same URL with a login. */
export function natsLogin(url: string, user: keyof NatsPasswords, passwords: NatsPasswords): string {
  const address = new URL(url);
  address.username = user;
  address.password = passwords[user];
  return address.href;
}

/** The prefix of an installation stands before the names of streams, buckets, consumers and subjects. */
function withPrefix(accounts: string, prefix: string): string {
  if (prefix === '') return accounts;
  return accounts
    .replace(/"(events|peers|say)\./g, `"${prefix}$1.`)
    .replace(/\.EVENTS\b/g, `.${prefix}EVENTS`)
    .replace(/KV_SLOTS\b/g, `KV_${prefix}SLOTS`)
    .replace(/\$KV\.SLOTS\b/g, `$KV.${prefix}SLOTS`);
}
