import type { Numbers, SessionSettings } from './types.ts';

export interface NumberingFacts extends Pick<SessionSettings, 'resetsByLogon' | 'resetsOnLogon'> {
  /** When the present session day began, in milliseconds. */
  readonly dayStartedAt: number;
  /** Real time, in milliseconds. */
  readonly now: number;
}

/** How the numbers of a connection begin. */
export interface NextNumbering {
  /** When the numbering begins that the connection begins with; undefined: it goes on with the stored numbers. */
  readonly startedAt: number | undefined;
  /** Whether its Logon has ResetSeqNumFlag. */
  readonly resets: boolean;
}

/** Whether a connection begins a numbering: on a new session day, and where every Logon resets the numbers. */
export function nextNumbering(stored: Numbers, facts: NumberingFacts): NextNumbering {
  const { dayStartedAt, now, resetsByLogon, resetsOnLogon } = facts;
  // A Logon that nobody answered may not have come: as nothing else was sent since, the numbering can begin again.
  const isUnanswered = resetsByLogon && stored.nextIn === 1 && stored.nextOut > 1;
  const isNew = stored.startedAt < dayStartedAt || isUnanswered || resetsOnLogon;
  if (!isNew) return { startedAt: undefined, resets: resetsByLogon && stored.nextIn === 1 };
  // Each numbering has a time of its own, because numbers of the one before mean nothing in it.
  const startedAt = resetsOnLogon ? Math.max(now, stored.startedAt + 1) : dayStartedAt;
  return { startedAt, resets: resetsByLogon || resetsOnLogon };
}
