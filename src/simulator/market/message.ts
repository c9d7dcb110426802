import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type GetMarketResponse,
  GetMarketResponseSchema,
  MarketSession,
} from '../../gen/marina/broker/v1/accounts_pb.ts';
import type { Phase, Venue } from './venue.ts';

const sessions: Readonly<Record<Phase, MarketSession>> = {
  continuous: MarketSession.OPEN,
  collecting: MarketSession.PAUSED,
  halted: MarketSession.HALTED,
  closed: MarketSession.CLOSED,
};

/** Converts the exchange's session to its message. */
export function marketMessage(venue: Venue, nowMs: number): GetMarketResponse {
  const { phase, nextOpenAtMs, nextCloseAtMs, haltedUntilMs } = venue.session(nowMs);
  const opensAtMs = haltedUntilMs ?? nextOpenAtMs;
  return create(GetMarketResponseSchema, {
    session: sessions[phase],
    ...(opensAtMs === undefined ? {} : { nextOpenAt: timestampFromMs(opensAtMs) }),
    ...(nextCloseAtMs === undefined ? {} : { nextCloseAt: timestampFromMs(nextCloseAtMs) }),
  });
}
