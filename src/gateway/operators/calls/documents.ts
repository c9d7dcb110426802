import { status } from '@grpc/grpc-js';
import { Documents } from '../../../gen/marina/admin/v1/documents_pb.ts';
import { type Statement, statement } from '../../store/statement.ts';
import type { DocumentTypeWord, Released } from '../../trading/applications/documents/rules.ts';
import { audit } from './audit.ts';
import { type AdminParts, adminService } from './call.ts';
import { AdminError } from './errors.ts';

/** Settles a document that stays unconfirmed, by the broker's record. */
interface Releasing {
  release(
    partnerId: string,
    applicationId: string,
    type: DocumentTypeWord,
    audit: (before: { readonly state: string; readonly attempt: number }, after: string) => Statement,
  ): Promise<Released>;
}

const refusals = {
  'not-stored': [status.NOT_FOUND, 'no document of this type is stored: it was never sent, or is released already'],
  'may-still-arrive': [status.FAILED_PRECONDITION, 'the document is being sent, or may still arrive'],
  unproven: [
    status.FAILED_PRECONDITION,
    'the broker does not have it, and does not prove that it can no longer get it',
  ],
  'clocks-apart': [
    status.FAILED_PRECONDITION,
    'the broker does not have it, and its clock and ours are too far apart for that to prove anything',
  ],
  'changed-meanwhile': [status.ABORTED, 'the document changed while the broker was asked: call again'],
  'other-version': [
    status.FAILED_PRECONDITION,
    'another version of the gateway stored what this one does not know: call a replica of that version',
  ],
  unanswered: [status.UNAVAILABLE, 'the broker gave no answer that makes sense; nothing was changed'],
} as const;

/** The operators' call that settles a document whose file is lost. */
export function documentService({ database, clock }: AdminParts, releasing: Releasing) {
  return adminService(Documents, {
    async releaseDocument({ applicationId, reason, ...request }, call) {
      const type = request.type as DocumentTypeWord; // Its pattern was checked.
      const [row] = await database.read(statement('SELECT partner_id FROM applications WHERE id = ?', applicationId));
      if (row === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such application');
      const partnerId = String(row.partner_id);
      const released = await releasing.release(partnerId, applicationId, type, ({ state, attempt }, after) =>
        audit(call, clock.now(), {
          partnerId,
          subject: applicationId,
          detail: { type, reason },
          before: { state, sends: attempt },
          after: { state: after },
        }),
      );
      if ('changed' in released) return released;
      const [code, message] = refusals[released.outcome];
      const until = released.until === undefined ? '' : ` until ${new Date(released.until).toISOString()}`;
      throw new AdminError(code, `${message}${until}`);
    },
  });
}
