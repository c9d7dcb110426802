import type { Base } from './base.ts';
import type { Callers } from './callers.ts';
import type { Events } from './events.ts';
import type { Submissions } from './submissions.ts';

/** Notifies all processes of a change made here, by what changed. */
export type Notify = ReturnType<typeof createNotifications>;

/** Subscribes this process to what others notify of, and makes the calls that notify all processes of a change made here. */
export function createNotifications(
  { environment, notifications }: Base,
  { authenticator }: Callers,
  { relay, feedWatch, webhooks: { dispatcher } }: Events,
  { contexts }: Submissions,
) {
  notifications.subscribe('relay', () => relay.wake());
  notifications.subscribe('feed', () => feedWatch.wake());
  notifications.subscribe('webhooks', (partnerIds) => dispatcher.wake(partnerIds.split(',')));
  notifications.subscribe('webhooks-changed', () => dispatcher.changed());
  notifications.subscribe('environment-changed', () => environment.wakeup.wake());
  notifications.subscribe('key-revoked', (keyId) => authenticator.forget(keyId));
  notifications.subscribe('partner-changed', (partnerId) => authenticator.forgetPartner(partnerId));
  notifications.subscribe('account-unlinked', (text) => {
    const [partnerId = '', account = ''] = text.split(' ');
    contexts.forget(partnerId, account);
  });
  return {
    endpointsChanged: () => {
      dispatcher.changed();
      notifications.publish('webhooks-changed');
    },
    environmentChanged: () => notifications.publish('environment-changed'),
    keyEnded: (keyId: string) => {
      authenticator.forget(keyId);
      notifications.publish('key-revoked', keyId);
    },
    partnerChanged: (partnerId: string) => {
      authenticator.forgetPartner(partnerId);
      notifications.publish('partner-changed', partnerId);
    },
    accountUnlinked: (partnerId: string, account: string) => {
      contexts.forget(partnerId, account);
      notifications.publish('account-unlinked', `${partnerId} ${account}`);
    },
  };
}
