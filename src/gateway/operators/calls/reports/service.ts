import { Reports } from '../../../../gen/marina/admin/v1/reports_pb.ts';
import { type AdminParts, adminService } from '../call.ts';
import { ledgerReports } from './ledger.ts';
import { objectReports } from './objects.ts';
import { figureReports } from './partner-figures.ts';
import type { ReportsUnderWay } from './parts.ts';

/** The operators' reports over all partners. */
export function reportService({ database }: Pick<AdminParts, 'database'>, underWay: ReportsUnderWay) {
  return adminService(Reports, {
    ...objectReports(database, underWay),
    ...ledgerReports(database, underWay),
    ...figureReports(database, underWay),
  });
}
