import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import {
  type SendTestRequest,
  type SendTestResponse,
  SendTestResponseSchema,
} from '../gen/marina/admin/v1/webhooks_pb.ts';
import { AdminError, type Operator } from './call.ts';
import { entry, outcomes, readEndpoint, type WebhookAdminParts } from './webhook-parts.ts';

const mostTestsAtOnce = 10;

/** The operators' call that tries an endpoint with what is no event. */
export function webhookTestHandlers(parts: WebhookAdminParts) {
  const { database, clock, ids } = parts;
  let testsUnderWay = 0;

  async function sendTest({ partnerId }: SendTestRequest, operator: Operator): Promise<SendTestResponse> {
    const endpoint = await readEndpoint(database, partnerId);
    if (testsUnderWay >= mostTestsAtOnce) {
      throw new AdminError(status.RESOURCE_EXHAUSTED, 'too many tests are under way: call again');
    }
    testsUnderWay += 1;
    try {
      const id = ids.event();
      const now = clock.now();
      const timestamp = new Date(Math.floor(now / 1_000) * 1_000).toISOString().replace('.000Z', 'Z');
      await database.write(entry(operator, 'SendTest', partnerId, now, { id }));
      const body = Buffer.from(JSON.stringify({ object: 'webhook_test', id, timestamp }));
      const { outcome, status: code, errorClass, durationMs } = await parts.sendTest(endpoint, id, body);
      return create(SendTestResponseSchema, {
        webhookId: id,
        outcome: outcomes[outcome],
        status: code ?? undefined,
        errorClass: errorClass ?? '',
        durationMs: BigInt(Math.round(durationMs)),
      });
    } finally {
      testsUnderWay -= 1;
    }
  }

  return { sendTest };
}
