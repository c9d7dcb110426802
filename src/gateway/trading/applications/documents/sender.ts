import type { Clock } from '../../../../kit/clock.ts';
import { KeyedDigest, type Keys } from '../../../../kit/key-ring.ts';
import type { Logger } from '../../../../kit/log.ts';
import { whilePermitted } from '../../../edge/auth/caller.ts';
import type { Call } from '../../../edge/call.ts';
import { ApiError } from '../../../edge/errors.ts';
import type { Database } from '../../../store/database.ts';
import { allFacts } from '../../../store/facts.ts';
import type { Statement } from '../../../store/statement.ts';
import type { BrokerDocuments, BrokerOrders } from '../../broker/broker.ts';
import type { ClockAgreement } from '../../broker/clock.ts';
import { type EnvironmentState, inForceFact, refusalBy } from '../../submission/environment.ts';
import type { SendTimes } from '../../submission/kind.ts';
import { isProven, lateMs } from '../../submission/reconcile.ts';
import type { Recorder } from '../../submission/record.ts';
import type { ApplicationKind } from '../kind.ts';
import type { StoredApplication } from '../table.ts';
import {
  areAllDelivered,
  beginSend,
  checkNotInFlight,
  checkTakesDocuments,
  countLeased,
  type DocumentOutcome,
  type DocumentTypeWord,
  endSend,
  isKnown,
  isSameSend,
  mayStillArrive,
  type Released,
} from './rules.ts';
import {
  countUnderWay,
  documentsOf,
  documents as documentTable,
  findDocuments,
  leaseEndsOf,
  removeDocument,
  type StoredDocument,
  saveDocument,
} from './store.ts';

export interface DocumentSenderParts extends SendTimes {
  readonly database: Database;
  readonly kind: ApplicationKind;
  readonly recorder: Recorder;
  readonly broker: BrokerDocuments;
  readonly orders: Pick<BrokerOrders, 'honoursNotAfter'>;
  readonly clock: Clock;
  readonly clocks: { agreement(): Promise<ClockAgreement> };
  readonly log: Logger;
  /** The keys for the digests of files. */
  readonly digestKeys: Keys;
  /** The pause and the stops that this process knows. */
  readonly environment: Pick<EnvironmentState, 'stops' | 'stopsVersion' | 'obstacleTo'>;
  /** Called with the outcome of each send. */
  readonly onSent?: (outcome: DocumentOutcome) => void;
}

type DocumentKey = Pick<StoredDocument, 'partnerId' | 'applicationId' | 'type'>;

/** A file that was found to be a whole image. */
interface DocumentFile extends DocumentKey {
  readonly mediaType: string;
  readonly content: Buffer;
}

interface DocumentChange {
  /** Undefined: the broker does not have it and cannot have had it. */
  readonly after: StoredDocument | undefined;
  /** The text for the history. */
  readonly what: string;
  /** Further writes in the same transaction. */
  readonly writes?: readonly Statement[];
}

const outcomes: Record<DocumentOutcome, string> = {
  delivered: 'delivered',
  refused: 'the broker refused it',
  'never-left': 'it never left the gateway',
  unclear: 'the broker did not confirm it',
};

/** Added to a send's lease, in addition to the largest difference of clocks. */
const leaseMarginMs = 1_000;

/**
 * Sends documents: stores the attempt, sends the file once, records the outcome. A file is only in memory. Sends under
 * way are counted from rows under the partner's lock, exactly across replicas. A dead replica's send counts until its
 * lease ends.
 */
export class DocumentSender {
  constructor(private readonly parts: DocumentSenderParts) {}

  /** A keyed digest, which tells files apart without keeping them. The same file elsewhere has another digest. */
  digestOf({ partnerId, applicationId, type, content }: DocumentFile): KeyedDigest {
    return new KeyedDigest(this.parts.digestKeys, (hmac) =>
      hmac.update(`${partnerId} ${applicationId} ${type} `).update(content),
    );
  }

  /**
   * Checks without the lock whether to decode a file. Returns the document if the broker has the file. Throws
   * `document_in_flight`. `send` decides exactly.
   */
  async findDelivered(
    { partnerId, applicationId, type }: DocumentKey,
    digest: KeyedDigest,
  ): Promise<StoredDocument | undefined> {
    const now = this.parts.clock.realNow();
    const [rows = [], counts = []] = await this.parts.database.readAll([
      findDocuments(partnerId, applicationId),
      countUnderWay(partnerId, now),
    ]);
    const document = rows.map(documentTable.all.read).find((each) => each.type === type);
    if (document?.state === 'delivered' && digest.matches(document.digest)) return document;
    checkNotInFlight(document, comparable(digest, document), Number(counts[0]?.under_way), now);
    return undefined;
  }

  /** Returns the delivered document. Throws the operation's errors. */
  async send(
    file: DocumentFile,
    digest: KeyedDigest,
    { log, origin, permission }: Pick<Call, 'log' | 'origin' | 'permission'>,
  ): Promise<StoredDocument> {
    const { broker, environment, submitTimeoutMs } = this.parts;
    const begun = await whilePermitted(permission, (check) => this.#begin(file, digest, check));
    if (begun.document.state === 'delivered') return begun.document;
    const obstacle = environment.obstacleTo(affected(file));
    const sent = obstacle ?? (await broker.sendDocument({ ...file, origin }, begun.beganAt + submitTimeoutMs));
    const outcome = sent.outcome === 'answered' ? sent.answer : sent.outcome;
    this.parts.onSent?.(outcome);
    const document = await this.#end(begun.document, outcome, log);
    if (document?.state === 'delivered') return document;
    if (outcome === 'refused') throw new ApiError('document_rejected');
    if (obstacle !== undefined) throw new ApiError('trading_paused', { message: obstacle.reason });
    if (outcome === 'never-left') {
      throw new ApiError('exchange_unavailable', {
        message: 'The broker cannot be reached. Nothing was sent; send the same file again.',
      });
    }
    throw new ApiError('document_unconfirmed');
  }

  async #begin(
    file: DocumentFile,
    digest: KeyedDigest,
    check: () => void,
  ): Promise<{ document: StoredDocument; beganAt: number }> {
    const { kind, recorder, environment, clock, submitTimeoutMs, clockSkewMs } = this.parts;
    const { partnerId, applicationId, type } = file;
    const leaseMs = submitTimeoutMs + clockSkewMs + leaseMarginMs;
    let begun: { document: StoredDocument; beganAt: number } | undefined;
    const application = await recorder.change(
      kind,
      partnerId,
      applicationId,
      (application, { documents, leaseEnds, inForce }) => {
        check();
        // The wait for the lock does not shorten the time to send.
        const beganAt = clock.realNow();
        checkTakesDocuments(application.state);
        const before = documents.find((document) => document.type === type);
        const facts = beginSend(before, comparable(digest, before), {
          underWay: countLeased(leaseEnds, beganAt),
          refusal: refusalBy(inForce, affected(file), clock.now()),
          now: clock.now(),
          realNow: beganAt,
          leaseMs,
        });
        const isNew = facts !== before;
        const document = { partnerId, applicationId, type, ...facts };
        begun = { document, beganAt };
        if (!isNew) return undefined;
        return kind
          .begin(application)
          .write(saveDocument(document))
          .step('document', `${type}: to be sent, attempt ${facts.attempt}`);
      },
      {
        // Otherwise two documents of a partner would not count each other.
        touches: ['documents under way'],
        fact: allFacts({
          documents: documentsOf(partnerId, applicationId),
          leaseEnds: leaseEndsOf(partnerId, clock.realNow()),
          inForce: inForceFact(environment),
        }),
      },
    );
    // The broker is not asked about an application in a state of another version.
    checkTakesDocuments(application.state);
    if (begun === undefined) throw new Error('a document was neither begun nor refused');
    return begun;
  }

  /** Records the outcome. If that fails, the document counts as unconfirmed once its lease is over. */
  async #end(sent: StoredDocument, outcome: DocumentOutcome, log: Logger): Promise<StoredDocument | undefined> {
    let after: StoredDocument | undefined;
    try {
      await this.#change(sent, (before) => {
        after = endSend(before, sent, outcome, this.parts.clock.now());
        return after === before ? undefined : { after, what: outcomes[outcome] };
      });
      return after;
    } catch (error) {
      log.error({ err: error, objectId: sent.applicationId }, 'the outcome of a document could not be recorded');
      throw new ApiError('document_unconfirmed', { cause: error });
    }
  }

  /**
   * Settles an unconfirmed document from the broker's record, and never sends. Removing one needs the proof that an order
   * which never arrived needs: its time is over by more than clocks may differ, and after that the broker, which refuses
   * late submissions or has a complete record, did not have it. `audit` records the change in the same transaction.
   */
  async release(
    partnerId: string,
    applicationId: string,
    type: DocumentTypeWord,
    audit: (before: Pick<StoredDocument, 'state' | 'attempt'>, after: 'delivered' | 'released') => Statement,
  ): Promise<Released> {
    const { kind, database, clock, log } = this.parts;
    const [[row] = [], rows = []] = await database.readAll([
      kind.table.find({ partnerId, id: applicationId }),
      findDocuments(partnerId, applicationId),
    ]);
    const sent = rows.map(documentTable.all.read).find((document) => document.type === type);
    if (row === undefined || sent === undefined) return { outcome: 'not-stored' };
    const application = kind.table.all.read(row);
    if (!kind.table.isKnown(application) || !isKnown(sent)) return { outcome: 'other-version' };
    if (sent.state === 'delivered') {
      return { outcome: 'delivered', changed: false, applicationState: application.state };
    }
    if (mayStillArrive(sent, clock.realNow())) return { outcome: 'may-still-arrive', until: sent.leaseUntil ?? 0 };
    const outcome = await this.#askBroker(sent, application).catch((error: unknown) => {
      log.warn({ err: error, objectId: applicationId }, 'the broker could not be asked about a document');
      return 'unanswered' as const;
    });
    if (outcome !== 'delivered' && outcome !== 'released') return { outcome };
    let isChanged = false;
    const changed = await this.#change(sent, (stored) => {
      // It may be called again, after what it decided was undone.
      isChanged = stored !== undefined && isSameSend(stored, sent);
      if (stored === undefined || !isChanged) return undefined;
      const after = endSend(stored, stored, outcome === 'released' ? 'refused' : outcome, clock.now());
      const what = after ? "the broker's record has it" : "released, the broker's record does not have it";
      return { after, what, writes: [audit(sent, outcome)] };
    });
    if (!isChanged) return { outcome: 'changed-meanwhile' };
    return { outcome, changed: true, applicationState: changed.state };
  }

  /** Whether the broker has a document, or proves that it never will. */
  async #askBroker({ type, leaseUntil }: StoredDocument, application: StoredApplication) {
    const { broker, orders, clock, clocks, clockSkewMs } = this.parts;
    const honoursNotAfter = await orders.honoursNotAfter();
    const askedAt = clock.realNow();
    const lookedUp = await broker.lookUpDocument(application.id, type, application);
    if (lookedUp.found) return 'delivered';
    const agreement = await clocks.agreement();
    // The lease ends after the send's `not_after` by more than clocks may differ. A document without a lease was sent
    // long ago.
    const notAfter = (leaseUntil ?? 0) - clockSkewMs;
    const aheadMs = clock.now() - clock.realNow();
    const lastArrival = (leaseUntil ?? Number.POSITIVE_INFINITY) + aheadMs + lateMs;
    if (isProven({ lookedUp, askedAt, honoursNotAfter, agreement, notAfter, clockSkewMs, lastArrival }))
      return 'released';
    return agreement === 'apart' ? 'clocks-apart' : 'unproven';
  }

  /** Changes a document under its partner's lock. The fourth delivered document makes its application `submitted`. */
  async #change(
    { partnerId, applicationId, type }: DocumentKey,
    decide: (document: StoredDocument | undefined) => DocumentChange | undefined,
  ): Promise<StoredApplication> {
    const { kind, recorder } = this.parts;
    return recorder.change(
      kind,
      partnerId,
      applicationId,
      (application, documents) => {
        const before = documents.find((document) => document.type === type);
        const decided = decide(before);
        if (before === undefined || decided === undefined) return undefined;
        const { after, what, writes = [] } = decided;
        const isLast = after?.state === 'delivered' && areAllDelivered([...documents, after]);
        const change = (isLast ? kind.documentsDelivered(application) : undefined) ?? kind.begin(application);
        const write = after === undefined ? removeDocument(before) : saveDocument(after);
        return change.write(write, ...writes).step('document', `${type}: ${what}`);
      },
      { touches: ['documents under way'], fact: documentsOf(partnerId, applicationId) },
    );
  }
}

/** The facts of a document that stops ask for. */
function affected({ partnerId }: DocumentKey) {
  return { action: 'apply', partnerId } as const;
}

/** A file's digest as it would be stored: that of a document of the same file, whichever key made it, else the current one. */
function comparable(digest: KeyedDigest, document: StoredDocument | undefined): Buffer {
  return document !== undefined && digest.matches(document.digest) ? document.digest : digest.current;
}
