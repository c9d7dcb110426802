import type { ApplicationBroker } from '../../broker/back-office.ts';
import type { ClockAgreement } from '../../broker/clock.ts';
import type { Broker } from '../../broker/orders.ts';
import type { Statement } from '../../db/statement.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { isProven, lateMs } from '../../submission/reconcile.ts';
import type { Recorder } from '../../submission/record.ts';
import type { ApplicationKind } from '../kind.ts';
import { changeWith } from './change.ts';
import { type DocumentTypeWord, endSend, isKnown, isSameSend, mayStillArrive } from './rules.ts';
import { documentsOf, type StoredDocument } from './store.ts';

export interface DocumentReleaseParts {
  readonly kind: ApplicationKind;
  readonly recorder: Recorder;
  readonly broker: Pick<Broker, 'honoursNotAfter'>;
  readonly applications: Pick<ApplicationBroker, 'lookUpDocument'>;
  readonly clock: Clock;
  /** Whether the broker's clock and ours agree. */
  readonly clocks: { agreement(): Promise<ClockAgreement> };
  readonly clockSkewMs: number;
  readonly log: Logger;
}

/** What a document that was unconfirmed is now, or why that cannot be told. */
export type Released =
  | { readonly outcome: 'delivered' | 'released'; readonly changed: boolean; readonly applicationState: string }
  | {
      readonly outcome:
        | 'not-stored'
        | 'unanswered'
        | 'unproven'
        | 'clocks-apart'
        | 'changed-meanwhile'
        | 'other-version';
    }
  | { readonly outcome: 'may-still-arrive'; readonly until: number };

/**
 * Settles a document that stays unconfirmed, by what the broker says. It never sends. A document is forgotten only behind
 * the same proof as an order that never arrived: its time is over by more than clocks may differ, the broker refuses what
 * comes late, or its record is complete, and it was asked after that.
 */
export class DocumentRelease {
  constructor(private readonly parts: DocumentReleaseParts) {}

  /** `audit` writes down, in the transaction that changes it, what the document was and is. */
  async release(
    partnerId: string,
    applicationId: string,
    type: DocumentTypeWord,
    audit: (before: Pick<StoredDocument, 'state' | 'attempt'>, after: 'delivered' | 'released') => Statement,
  ): Promise<Released> {
    const { kind, recorder, broker, applications, clock, clocks, clockSkewMs, log } = this.parts;
    const extra = { touches: ['documents under way'], fact: documentsOf(partnerId, applicationId) };
    let before: StoredDocument | undefined;
    const application = await recorder.change(
      kind,
      partnerId,
      applicationId,
      (_, documents) => {
        before = find(documents, type);
        return undefined;
      },
      extra,
    );
    const document = before;
    if (!kind.table.isKnown(application)) return { outcome: 'other-version' };
    if (document === undefined) return { outcome: 'not-stored' };
    if (!isKnown(document)) return { outcome: 'other-version' };
    if (document.state === 'delivered') {
      return { outcome: 'delivered', changed: false, applicationState: application.state };
    }
    if (mayStillArrive(document, clock.realNow())) {
      return { outcome: 'may-still-arrive', until: document.leaseUntil ?? 0 };
    }
    let outcome: 'delivered' | 'released';
    try {
      const honoursNotAfter = await broker.honoursNotAfter();
      const askedAt = clock.realNow();
      const looked = await applications.lookUpDocument(applicationId, type, application);
      if (!looked.found) {
        const agreement = await clocks.agreement();
        const { leaseUntil } = document;
        // The lease outlives the send's `not_after` by more than clocks may differ. One without a lease was sent long ago.
        const notAfter = (leaseUntil ?? 0) - clockSkewMs;
        const aheadMs = clock.now() - clock.realNow();
        const lastArrival = (leaseUntil ?? Number.POSITIVE_INFINITY) + aheadMs + lateMs;
        const absence = { lookedUp: looked, askedAt, honoursNotAfter, agreement, notAfter, clockSkewMs, lastArrival };
        if (!isProven(absence)) return { outcome: agreement === 'apart' ? 'clocks-apart' : 'unproven' };
      }
      outcome = looked.found ? 'delivered' : 'released';
    } catch (error) {
      log.warn({ err: error, objectId: applicationId }, 'the broker could not be asked about a document');
      return { outcome: 'unanswered' };
    }
    let isChanged = false;
    const after = await recorder.change(
      kind,
      partnerId,
      applicationId,
      (current, documents) => {
        const stored = find(documents, type);
        if (stored === undefined || !isSameSend(stored, document)) return undefined;
        isChanged = true;
        const facts = endSend(stored, stored, outcome === 'released' ? 'refused' : outcome, clock.now());
        const after = facts && { ...stored, ...facts };
        const what = after ? "the broker's record has it" : "released, the broker's record does not have it";
        return changeWith(kind, current, documents, { before: stored, after, what }).write(audit(document, outcome));
      },
      extra,
    );
    if (!isChanged) return { outcome: 'changed-meanwhile' };
    return { outcome, changed: true, applicationState: after.state };
  }
}

function find(documents: readonly StoredDocument[], type: DocumentTypeWord): StoredDocument | undefined {
  return documents.find((document) => document.type === type);
}
