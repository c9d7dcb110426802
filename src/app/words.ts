import { words } from '../admin/handlers.ts';
import type { Base } from './base.ts';
import type { Callers } from './callers.ts';
import type { Events } from './events.ts';
import type { Submissions } from './submissions.ts';

export type Words = ReturnType<typeof createWords>;

/**
 * What the processes of a gateway tell each other: who hears which word here, and how a change that was made here is told.
 * A word can be lost, so each only brings sooner what is found out without it.
 */
export function createWords(
  { environment }: Base,
  { authenticator }: Callers,
  { carrier, relay, feedWatch, webhooks: { dispatcher } }: Events,
  { contexts }: Submissions,
) {
  carrier.listen('relay', () => relay.wake());
  carrier.listen('feed', () => feedWatch.wake());
  carrier.listen('webhooks', (partnerIds) => dispatcher.wake(partnerIds.split(',')));
  carrier.listen('webhooks-changed', () => dispatcher.changed());
  carrier.listen(words.environmentChanged, () => environment.wakeup.wake());
  carrier.listen(words.keyRevoked, (keyId) => authenticator.forget(keyId));
  carrier.listen(words.partnerChanged, (partnerId) => authenticator.forgetPartner(partnerId));
  carrier.listen(words.accountUnlinked, (text) => {
    const [partnerId = '', account = ''] = text.split(' ');
    contexts.forget(partnerId, account);
  });
  return {
    endpointsChanged: () => {
      dispatcher.changed();
      carrier.say('webhooks-changed');
    },
    keyEnded: (keyId: string) => {
      authenticator.forget(keyId);
      carrier.say(words.keyRevoked, keyId);
    },
    partnerChanged: (partnerId: string) => {
      authenticator.forgetPartner(partnerId);
      carrier.say(words.partnerChanged, partnerId);
    },
    accountUnlinked: (partnerId: string, account: string) => {
      contexts.forget(partnerId, account);
      carrier.say(words.accountUnlinked, `${partnerId} ${account}`);
    },
  };
}
