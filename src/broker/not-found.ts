import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { LookedUp } from './port.ts';

/**
 * What a look-up says that found nothing.
 *
 * @param askedAt by the monotonic clock
 */
export function notFound(
  { completeUntil, brokerTime }: { readonly completeUntil?: Timestamp; readonly brokerTime?: Timestamp },
  askedAt: number,
): LookedUp<never> {
  const tookMs = performance.now() - askedAt;
  return {
    found: false,
    completeUntil: completeUntil && timestampMs(completeUntil),
    brokerTime: brokerTime && timestampMs(brokerTime) - tookMs,
  };
}
