import { ApiError } from '../../lib/errors.ts';
import { type ApplicationStateName, takesDocuments } from '../rules.ts';

/** The four documents of an application. */
export const documentTypes = ['photo', 'government_id', 'utility_bill', 'signature'] as const;
export type DocumentTypeWord = (typeof documentTypes)[number];

/** Where a document stands. Partners see those that are delivered. */
export type DocumentStateWord = 'sending' | 'unconfirmed' | 'delivered';

/** How many of a partner's documents may be on their way to the broker at once. */
export const mostUnderWay = 2;

/** What is kept of a document: of its file a keyed digest. */
export interface DocumentFacts {
  readonly digest: Buffer;
  readonly state: DocumentStateWord;
  /** How often it was sent. */
  readonly attempt: number;
  /** Real time until which the last send may be under way, or arrive; kept while it is not known what became of it. */
  readonly leaseUntil: number | null;
  /** When it was first sent. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

const states: readonly string[] = ['sending', 'unconfirmed', 'delivered'] satisfies DocumentStateWord[];

/** Whether this version knows where a document stands. One it does not know is never sent, changed or removed. */
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

/** What the rest of the partner's world looks like when a file is to be sent. */
export interface Surroundings {
  /** How many of the partner's documents are on their way. */
  readonly underWay: number;
  readonly isPaused: boolean;
  /** Business time. */
  readonly now: number;
  /** Real time. */
  readonly realNow: number;
  /** How long the send may be under way. */
  readonly leaseMs: number;
}

/**
 * What becomes of a document when a file of its type comes: the document as it is while the file is sent, or as it stands
 * when the broker has the file. Throws what refuses the file, in the decided order.
 */
export function beginSend(
  document: DocumentFacts | undefined,
  digest: Buffer,
  { underWay, isPaused, now, realNow, leaseMs }: Surroundings,
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
  if (isPaused) throw new ApiError('trading_paused');
  return {
    digest,
    state: 'sending',
    attempt: (document?.attempt ?? 0) + 1,
    leaseUntil: realNow + leaseMs,
    createdAt: document?.createdAt ?? now,
    updatedAt: document?.updatedAt ?? now,
  };
}

/**
 * Throws `document_in_flight` if that is all a file can come to now, as `beginSend` would. A file that is refused for what
 * the broker has, or may have, of its type is left to `beginSend`: whether it is an image comes first.
 */
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

/** A document that is sent again was not confirmed before. */
function wasUnconfirmed(document: DocumentFacts | undefined, state: DocumentStateWord | undefined): boolean {
  return state === 'unconfirmed' || (document?.attempt ?? 0) > 1;
}

/** Only the other version knows what it does with a document of its own: the file may come again later. */
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
  if (underWay >= mostUnderWay) {
    throw new ApiError('document_in_flight', {
      limit: 'documents_under_way',
      message: `${underWay} of at most ${mostUnderWay} documents are being sent. Send this one again shortly.`,
    });
  }
}

/** What a send came to. */
export type Outcome = 'delivered' | 'refused' | 'never-left' | 'unclear';

/**
 * What becomes of a document when its send has ended: undefined where the broker does not have it and never may have had.
 * A send whose time is over may find that another was begun, or that the document is gone: then only that the broker has
 * the file still counts.
 */
export function endSend<Document extends DocumentFacts>(
  document: Document | undefined,
  sent: Pick<DocumentFacts, 'digest' | 'attempt'>,
  outcome: Outcome,
  now: number,
): Document | undefined {
  if (document === undefined || !document.digest.equals(sent.digest)) return document;
  if (document.state === 'delivered' || !isKnown(document)) return document;
  if (outcome === 'delivered') {
    return { ...document, state: 'delivered', leaseUntil: null, updatedAt: Math.max(now, document.updatedAt) };
  }
  if (document.attempt !== sent.attempt) return document;
  // What never left leaves what was before: nothing, or that an earlier send of the same file is unconfirmed.
  if (outcome === 'refused' || (outcome === 'never-left' && sent.attempt === 1)) return undefined;
  return { ...document, state: 'unconfirmed' };
}

/** More than the lease of any send, whatever the settings. One that ends later was made by a clock that was ahead. */
export const longestLeaseMs = 300_000;

/** A send that its lease has outlived was cut off: nobody knows what became of it. */
export function stateNow({ state, leaseUntil }: DocumentFacts, realNow: number): DocumentStateWord {
  const until = leaseUntil ?? 0;
  const isLeased = until > realNow && until <= realNow + longestLeaseMs;
  return state === 'sending' && !isLeased ? 'unconfirmed' : state;
}

/** Whether the last send may be under way, or arrive at the broker yet. */
export function mayStillArrive({ leaseUntil }: DocumentFacts, realNow: number): boolean {
  return leaseUntil !== null && leaseUntil > realNow;
}

/** Whether a document is as it was, so that what was found out about its last send still holds. */
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

/** What a document that was unconfirmed is now, or why that cannot be known. */
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
