import type { Diagnostics } from '../../../../gen/marina/admin/v1/diagnostics_pb.ts';
import {
  type ListUnclaimedReportsRequest,
  type UnclaimedKind,
  UnclaimedKindSchema,
} from '../../../../gen/marina/admin/v1/unclaimed_pb.ts';
import { enumWords } from '../../../../kit/enums.ts';
import type { Cursors } from '../../../edge/paging.ts';
import type { Database } from '../../../store/database.ts';
import { listUnclaimed, unclaimedReports } from '../../../trading/submission/unclaimed-reports.ts';
import { type AdminCalls, usuallyListed } from '../call.ts';
import { invalidField } from '../errors.ts';

const kinds = enumWords<typeof UnclaimedKind>(UnclaimedKindSchema);

/** The operators' call that lists reports about objects that are not stored. */
export function unclaimedCalls(
  database: Database,
  cursors: Cursors,
): Pick<AdminCalls<typeof Diagnostics>, 'listUnclaimedReports'> {
  return {
    async listUnclaimedReports({ kind, limit, cursor }: ListUnclaimedReportsRequest) {
      const word = kinds.find(kind);
      if (word === undefined) throw invalidField('kind', 'must name a kind of object.');
      const issuedFor = ['unclaimed reports', word];
      const before = cursor === '' ? undefined : BigInt(cursors.read(issuedFor, cursor));
      const most = limit || usuallyListed;
      const rows = await database.read(listUnclaimed(word, before, most + 1));
      const page = cursors.page(issuedFor, rows.map(unclaimedReports.all.read), most, ({ number }) => String(number));
      return { reports: page.data.map((row) => ({ ...row, at: row.upstreamAt })), nextCursor: page.nextCursor };
    },
  };
}
