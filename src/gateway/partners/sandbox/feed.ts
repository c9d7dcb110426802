import { create } from '@bufbuild/protobuf';
import { EventSchema } from '../../../gen/marina/gateway/v1/events_pb.ts';
import {
  ListLatestEventsResponseSchema,
  type Sandbox,
  SandboxClockSchema,
} from '../../../gen/marina/gateway/v1/sandbox_pb.ts';
import { type Clock, lagosDay, toSecond } from '../../../kit/clock.ts';
import { latestEvents } from '../../delivery/events/feed.ts';
import type { HandlersOf } from '../../edge/call.ts';
import { storedMessage } from '../../edge/json/stored.ts';
import type { Cursors } from '../../edge/paging.ts';
import type { Database } from '../../store/database.ts';

/** The calls with which a tool shows what happens in a sandbox now. */
export function feedToolHandlers(
  database: Database,
  cursors: Cursors,
  clock: Clock,
): Pick<HandlersOf<typeof Sandbox>, 'listLatestEvents' | 'getClock'> {
  return {
    async listLatestEvents({ limit = 25, cursor }, { caller: { partnerId } }) {
      const issuedFor = ['latest-events', partnerId];
      const before = cursor === undefined ? undefined : BigInt(cursors.read(issuedFor, cursor));
      const rows = await database.read(latestEvents(partnerId, before, limit + 1));
      const page = cursors.page(issuedFor, rows, limit, ({ version }) => String(version));
      const [newest] = rows;
      return create(ListLatestEventsResponseSchema, {
        ...page,
        data: page.data.map(({ body }) => storedMessage(EventSchema, body as Buffer)),
        feedCursor: newest && cursors.issue(['events', partnerId], String(newest.version)),
      });
    },

    async getClock() {
      const now = clock.now();
      const ahead = now - clock.realNow();
      return create(SandboxClockSchema, {
        now: toSecond(now),
        aheadSeconds: BigInt(Math.round(ahead / 1_000)),
        day: lagosDay(now),
      });
    },
  };
}
