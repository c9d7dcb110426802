import { randomUUID } from 'node:crypto';
import { Seal } from '../lib/seal.ts';
import { webhookConsumer } from '../webhooks/consumer.ts';
import { Dispatcher } from '../webhooks/dispatcher.ts';
import { Sender } from '../webhooks/sender.ts';
import { signingKeys } from '../webhooks/signature.ts';
import { dispatcherLeasePrefix } from '../webhooks/table.ts';
import type { Base } from './base.ts';

/** Webhooks: what consumes events into the queues of endpoints, what sends them, and the secrets they are signed with. */
export function createWebhooks(base: Base) {
  const { config, log, database, clock, holder, metrics, tracer, notifications } = base;
  const { webhookAllowLoopback: allowLoopback, webhookAuthorities: extraAuthorities } = config;
  const seal = new Seal(base.key('webhook secrets'));
  const keysOf = signingKeys(seal);
  const sender = new Sender({ clock, allowLoopback, extraAuthorities });
  const dispatcher = new Dispatcher({
    database,
    clock,
    log,
    holder,
    leaseName: `${dispatcherLeasePrefix}${randomUUID().replaceAll('-', '').slice(0, 24)}`,
    sender,
    keysOf,
    tracer,
    metrics,
  });
  const consumer = webhookConsumer(database, clock, (partnerIds) => {
    const others = dispatcher.wake(partnerIds);
    if (others.length > 0) notifications.publish('webhooks', others.join(','));
  });
  return { seal, keysOf, sender, dispatcher, consumer };
}
