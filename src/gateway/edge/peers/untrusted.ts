import type { Counter } from 'prom-client';
import type { Logger } from '../../../kit/log.ts';

/** What came from NATS and is not believed. */
export const untrustedKinds = ['message', 'entry', 'event', 'replica'] as const;

/** Why it is not believed. */
export const untrustedReasons = [
  /** It has no MAC, or none of the right form. */
  'unsigned',
  /** Its MAC is not one of the ring. */
  'forged',
  /** It was made at another time than it came. */
  'late',
  /** It came before, or something later came before it. */
  'repeated',
  /** It has a MAC and another form than gateways write, or a value that cannot be. */
  'nonsense',
  'too_large',
  /** There are more than there can be. */
  'too_many',
  /** Somebody removed an entry, which gateways never do. */
  'removed',
] as const;

export type UntrustedKind = (typeof untrustedKinds)[number];
export type UntrustedReason = (typeof untrustedReasons)[number];

/** Notes that something is not believed. */
export type Distrust = (kind: UntrustedKind, reason: UntrustedReason) => void;

const logAgainMs = 60_000;

/** Counts what is not believed, and logs each kind and reason at most once a minute, because a liar may be fast. */
export function countUntrusted(
  counter: Counter<'kind' | 'reason'>,
  log: Logger,
  now: () => number = () => performance.now(),
): Distrust {
  const loggedAt = new Map<string, number>();
  return (kind, reason) => {
    counter.inc({ kind, reason });
    const name = `${kind} ${reason}`;
    if (now() - (loggedAt.get(name) ?? Number.NEGATIVE_INFINITY) < logAgainMs) return;
    loggedAt.set(name, now());
    log.warn({ kind, reason }, 'NATS brought something that no gateway of this ring can have sent; it is not believed');
  };
}
