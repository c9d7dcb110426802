import { webhookDeliveryHandlers } from './webhook-deliveries.ts';
import { webhookEndpointHandlers } from './webhook-endpoints.ts';
import type { WebhookAdminParts } from './webhook-parts.ts';
import { webhookTestHandlers } from './webhook-tests.ts';

/** The operators' calls on webhooks. Each change is written down in the transaction that makes it. */
export function webhookAdminHandlers(parts: WebhookAdminParts) {
  return { ...webhookEndpointHandlers(parts), ...webhookDeliveryHandlers(parts), ...webhookTestHandlers(parts) };
}
