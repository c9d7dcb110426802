import { createHash } from 'node:crypto';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isLoopback } from '../options.ts';

/** The command was started wrongly. */
export class UsageError extends Error {
  override readonly name = 'UsageError';

  constructor(
    message: string,
    /** Whether the help follows the message. */
    readonly showsHelp = false,
  ) {
    super(message);
  }
}

/** The settings of the listener. */
export interface ListenSettings {
  readonly baseUrl: string;
  readonly key: string;
  readonly allowPlaintext: boolean;
  /** Where events are posted to. */
  readonly forward: URL;
  /** The secret they are signed with; undefined: one is made. */
  readonly secret: string | undefined;
  /** Where to begin: where the last run ended, at the events to come, at the oldest kept, or at a cursor. */
  readonly from: 'last' | 'new' | 'oldest' | { readonly cursor: string };
  /** Where it is kept how far this got. */
  readonly stateFile: string;
  /** How often one event is posted at most. */
  readonly maxAttempts: number;
  readonly pollMs: number;
}

export const help = `Follows the event feed and posts each event, signed like a webhook, to a program on this machine.

  marina-listen --forward http://127.0.0.1:3000/webhooks

  --forward URL       where events are posted to
  --base-url URL      where the gateway is; else MARINA_BASE_URL
  --from WHERE        last: where the last run ended, or the events to come if there was none (the default)
                      new: the events to come; oldest: all that are kept; or a cursor of the feed
  --state FILE        keeps how far it got; else a file below ~/.local/state/marina-listen
  --attempts N        how often one event is posted before the next one's turn, 1 to 20; 5 if absent
  --poll-ms N         how long to wait when there is nothing new, 100 to 60000; 1000 if absent
  --allow-remote      lets --forward name another machine: events have your customers' orders in them
  --allow-plaintext   lets the key travel in plain text to a gateway on another machine
  --help              shows this

The environment has what must not be seen in a list of processes:

  MARINA_KEY               a key with the scope read
  MARINA_WEBHOOK_SECRET    what events are signed with, whsec_…; without it one is made and shown at the start
`;

/** Reads the command line and the environment. Throws a UsageError. */
export function readSettings(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): ListenSettings | 'help' {
  const values = parsed(argv);
  if (values.help) return 'help';
  const baseUrl = values['base-url'] ?? environment.MARINA_BASE_URL;
  const key = environment.MARINA_KEY;
  if (key === undefined || key === '') throw new UsageError('Set MARINA_KEY to a key with the scope read.');
  if (baseUrl === undefined) throw new UsageError('Say where the gateway is: --base-url, or MARINA_BASE_URL.');
  if (values.forward === undefined)
    throw new UsageError('Say where to post events to: --forward http://127.0.0.1:3000/webhooks');
  const gateway = gatewayUrl(baseUrl);
  if (!/^[!-~]+$/.test(key)) throw new UsageError('MARINA_KEY has characters that no key has.');
  const forward = url(values.forward, '--forward');
  if (!isLoopback(forward) && !values['allow-remote']) {
    throw new UsageError(`${forward.hostname} is not this machine. --allow-remote permits it.`);
  }
  const secret = environment.MARINA_WEBHOOK_SECRET;
  if (secret !== undefined && secret !== '' && !/^whsec_[A-Za-z0-9+/]+={0,2}$/.test(secret)) {
    throw new UsageError('MARINA_WEBHOOK_SECRET has to be `whsec_` and base64.');
  }
  return {
    baseUrl: gateway.href,
    key,
    allowPlaintext: values['allow-plaintext'] ?? false,
    forward,
    secret: secret === '' ? undefined : secret,
    from: from(values.from ?? 'last'),
    stateFile: values.state ?? defaultStateFile(baseUrl, key, environment.XDG_STATE_HOME),
    maxAttempts: number(values.attempts ?? '5', '--attempts', 1, 20),
    pollMs: number(values['poll-ms'] ?? '1000', '--poll-ms', 100, 60_000),
  };
}

function parsed(argv: readonly string[]) {
  try {
    const text = { type: 'string' } as const;
    const flag = { type: 'boolean' } as const;
    const { values } = parseArgs({
      args: [...argv],
      options: {
        forward: text,
        'base-url': text,
        from: text,
        state: text,
        attempts: text,
        'poll-ms': text,
        'allow-remote': flag,
        'allow-plaintext': flag,
        help: flag,
      },
    });
    return values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), true);
  }
}

function url(text: string, what: string): URL {
  const read = URL.canParse(text) ? new URL(text) : undefined;
  if (read === undefined || !/^https?:$/.test(read.protocol))
    throw new UsageError(`${what} has to be a URL of http or https.`);
  if (read.username !== '' || read.password !== '')
    throw new UsageError(`${what} has a user name or a password. Neither is sent.`);
  return read;
}

function gatewayUrl(text: string): URL {
  const read = url(text, 'The base URL');
  if (/[?#]/.test(text)) throw new UsageError('The base URL has a query or a fragment. It needs neither.');
  return read;
}

function from(text: string): ListenSettings['from'] {
  return text === 'last' || text === 'new' || text === 'oldest' ? text : { cursor: text };
}

function number(text: string, what: string, least: number, most: number): number {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) throw new UsageError(`${what} has to be ${least} to ${most}.`);
  return value;
}

/** A file for each gateway and key. Its name has nothing of the key. */
function defaultStateFile(baseUrl: string, key: string, stateHome: string | undefined): string {
  const name = createHash('sha256').update(`${baseUrl}\n${key}`).digest('hex').slice(0, 16);
  return join(stateHome || join(homedir(), '.local/state'), 'marina-listen', `${name}.json`);
}
