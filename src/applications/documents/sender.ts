import { createHmac } from 'node:crypto';
import type { Call } from '../../auth/call.ts';
import { whilePermitted } from '../../auth/call.ts';
import type { ApplicationBroker } from '../../broker/back-office.ts';
import type { Database } from '../../db/database.ts';
import { found, together } from '../../db/facts.ts';
import type { Clock } from '../../lib/clock.ts';
import { crash } from '../../lib/crash.ts';
import { ApiError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { type EnvironmentState, pausedBeforeSend, tradingPause } from '../../submission/environment.ts';
import type { Recorder } from '../../submission/record.ts';
import type { ApplicationKind } from '../kind.ts';
import { changeWith } from './change.ts';
import {
  beginSend,
  checkNotInFlight,
  checkTakesDocuments,
  type DocumentTypeWord,
  endSend,
  type Outcome,
} from './rules.ts';
import {
  countUnderWay,
  documentsOf,
  findDocuments,
  type StoredDocument,
  saveDocument,
  toStoredDocument,
} from './store.ts';

export interface DocumentSenderParts {
  readonly database: Database;
  readonly kind: ApplicationKind;
  readonly recorder: Recorder;
  readonly broker: Pick<ApplicationBroker, 'sendDocument'>;
  readonly clock: Clock;
  /** Keys the digests of files. */
  readonly digestKey: Buffer;
  /** Whether trading is paused, as far as this process knows. */
  readonly environment: Pick<EnvironmentState, 'paused'>;
  /** How long a send may take. */
  readonly submitTimeoutMs: number;
  /** How far the clocks of replicas may be from each other. */
  readonly clockSkewMs: number;
  /** Hears what became of each document that was sent. */
  readonly onSent?: (outcome: Outcome) => void;
}

/** A file that is a whole image. */
export interface DocumentFile {
  readonly partnerId: string;
  readonly applicationId: string;
  readonly type: DocumentTypeWord;
  readonly mediaType: string;
  readonly content: Buffer;
}

/** What the history says of an outcome. */
const outcomes: Record<Outcome, string> = {
  delivered: 'delivered',
  refused: 'the broker refused it',
  'never-left': 'it never left the gateway',
  unclear: 'the broker did not confirm it',
};

/** How much longer than it may take a send counts as under way, beside what clocks may differ by. */
const leaseMarginMs = 1_000;

/**
 * Delivers documents the way everything goes out: the attempt is stored, the file is sent once, the outcome is recorded.
 * The file itself is in memory while it is sent, and nowhere else. What is under way is counted by the rows, under the
 * partner's lock: exactly, for all replicas, and what a dead one had taken is free again when its lease is over.
 */
export class DocumentSender {
  constructor(private readonly parts: DocumentSenderParts) {}

  /** Tells files apart without keeping them, and tells nothing when the same file comes elsewhere. */
  digestOf({ partnerId, applicationId, type, content }: DocumentFile): Buffer {
    return createHmac('sha256', this.parts.digestKey)
      .update(`${partnerId} ${applicationId} ${type} `)
      .update(content)
      .digest();
  }

  /**
   * Looks without the lock whether a file is worth decoding. Returns the document if the broker has the file, and throws
   * `document_in_flight` if the file cannot be sent now. `send` decides exactly.
   */
  async look({ partnerId, applicationId, type }: DocumentFile, digest: Buffer): Promise<StoredDocument | undefined> {
    const now = this.parts.clock.realNow();
    const [rows = [], counts = []] = await this.parts.database.readAll([
      findDocuments(partnerId, applicationId),
      countUnderWay(partnerId, now),
    ]);
    const document = rows.map(toStoredDocument).find((each) => each.type === type);
    if (document?.state === 'delivered' && document.digest.equals(digest)) return document;
    checkNotInFlight(document, digest, Number(counts[0]?.under_way), now);
    return undefined;
  }

  /** Returns the delivered document. Throws what the operation answers otherwise. */
  async send(
    file: DocumentFile,
    digest: Buffer,
    { log, origin, permission }: Pick<Call, 'log' | 'origin' | 'permission'>,
  ): Promise<StoredDocument> {
    const { broker, environment, submitTimeoutMs } = this.parts;
    crash('document.before-store');
    const begun = await whilePermitted(permission, (check) => this.#begin(file, digest, check));
    if (begun.document.state === 'delivered') return begun.document;
    crash('document.stored');
    const wasPaused = environment.paused;
    const sent = wasPaused
      ? pausedBeforeSend
      : await broker.sendDocument({ ...file, origin }, begun.beganAt + submitTimeoutMs);
    crash('document.sent');
    const outcome = sent.outcome === 'answered' ? sent.answer : sent.outcome;
    this.parts.onSent?.(outcome);
    const document = await this.#end(begun.document, outcome, log);
    crash('document.recorded');
    if (document?.state === 'delivered') return document;
    if (outcome === 'refused') throw new ApiError('document_rejected');
    if (wasPaused) throw new ApiError('trading_paused');
    if (outcome === 'never-left') {
      throw new ApiError('exchange_unavailable', {
        message: 'The broker cannot be reached. Nothing was sent; send the same file again.',
      });
    }
    throw new ApiError('document_unconfirmed');
  }

  async #begin(
    file: DocumentFile,
    digest: Buffer,
    check: () => void,
  ): Promise<{ document: StoredDocument; beganAt: number }> {
    const { kind, recorder, clock, submitTimeoutMs, clockSkewMs } = this.parts;
    const { partnerId, applicationId, type } = file;
    const leaseMs = submitTimeoutMs + clockSkewMs + leaseMarginMs;
    let begun: { document: StoredDocument; beganAt: number } | undefined;
    const application = await recorder.change(
      kind,
      partnerId,
      applicationId,
      (application, { documents, underWay, isPaused }) => {
        check();
        // Whatever was waited for the lock is not taken from the time to send.
        const beganAt = clock.realNow();
        checkTakesDocuments(application.state);
        const before = documents.find((document) => document.type === type);
        const facts = beginSend(before, digest, {
          underWay,
          isPaused,
          now: clock.now(),
          realNow: beganAt,
          leaseMs,
        });
        const document = { partnerId, applicationId, type, ...facts };
        begun = { document, beganAt };
        if (facts === before) return undefined;
        return kind
          .begin(application)
          .write(saveDocument(document))
          .step('document', `${type}: to be sent, attempt ${facts.attempt}`);
      },
      {
        // Two of a partner's at the same time would both count without the other.
        touches: ['documents under way'],
        fact: together({
          documents: documentsOf(partnerId, applicationId),
          underWay: found(countUnderWay(partnerId, clock.realNow()), ([counted]) => Number(counted?.under_way)),
          isPaused: tradingPause,
        }),
      },
    );
    // One that this version does not know is not asked about.
    checkTakesDocuments(application.state);
    if (begun === undefined) throw new Error('a document was neither begun nor refused');
    return begun;
  }

  /** What came back is recorded. Where that fails, the document counts as unconfirmed once its lease is over. */
  async #end(sent: StoredDocument, outcome: Outcome, log: Logger): Promise<StoredDocument | undefined> {
    try {
      return await this.#record(sent, outcome);
    } catch (error) {
      log.error({ err: error, objectId: sent.applicationId }, 'the outcome of a document could not be recorded');
      throw new ApiError('document_unconfirmed', { cause: error });
    }
  }

  async #record(sent: StoredDocument, outcome: Outcome): Promise<StoredDocument | undefined> {
    const { kind, recorder, clock } = this.parts;
    const { partnerId, applicationId, type } = sent;
    let ended: StoredDocument | undefined;
    await recorder.change(
      kind,
      partnerId,
      applicationId,
      (application, documents) => {
        const before = documents.find((document) => document.type === type);
        const facts = endSend(before, sent, outcome, clock.now());
        ended = facts && { partnerId, applicationId, type, ...facts };
        if (before === undefined || facts === before) return undefined;
        return changeWith(kind, application, documents, { before, after: ended, what: outcomes[outcome] });
      },
      { touches: ['documents under way'], fact: documentsOf(partnerId, applicationId) },
    );
    return ended;
  }
}
