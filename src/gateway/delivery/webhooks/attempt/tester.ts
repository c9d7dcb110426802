import type { Clock } from '../../../../kit/clock.ts';
import type { IdMaker } from '../../../edge/ids.ts';
import type { SendResult } from '../rules.ts';
import type { Endpoint } from '../table.ts';
import type { WebhookSender } from './sender.ts';
import type { KeysOf } from './signature.ts';

/** A test event that was sent, and what came of it. */
export interface SentTest extends SendResult {
  /** Its `webhook-id`. */
  readonly id: string;
}

const maxAtOnce = 10;

/** Sends test events to endpoints. They are signed like any other event, and are in no feed and no list of deliveries. */
export class WebhookTester {
  #underWay = 0;

  constructor(
    private readonly sender: Pick<WebhookSender, 'send'>,
    private readonly keysOf: KeysOf,
    private readonly clock: Clock,
    private readonly ids: Pick<IdMaker, 'event'>,
  ) {}

  /**
   * Sends a test once and waits for the outcome, at most 10 s. Undefined if this process waits for ten others. `note` is
   * called with the id before anything is sent; if it throws, nothing is.
   */
  async send(endpoint: Endpoint, note?: (id: string, now: number) => Promise<unknown>): Promise<SentTest | undefined> {
    if (this.#underWay >= maxAtOnce) return undefined;
    this.#underWay += 1;
    try {
      const id = this.ids.event();
      const now = this.clock.now();
      await note?.(id, now);
      const timestamp = new Date(Math.floor(now / 1_000) * 1_000).toISOString().replace('.000Z', 'Z');
      const event = { object: 'webhook_test', id, type: 'webhook.test', timestamp };
      const { partnerId, url } = endpoint;
      const body = Buffer.from(JSON.stringify(event));
      const sent = await this.sender.send({
        ...{ endpointId: `${partnerId} test`, url, id, body },
        keys: this.keysOf(endpoint, this.clock.now()),
      });
      return { ...sent, id };
    } finally {
      this.#underWay -= 1;
    }
  }
}
