import assert from 'node:assert/strict';
import { Webhook } from 'standardwebhooks';
import { eventually } from '../eventually.ts';
import { fc } from '../properties.ts';
import type { Received } from '../webhook-receiver.ts';
import type { PartnerModel } from './partner-model.ts';
import { ask, boundMs, type Command, operate, type Whole } from './surroundings.ts';

const pathOf = ({ partner }: Whole) => `/${partner.id}`;

/** Registers the partner's endpoint before the first command, so that every event is sent there. */
export async function registerEndpoint(model: PartnerModel, whole: Whole): Promise<void> {
  const url = whole.receiver.url(pathOf(whole));
  const { secret } = await operate(whole, 'Webhooks.RegisterEndpoint', { partner_id: whole.partner.id, url });
  model.webhookSecret = secret;
}

/** Pauses the endpoint, or ends the pause: all that waited is sent. */
function pauseEndpoint(isPaused: boolean): Command {
  return {
    toString: () => (isPaused ? 'pause the endpoint' : 'resume the endpoint'),
    check: (model) => model.isEndpointPaused !== isPaused,
    run: (model, whole) => setEndpointPause(model, whole, isPaused),
  };
}

export async function setEndpointPause(model: PartnerModel, whole: Whole, isPaused: boolean): Promise<void> {
  const call = isPaused ? 'Webhooks.PauseEndpoint' : 'Webhooks.ResumeEndpoint';
  await operate(whole, call, { partner_id: whole.partner.id });
  model.isEndpointPaused = isPaused;
}

/** An event of the feed. */
export interface FeedEvent {
  readonly version: number;
  readonly data: { readonly id: string; readonly state: string };
}

export async function readFeed(whole: Whole): Promise<FeedEvent[]> {
  const events: FeedEvent[] = [];
  for (let cursor = ''; ; ) {
    const { body } = await ask(whole, 1, 'GET', `/v1/events?limit=100${cursor}`);
    events.push(...body.data);
    if (!body.has_more) return events;
    cursor = `&cursor=${body.next_cursor}`;
  }
}

/** Waits until the endpoint has got every event of the feed, as the feed has it, and under its secret. */
export function untilDelivered({ webhookSecret }: PartnerModel, whole: Whole): Promise<void> {
  const { receiver } = whole;
  return eventually(async () => {
    const events = await readFeed(whole);
    const received = receiver.at(pathOf(whole));
    const byVersion = new Map(received.map((one) => [one.version, one]));
    assert.deepEqual(
      [...byVersion.keys()].sort(byNumber),
      events.map(({ version }) => version),
      'what the endpoint got',
    );
    for (const event of events) {
      const one = byVersion.get(event.version);
      assert.ok(one !== undefined);
      assert.ok(isSigned(one, webhookSecret), `version ${event.version} is signed under the secret`);
      assert.deepEqual(JSON.parse(one.body), event, 'the endpoint gets what the feed has');
    }
    // Without trouble none is sent twice.
    if (whole.unclear() === 0) assert.equal(received.length, events.length, 'each event is sent once');
  }, boundMs);
}

/** Whether a request was signed under a secret, however long ago. */
function isSigned({ id, headers, body }: Received, secret: string): boolean {
  const sentAt = new Date(1_000 * Number(headers['webhook-timestamp']));
  return headers['webhook-signature']?.split(' ').includes(new Webhook(secret).sign(id, sentAt, body)) ?? false;
}

const byNumber = (one: number | undefined, other: number | undefined) => Number(one) - Number(other);

/** The commands about the endpoint. */
export const webhookCommands = [fc.boolean().map(pauseEndpoint)];
