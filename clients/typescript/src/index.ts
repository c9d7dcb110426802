export { Marina, type MarinaOptions, newKey } from './client.ts';
export * from './contract.ts';
export * from './errors.ts';
export { parseJson, writeJson } from './json.ts';
export { EventFeed, type FeedOptions, type ListPage, Pages } from './pages.ts';
export {
  signWebhook,
  type VerifyOptions,
  verifyWebhook,
  type WebhookHeaders,
  WebhookVerificationError,
} from './webhooks.ts';
