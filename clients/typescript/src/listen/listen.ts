import { randomBytes } from 'node:crypto';
import { Marina } from '../client.ts';
import type { Event } from '../contract.ts';
import { withDeadline } from '../deadline.ts';
import { MarinaError } from '../errors.ts';
import { writeJson } from '../json.ts';
import { isPlaintext } from '../options.ts';
import { sleep } from '../sleep.ts';
import { signWebhook } from '../webhooks.ts';
import { addressOf, safeLine } from './printer.ts';
import type { ListenSettings } from './settings.ts';
import { type Progress, readProgress, writeProgress } from './state.ts';

interface Surroundings {
  readonly signal: AbortSignal;
  /** Writes a line as it is. Only what this program made itself may go there. */
  readonly write: (line: string) => void;
}

/** How the listener runs, with a `say` for lines that have something from elsewhere in them. */
interface Run {
  readonly signal: AbortSignal;
  readonly secret: string;
  readonly say: (line: string) => void;
}

/** An endpoint has so long to answer, as the gateway's own webhooks give it. */
const answerMs = 10_000;
const firstWaitMs = 500;
const longestWaitMs = 8_000;

/**
 * Follows the feed and posts each event, in order, until the signal is aborted. An event that is not answered with 2xx is posted
 * again a few times; then it is the next one's turn.
 */
export async function listen(settings: ListenSettings, { signal, write }: Surroundings): Promise<void> {
  const { baseUrl, key, allowPlaintext, forward, pollMs, stateFile } = settings;
  if (isPlaintext(new URL(baseUrl)) && !allowPlaintext) {
    throw new MarinaError(
      'The base URL has to be https: the key would travel in plain text. --allow-plaintext permits it.',
    );
  }
  const secret = settings.secret ?? `whsec_${randomBytes(32).toString('base64')}`;
  const safe = safeLine([key, secret]);
  const say = (line: string) => write(safe(line));
  const marina = new Marina({ baseUrl, key, allowPlaintext });
  const begin = beginning(settings);
  const feed = marina.followEvents({
    cursor: begin.cursor,
    signal,
    pollMs,
    onTrouble: (error, waitMs) => say(`! ${error.message}. Trying again in ${(waitMs / 1_000).toFixed(1)} s.`),
  });
  say(`Posting events of ${baseUrl} to ${addressOf(forward)}`);
  // The one secret that is shown: it was made here, for this run, and the endpoint needs it.
  if (settings.secret === undefined) write(`They are signed with ${secret}`);
  else say('They are signed with MARINA_WEBHOOK_SECRET');
  if (begin.skips) await feed.skipToEnd();
  say('Waiting for events. Ctrl-C ends.');
  let version = begin.version;
  const keep = (cursor: string | undefined) => writeProgress(stateFile, { cursor, version: String(version) });
  // A run that posts nothing is gone on with, too. A cursor that was given is kept once the gateway has taken it.
  if (begin.cursor === undefined) keep(feed.cursor);
  for await (const event of feed) {
    if (!canBePosted(event)) {
      const name = typeof event.id === 'string' ? event.id : 'An event without an id';
      say(`! ${name} is not posted: it has not the form of an event. It stays in the feed.`);
      continue;
    }
    // A run that was stopped in the middle of a page meets its beginning again.
    if (event.version <= version) continue;
    if (version === begin.version) keep(feed.cursor);
    await post(event, settings, { signal, secret, say });
    version = event.version;
    keep(feed.cursor);
  }
}

/** Whether it has what a webhook is made of. Its id is a header's value, where `fetch` takes no character above U+00FF. */
function canBePosted({ id, type, timestamp, version }: Readonly<Record<keyof Event, unknown>>): boolean {
  const isId = typeof id === 'string' && /^[!-~]{1,255}$/.test(id);
  return isId && typeof type === 'string' && typeof timestamp === 'string' && typeof version === 'bigint';
}

interface Beginning {
  readonly cursor: string | undefined;
  readonly version: bigint;
  readonly skips: boolean;
}

function beginning({ from, stateFile }: ListenSettings): Beginning {
  if (typeof from === 'object') return { cursor: from.cursor, version: 0n, skips: false };
  if (from === 'oldest') return { cursor: undefined, version: 0n, skips: false };
  const last: Progress | undefined = from === 'last' ? readProgress(stateFile) : undefined;
  if (last === undefined) return { cursor: undefined, version: 0n, skips: true };
  return { cursor: last.cursor, version: BigInt(last.version), skips: false };
}

async function post(event: Event, { forward, maxAttempts }: ListenSettings, run: Run): Promise<void> {
  const body = writeJson(event);
  for (let attempt = 1; ; attempt += 1) {
    const answer = await attemptPost(event, body, forward, run);
    run.say(`${event.timestamp} ${event.type.padEnd(24)} ${event.id} ${answer}`);
    if (/^2\d\d$/.test(answer)) return;
    if (attempt >= maxAttempts) {
      run.say(`! ${event.id} was not taken after ${attempt} attempts. It stays in the feed.`);
      return;
    }
    await sleep(Math.min(longestWaitMs, firstWaitMs * 2 ** (attempt - 1)), run.signal);
  }
}

/** The status that the endpoint answers with, or why there is none. */
async function attemptPost({ id }: Event, body: string, forward: URL, { signal, secret }: Run): Promise<string> {
  const signed = await signWebhook(secret, id, body);
  const headers = { 'content-type': 'application/json', 'user-agent': 'Marina-Webhooks/1.0', ...signed };
  try {
    return await withDeadline(answerMs, signal, async (ending) => {
      const request = { method: 'POST', headers, body, redirect: 'manual', signal: ending } as const;
      const response = await fetch(forward, request);
      await response.body?.cancel();
      return String(response.status);
    });
  } catch (error) {
    signal.throwIfAborted();
    const { cause, message } = error as Error;
    return `no answer (${cause instanceof Error ? cause.message : message})`;
  }
}
