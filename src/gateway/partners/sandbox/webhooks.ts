import { create } from '@bufbuild/protobuf';
import {
  ListWebhookDeliveriesResponseSchema,
  type Sandbox,
  type WebhookDelivery,
  WebhookDeliveryAttemptSchema,
  WebhookDeliverySchema,
  type WebhookDeliveryState,
  WebhookDeliveryStateSchema,
  WebhookOutcome,
  WebhookTestSchema,
} from '../../../gen/marina/gateway/v1/sandbox_pb.ts';
import { toSecond } from '../../../kit/clock.ts';
import { enumWords } from '../../../kit/enums.ts';
import { listDeliveries, readAttempts } from '../../delivery/webhooks/record/delivery-store.ts';
import type { AttemptResult, SendResult } from '../../delivery/webhooks/rules.ts';
import * as tables from '../../delivery/webhooks/table.ts';
import type { HandlersOf } from '../../edge/call.ts';
import { ApiError } from '../../edge/errors.ts';
import type { Cursors } from '../../edge/paging.ts';
import type { Database } from '../../store/database.ts';
import { type SqlRow, toBigInt } from '../../store/statement.ts';

/** Sends a test event once. Undefined if too many tests are under way. */
export type SendTest = (endpoint: tables.Endpoint) => Promise<(SendResult & { readonly id: string }) | undefined>;

const outcomes: Record<AttemptResult, WebhookOutcome> = {
  delivered: WebhookOutcome.DELIVERED,
  'endpoint-failed': WebhookOutcome.ENDPOINT_FAILED,
  'event-failed': WebhookOutcome.EVENT_FAILED,
};
const states = enumWords<typeof WebhookDeliveryState>(WebhookDeliveryStateSchema);

/** The first attempts of a delivery that are listed. */
const maxAttempts = 100;
/** The least time between the end of a partner's test and its next one. */
const restMs = 1_000;

/** The calls with which partners try their webhook endpoint in a sandbox. */
export function webhookToolHandlers(
  database: Database,
  cursors: Cursors,
  sendTest: SendTest,
): Pick<HandlersOf<typeof Sandbox>, 'sendWebhookTest' | 'listWebhookDeliveries'> {
  const turns = new Turns();

  return {
    async sendWebhookTest(_, { caller: { partnerId } }) {
      const endpoint = await readEndpoint(partnerId);
      const done = turns.take(partnerId);
      try {
        const sent = await sendTest(endpoint);
        if (sent === undefined) throw new ApiError('rate_limited', { message: 'Too many tests are under way.' });
        return create(WebhookTestSchema, { id: sent.id, ...answerOf(sent) });
      } finally {
        done();
      }
    },

    async listWebhookDeliveries({ limit = 25, cursor }, { caller: { partnerId } }) {
      const issuedFor = ['webhook-deliveries', partnerId];
      const before = cursor === undefined ? undefined : BigInt(cursors.read(issuedFor, cursor));
      await readEndpoint(partnerId);
      const [rows = []] = await database.readAll([listDeliveries(partnerId, { before }, limit + 1)]);
      const { data, ...page } = cursors.page(issuedFor, rows, limit, ({ version }) => String(version));
      const versions = data.map(({ version }) => toBigInt(version));
      const attempts = await readAttempts(database, partnerId, versions, maxAttempts, maxAttempts * versions.length);
      return create(ListWebhookDeliveriesResponseSchema, {
        ...page,
        data: data.map((row) => toMessage(row, attempts)),
      });
    },
  };

  async function readEndpoint(partnerId: string): Promise<tables.Endpoint> {
    const [row] = await database.read(tables.endpoints.find({ partnerId }));
    if (row !== undefined) return tables.endpoints.all.read(row);
    throw new ApiError('not_found', { message: 'No webhook endpoint is registered. The operator registers its URL.' });
  }
}

/** Lets a partner send one test at a time, and then none for a while. */
class Turns {
  /** When a partner may send its next test, in milliseconds of real time. At most so many as there are tests at once. */
  readonly #freeAt = new Map<string, number>();

  /** Throws `rate_limited` if it is too early. Call the result at the test's end. */
  take(partnerId: string): () => void {
    const now = performance.now();
    for (const [id, freeAt] of this.#freeAt) if (freeAt <= now) this.#freeAt.delete(id);
    if (this.#freeAt.has(partnerId)) {
      const message = 'One test at a time can be sent, and one a second. Nothing was sent; try again.';
      throw new ApiError('rate_limited', { message });
    }
    this.#freeAt.set(partnerId, Number.POSITIVE_INFINITY);
    return () => this.#freeAt.set(partnerId, performance.now() + restMs);
  }
}

function toMessage(row: SqlRow, attemptsOf: ReadonlyMap<bigint, readonly tables.Attempt[]>): WebhookDelivery {
  const { eventId, version, type, state, occurredAt, dueAt } = tables.deliveries.all.read(row);
  return create(WebhookDeliverySchema, {
    event: eventId,
    type,
    version,
    about: row.object_id === null ? undefined : String(row.object_id),
    state: states.value(state),
    createdAt: toSecond(occurredAt),
    nextAttemptAt: dueAt === null ? undefined : toSecond(dueAt),
    attempts: (attemptsOf.get(version) ?? []).map(({ number, at, isProbe, ...attempt }) =>
      create(WebhookDeliveryAttemptSchema, { number, at: toSecond(at), isProbe, ...answerOf(attempt) }),
    ),
  });
}

/** What an endpoint answered, as far as it is kept. */
function answerOf({
  outcome,
  status,
  errorClass,
  durationMs,
}: Pick<tables.Attempt, 'outcome' | 'status' | 'errorClass' | 'durationMs'>) {
  return {
    outcome: outcomes[outcome],
    status: status ?? undefined,
    error: errorClass ?? undefined,
    durationMs: BigInt(durationMs),
  };
}
