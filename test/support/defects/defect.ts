import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { Waits } from '../../../src/broker-check/settings.ts';
import type { Call, Defect } from '../defective-adapter.ts';

/** An adapter that breaks a promise. */
export interface SeededDefect {
  /** The adapter's defect, as the end of a sentence that begins with "the adapter". */
  readonly adapter: string;
  readonly defect: Defect;
  /** The check that names it. */
  readonly breaks: string;
  /** The other checks that must fail with it, because they rely on the same. */
  readonly also?: readonly string[];
  /** The faults of the adapter that the kit can cause. */
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

export const hourMs = 3_600_000;
/** How long something is queued for which nobody waits any more. */
export const briefMs = 500;
export const brokerTime = () => timestampFromMs(Date.now());

/** Does the second of two calls that are under way at once in another way. */
export async function takesTwo<T>(
  { adapter, next }: Pick<Call<unknown, T>, 'adapter' | 'next'>,
  id: string,
  again: () => Promise<T>,
): Promise<T> {
  if (adapter.kept.has(id)) return again();
  adapter.kept.set(id, true);
  try {
    return await next();
  } finally {
    adapter.kept.delete(id);
  }
}

/** How long something is hidden that comes late. */
const lateMs = 400;
export const inTime = () => timestampFromMs(Date.now() + 10_000);

export function isLate(notAfter: Timestamp | undefined): boolean {
  return notAfter !== undefined && timestampMs(notAfter) < Date.now();
}

export function isRecent(at: Timestamp | undefined): boolean {
  return at !== undefined && Date.now() - timestampMs(at) < lateMs;
}
