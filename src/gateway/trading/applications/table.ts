import {
  type Application,
  ApplicationSchema,
  type ApplicationState,
  ApplicationStateSchema,
} from '../../../gen/marina/gateway/v1/applications_pb.ts';
import { type Statement, sql } from '../../store/statement.ts';
import { enumName, optional, type RowOf, type ShownBy, shortened, text, whole } from '../../store/table.ts';
import { shownMessage } from '../shown-message.ts';
import { defineSubmissions } from '../submission/table.ts';

/** Applications for customers' accounts. No personal data is stored. */
export const applications = defineSubmissions(
  'applications',
  {
    state: enumName<typeof ApplicationState>(ApplicationStateSchema, 20),
    reference: optional(text(64)),
    account: optional(text(64)),
    /** The field that caused a rejection, by its name. */
    param: optional(text(40)),
    /** The number of the last report applied. */
    lastReport: whole(),
    /** The number of the last report that a version passed over because it did not know the application. */
    missedReport: whole(),
    /** By what its state is known, for operators. */
    evidence: shortened(300),
  },
  {
    // For operators.
    applications_state: ['partnerId', 'state', 'id'],
    applications_account: ['partnerId', 'account', 'id'],
    applications_reference: ['reference', 'id'],
  },
);

export type StoredApplication = RowOf<typeof applications>;

/** The fields of an application that partners see. */
export const shownApplication = applications.only(
  ...(['id', 'state', 'reference', 'account', 'reason', 'rejectReason', 'param', 'createdAt', 'updatedAt'] as const),
);
export type ShownApplication = ShownBy<typeof shownApplication>;

/** The application as partners see it, in answers and in events alike. */
export function toApplicationMessage(application: ShownApplication): Application {
  return shownMessage(ApplicationSchema, application);
}

/** Finds an account if it belongs to another partner than the application it was opened for. */
export function findForeignAccount(applicationId: string, account: string): Statement {
  return sql`SELECT c.account FROM accounts c JOIN applications a ON a.id = ${applicationId}
    WHERE c.account = ${account} AND c.partner_id <> a.partner_id`;
}
