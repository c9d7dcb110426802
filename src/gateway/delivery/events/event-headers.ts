import { headers, type JsMsg, type MsgHdrs } from 'nats';
import { flawOf } from '../../../kit/nats-headers.ts';
import type { PeerMac } from '../../edge/peers/mac.ts';
import { macHeader } from '../../edge/peers/messages.ts';
import type { UntrustedReason } from '../../edge/peers/untrusted.ts';
import type { EventKey, OutboxEvent } from './outbox.ts';

const partnerHeader = 'Marina-Partner';
const versionHeader = 'Marina-Version';
const partnerForm = /^[\w-]{1,64}$/;
const versionForm = /^\d{1,18}$/;
const macForm = /^(\d{1,15}) ([\w-]{22})$/;
/** How far the time in a message may be from the one that NATS gave it. */
const apartMs = 60_000;

/** The headers of an event's message (docs/EVENTS-NATS.md). Earlier versions read the first two. */
export function eventHeaders(mac: PeerMac, subject: string, event: OutboxEvent): MsgHdrs {
  const { partnerId, version, type, objectKind, objectId } = event;
  const head = headers();
  head.set(partnerHeader, partnerId);
  head.set(versionHeader, version.toString());
  head.set('Marina-Type', type);
  if (objectKind !== null) head.set('Marina-Object-Kind', objectKind);
  if (objectId !== null) head.set('Marina-Object-Id', objectId);
  const sentAt = Date.now();
  head.set(macHeader, `${sentAt} ${mac.make(['event', subject, sentAt], `${partnerId} ${version}`)}`);
  return head;
}

/** Which event a message is about, or why it is not believed. Its body is not read: the outbox has it. */
export function eventKeyOf(
  mac: PeerMac,
  { subject, headers: head, info }: Pick<JsMsg, 'subject' | 'headers' | 'info'>,
): EventKey | UntrustedReason {
  const flaw = flawOf(head);
  if (flaw !== undefined) return flaw;
  const partnerId = head?.get(partnerHeader) ?? '';
  const version = head?.get(versionHeader) ?? '';
  const [, stamp, macText] = macForm.exec(head?.get(macHeader) ?? '') ?? [];
  if (stamp === undefined || macText === undefined) return 'unsigned';
  if (!partnerForm.test(partnerId) || !versionForm.test(version)) return 'nonsense';
  if (!mac.isOf(macText, ['event', subject, Number(stamp)], `${partnerId} ${version}`)) return 'forged';
  // A former one that somebody sends again would be looked for in the outbox.
  if (Math.abs(info.timestampNanos / 1_000_000 - Number(stamp)) > apartMs) return 'late';
  return { partnerId, version: BigInt(version) };
}
