import { status } from '@grpc/grpc-js';
import type { Waits } from '../../../src/broker-check/settings.ts';
import type { Defect } from '../../support/defective-adapter.ts';

/** An adapter that breaks a promise. */
export interface SeededDefect {
  /** What the adapter does. */
  readonly adapter: string;
  readonly defect: Defect;
  /** The check that names it. */
  readonly breaks: string;
  /** The other checks that must fail with it, because they rely on the same. */
  readonly also?: readonly string[];
  /** What the kit can have done to the adapter. */
  readonly hooks?: 'cut' | 'restart';
  readonly waits?: Partial<Waits>;
}

/** Shorter, for a defect that makes a check wait in vain. */
export const impatient: Partial<Waits> = { settleMs: 1_500 };

let made = 0;

/** An id that only the adapter knows. */
export function hiddenId(): string {
  made += 1;
  return `hidden_${process.pid}_${made}`;
}

/** Answers otherwise when a call ends with a status. */
export async function onStatus<T>(call: Promise<T>, code: status, otherwise: () => Promise<T> | T): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if ((error as { code?: status }).code !== code) throw error;
    return otherwise();
  }
}

/** Answers otherwise to an id that came before. */
export function onRepeat<T>(call: Promise<T>, otherwise: () => Promise<T> | T): Promise<T> {
  return onStatus(call, status.ALREADY_EXISTS, otherwise);
}
