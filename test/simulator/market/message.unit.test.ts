import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { MarketSession } from '../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { marketMessage } from '../../../src/simulator/market/message.ts';
import type { Venue } from '../../../src/simulator/market/venue.ts';

describe('the message about the exchange’s session', () => {
  it('the message about the exchange’s session has its phase and its next times, and the end of a halt for the next opening', () => {
    const at = (ms: number) => timestampFromMs(ms);
    for (const [session, expected] of [
      [
        { phase: 'continuous', nextCloseAtMs: 9 },
        { session: MarketSession.OPEN, close: at(9) },
      ],
      [
        { phase: 'collecting', nextOpenAtMs: 5, nextCloseAtMs: 9 },
        { session: MarketSession.PAUSED, open: at(5), close: at(9) },
      ],
      [
        { phase: 'closed', nextOpenAtMs: 5 },
        { session: MarketSession.CLOSED, open: at(5) },
      ],
      [
        { phase: 'halted', nextOpenAtMs: 50, haltedUntilMs: 7, nextCloseAtMs: 9 },
        { session: MarketSession.HALTED, open: at(7), close: at(9) },
      ],
      [{ phase: 'closed' }, { session: MarketSession.CLOSED }],
      // The first instant there is.
      [
        { phase: 'closed', nextOpenAtMs: 0, nextCloseAtMs: 0 },
        { session: MarketSession.CLOSED, open: at(0), close: at(0) },
      ],
    ] as const) {
      const asked: number[] = [];
      const venue = {
        session: (now: number) => {
          asked.push(now);
          return session;
        },
      } as unknown as Venue;
      const { session: shown, nextOpenAt: open, nextCloseAt: close } = marketMessage(venue, 3);
      assert.deepEqual({ session: shown, ...(open && { open }), ...(close && { close }) }, expected);
      assert.deepEqual(asked, [3]);
    }
  });
});
