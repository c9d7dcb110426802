import { ApiError } from '../../../edge/errors.ts';
import { type ApplicationStateName, takesDocuments } from '../rules.ts';

/** The four documents of an application. */
export const documentTypes = ['photo', 'government_id', 'utility_bill', 'signature'] as const;
export type DocumentTypeWord = (typeof documentTypes)[number];

/** The stored states. Partners see documents that are delivered. */
export type DocumentStateWord = 'sending' | 'unconfirmed' | 'delivered';

/** How many documents of one partner may be on their way to the broker at once. */
export const maxUnderWay = 2;

/** The stored facts of a document: of its file only a keyed digest. */
export interface DocumentFacts {
  readonly digest: Buffer;
  readonly state: DocumentStateWord;
  readonly attempt: number;
  /** Real time until which the last send may last, or still arrive. Kept while its outcome is unknown. */
  readonly leaseUntil: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

const states: readonly string[] = ['sending', 'unconfirmed', 'delivered'] satisfies DocumentStateWord[];

/** Whether this version knows the state. A document in another one is never sent, changed or removed. */
export function isKnown({ state }: Pick<DocumentFacts, 'state'>): boolean {
  return states.includes(state);
}

/** Whether partners see a document: the broker has it, or another version stored a state of its own. */
export function isShown(document: Pick<DocumentFacts, 'state'>): boolean {
  return document.state === 'delivered' || !isKnown(document);
}

/** Throws `application_not_accepting_documents`. */
export function checkTakesDocuments(state: ApplicationStateName): void {
  if (!takesDocuments(state)) throw new ApiError('application_not_accepting_documents');
}

/** The conditions under which a file is to be sent. */
export interface Surroundings {
  /** The partner's documents that are on their way. */
  readonly underWay: number;
  /** The refusal if trading is paused or stopped. */
  readonly refusal: ApiError | undefined;
  /** Business time. */
  readonly now: number;
  /** Real time. */
  readonly realNow: number;
  /** The longest time the send may take. */
  readonly leaseMs: number;
}

/** The document as the file's send begins, or the delivered one. Throws the refusals, in their fixed order. */
export function beginSend(
  document: DocumentFacts | undefined,
  digest: Buffer,
  { underWay, refusal, now, realNow, leaseMs }: Surroundings,
): DocumentFacts {
  const isSame = document?.digest.equals(digest) === true;
  const state = document === undefined ? undefined : stateNow(document, realNow);
  if (document !== undefined) checkKnown(document);
  if (document !== undefined && state === 'delivered') {
    if (isSame) return document;
    throw new ApiError('document_already_delivered');
  }
  if (wasUnconfirmed(document, state) && !isSame) throw new ApiError('earlier_document_unconfirmed');
  checkInFlight(state, underWay);
  if (refusal !== undefined) throw refusal;
  return {
    digest,
    state: 'sending',
    attempt: (document?.attempt ?? 0) + 1,
    leaseUntil: realNow + leaseMs,
    createdAt: document?.createdAt ?? now,
    updatedAt: document?.updatedAt ?? now,
  };
}

/** Throws `document_in_flight`. `beginSend` throws the other refusals, after the check of the image. */
export function checkNotInFlight(
  document: DocumentFacts | undefined,
  digest: Buffer,
  underWay: number,
  realNow: number,
): void {
  const state = document === undefined ? undefined : stateNow(document, realNow);
  if (document !== undefined) checkKnown(document);
  const isOther = document?.digest.equals(digest) === false;
  if (isOther && (state === 'delivered' || wasUnconfirmed(document, state))) return;
  checkInFlight(state, underWay);
}

function wasUnconfirmed(document: DocumentFacts | undefined, state: DocumentStateWord | undefined): boolean {
  return state === 'unconfirmed' || (document?.attempt ?? 0) > 1;
}

/** Only the other version knows what its state means, so the file may come again later. */
function checkKnown(document: DocumentFacts): void {
  if (isKnown(document)) return;
  throw new ApiError('document_in_flight', {
    message: 'This document cannot be taken now, because the gateway is being updated. Send it again shortly.',
  });
}

function checkInFlight(state: DocumentStateWord | undefined, underWay: number): void {
  if (state === 'sending') {
    throw new ApiError('document_in_flight', { message: 'This document is being sent. Send it again shortly.' });
  }
  if (underWay >= maxUnderWay) {
    throw new ApiError('document_in_flight', {
      limit: 'documents_under_way',
      message: `${underWay} of at most ${maxUnderWay} documents are being sent. Send this one again shortly.`,
    });
  }
}

/** The outcome of a send. */
export type DocumentOutcome = 'delivered' | 'refused' | 'never-left' | 'unclear';

/**
 * The document after its send has ended; undefined if the broker does not have it and cannot have had it. If the send
 * outlived its lease, another may have begun, or the document may be gone. Then only a delivery still counts.
 */
export function endSend<Document extends DocumentFacts>(
  document: Document | undefined,
  sent: Pick<DocumentFacts, 'digest' | 'attempt'>,
  outcome: DocumentOutcome,
  now: number,
): Document | undefined {
  if (document === undefined || !document.digest.equals(sent.digest)) return document;
  if (document.state === 'delivered' || !isKnown(document)) return document;
  if (outcome === 'delivered') {
    return { ...document, state: 'delivered', leaseUntil: null, updatedAt: Math.max(now, document.updatedAt) };
  }
  if (document.attempt !== sent.attempt) return document;
  // The send never left, so the state before it holds: no document, or an unconfirmed earlier send of the same file.
  if (outcome === 'refused' || (outcome === 'never-left' && sent.attempt === 1)) return undefined;
  return { ...document, state: 'unconfirmed' };
}

/** Longer than any send's lease, whatever the settings. A lease that ends later was made by a clock that was ahead. */
export const longestLeaseMs = 300_000;

/** The state now. A send that outlived its lease was cut off, and its outcome is unknown. */
export function stateNow({ state, leaseUntil }: DocumentFacts, realNow: number): DocumentStateWord {
  return state === 'sending' && !isLeased(leaseUntil ?? 0, realNow) ? 'unconfirmed' : state;
}

function isLeased(until: number, realNow: number): boolean {
  return until > realNow && until <= realNow + longestLeaseMs;
}

/** How many documents are on their way at an instant, by the ends of their leases. */
export function countLeased(leaseEnds: readonly number[], realNow: number): number {
  return leaseEnds.filter((until) => isLeased(until, realNow)).length;
}

/** Whether the last send may be under way, or still arrive at the broker. */
export function mayStillArrive({ leaseUntil }: DocumentFacts, realNow: number): boolean {
  return leaseUntil !== null && leaseUntil > realNow;
}

/** Whether a document is unchanged, so that a query about its last send still holds. */
export function isSameSend(document: DocumentFacts, before: DocumentFacts): boolean {
  return (
    document.digest.equals(before.digest) && document.attempt === before.attempt && document.state === before.state
  );
}

export function areAllDelivered(
  documents: readonly Pick<DocumentFacts & { readonly type: DocumentTypeWord }, 'type' | 'state'>[],
): boolean {
  const delivered = new Set(documents.filter(({ state }) => state === 'delivered').map(({ type }) => type));
  return documentTypes.every((type) => delivered.has(type));
}

/** The result of releasing an unconfirmed document, or why there is none. */
export type Released =
  | { readonly outcome: 'delivered' | 'released'; readonly changed: boolean; readonly applicationState: string }
  | { readonly outcome: Unsettled; readonly until?: number };

type Unsettled =
  | 'not-stored'
  | 'unanswered'
  | 'unproven'
  | 'clocks-apart'
  | 'changed-meanwhile'
  | 'other-version'
  | 'may-still-arrive';
