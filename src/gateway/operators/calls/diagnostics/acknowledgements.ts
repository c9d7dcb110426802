import { status } from '@grpc/grpc-js';
import type { Diagnostics } from '../../../../gen/marina/admin/v1/diagnostics_pb.ts';
import { allFacts, queryFact } from '../../../store/facts.ts';
import { type Decision, type Statement, statement } from '../../../store/statement.ts';
import { defineTable, instant, text } from '../../../store/table.ts';
import type { Kinds } from '../../../trading/submission/kind.ts';
import { audit } from '../audit.ts';
import type { AdminCalls, AdminParts } from '../call.ts';
import { AdminError } from '../errors.ts';
import { findObject } from '../proposals/service.ts';

/** Objects with an unknown outcome that an operator knows of: the alert counts their age no more until `endsAt`, in real time. */
export const acknowledgements = defineTable({
  name: 'acknowledgements',
  columns: {
    partnerId: text(24),
    objectId: text(24),
    acknowledgedBy: text(64),
    reason: text(200),
    endsAt: instant(),
  },
  primary: ['partnerId', 'objectId'],
  indexes: { acknowledgements_ends_at: ['endsAt'] },
});

const hourMs = 3_600_000;
/** Rows whose time is over that one call removes. Each call adds one at most, so they stay few. */
const maxRemoved = 100;

interface Acknowledged {
  readonly changed: boolean;
  readonly endsAt: number | undefined;
}

/** The operators' call that acknowledges an object with an unknown outcome. */
export function acknowledgementCalls(
  { database, clock }: AdminParts,
  kinds: Kinds,
): Pick<AdminCalls<typeof Diagnostics>, 'acknowledgeUnsettled'> {
  return {
    async acknowledgeUnsettled({ objectId, hours, reason }, call) {
      const object = await findObject(database, kinds, objectId);
      const kind = kinds.ofId(objectId);
      if (object === undefined || kind === undefined) throw noSuchObject();
      const { partnerId } = object;
      const key = { partnerId, objectId };
      await database.write(removeOver(clock.realNow()));
      return database.inPartnerTransaction(partnerId, {
        touches: [objectId],
        fact: allFacts({
          row: queryFact(kind.table.find({ partnerId, id: objectId }), ([row]) => row && kind.table.all.read(row)),
          before: queryFact(acknowledgements.find(key), ([row]) => row && acknowledgements.all.read(row)),
        }),
        decide: ({ row, before }): Decision<Acknowledged> => {
          if (row === undefined) throw noSuchObject();
          if (hours > 0 && row.checkAt === null) {
            throw new AdminError(status.FAILED_PRECONDITION, `its outcome is known: it is ${row.state}`);
          }
          if (hours === 0 && before === undefined) return { writes: [], result: { changed: false, endsAt: undefined } };
          const endsAt = clock.realNow() + hours * hourMs;
          const after = { ...key, acknowledgedBy: call.operator, reason, endsAt };
          const writes = [
            hours === 0
              ? acknowledgements.remove(key)
              : acknowledgements.put(after, 'acknowledgedBy', 'reason', 'endsAt'),
            audit(call, clock.now(), { partnerId, subject: objectId, detail: { hours, reason } }),
          ];
          return { writes, result: { changed: true, endsAt: hours === 0 ? undefined : endsAt } };
        },
      });
    },
  };
}

/** Joins what is known of an object's acknowledgement that is in force. `now` is real time. */
export function acknowledgedAt(now: number, partnerId: string, objectId: string): Statement {
  return statement(
    `LEFT JOIN acknowledgements a ON a.partner_id = ${partnerId} AND a.object_id = ${objectId} AND a.ends_at > ?`,
    new Date(now),
  );
}

function removeOver(now: number): Statement {
  return statement(
    `DELETE FROM acknowledgements WHERE ends_at <= ? ORDER BY ends_at LIMIT ${maxRemoved}`,
    new Date(now),
  );
}

function noSuchObject(): AdminError {
  return new AdminError(status.NOT_FOUND, 'there is no such object');
}
