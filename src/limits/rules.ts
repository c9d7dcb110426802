import { nextLagosMidnight } from '../lib/clock.ts';
import { ApiError } from '../lib/errors.ts';

/** Refuses what would go above a daily limit. Exactly at the limit passes. Amounts in kobo. */
export function checkDayLimit(name: string, limit: bigint, used: bigint, wanted: bigint, now: number): void {
  if (used + wanted <= limit) return;
  const remaining = used < limit ? limit - used : 0n;
  const resetsAt = new Date(nextLagosMidnight(now)).toISOString().replace('.000Z', 'Z');
  throw new ApiError('limit_exceeded', {
    message:
      `The ${name} of ${limit} kobo would be exceeded: ${used} kobo are used, ${remaining} remain, ` +
      `and this request needs ${wanted}. It resets at ${resetsAt}.`,
  });
}
