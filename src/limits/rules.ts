import { nextLagosMidnight } from '../lib/clock.ts';
import { ApiError } from '../lib/errors.ts';

const counted = {
  'order value per day': 'order_value_per_day',
  'allocations per day': 'allocations_per_day',
} as const;

/** Refuses what would go above a daily limit. Exactly at the limit passes. Amounts in kobo. */
export function checkDayLimit(
  name: keyof typeof counted,
  limit: bigint,
  used: bigint,
  wanted: bigint,
  now: number,
): void {
  if (used + wanted <= limit) return;
  const resetsAt = new Date(nextLagosMidnight(now)).toISOString().replace('.000Z', 'Z');
  throw new ApiError('limit_exceeded', {
    limit: counted[name],
    message:
      `The limit on ${name} of ${limit} kobo would be exceeded: ${used} kobo are used, ${remaining(limit, used)} remain, ` +
      `and this request needs ${wanted}. It resets at ${resetsAt}.`,
  });
}

/** What is left of a limit, of which more may be used than there is since it was lowered. */
export function remaining(limit: bigint, used: bigint): bigint {
  return used < limit ? limit - used : 0n;
}
