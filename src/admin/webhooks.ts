import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { Database } from '../db/database.ts';
import type { Decision, SqlRow, Statement } from '../db/statement.ts';
import { toBigInt } from '../db/statement.ts';
import {
  AttemptOutcome,
  DeliveryState,
  DeliveryStateSchema,
  type GetEndpointRequest,
  type GetEndpointResponse,
  GetEndpointResponseSchema,
  type ListDeliveriesRequest,
  type ListDeliveriesResponse,
  ListDeliveriesResponseSchema,
  type MoveEndpointRequest,
  type MoveEndpointResponse,
  MoveEndpointResponseSchema,
  type PauseEndpointRequest,
  type PauseEndpointResponse,
  PauseEndpointResponseSchema,
  type RedeliverRequest,
  type RedeliverResponse,
  RedeliverResponseSchema,
  type RegisterEndpointRequest,
  type RegisterEndpointResponse,
  RegisterEndpointResponseSchema,
  type ResumeEndpointRequest,
  type ResumeEndpointResponse,
  ResumeEndpointResponseSchema,
  type RotateSecretRequest,
  type RotateSecretResponse,
  RotateSecretResponseSchema,
  type SendTestRequest,
  type SendTestResponse,
  SendTestResponseSchema,
  type WebhookAttempt,
  WebhookAttemptSchema,
  type WebhookDelivery,
  WebhookDeliverySchema,
  type WebhookEndpoint,
  WebhookEndpointSchema,
} from '../gen/marina/admin/v1/webhooks_pb.ts';
import type { Clock } from '../lib/clock.ts';
import { enumWords } from '../lib/enums.ts';
import { ApiError } from '../lib/errors.ts';
import { groupBy } from '../lib/group.ts';
import type { IdMaker } from '../lib/ids.ts';
import {
  type DeliveryState as DeliveryStateWord,
  freshHealth,
  isTooOld,
  type Outcome,
  rotationMs,
  signsWithOld,
} from '../webhooks/rules.ts';
import {
  findAttempts,
  findDeliveries,
  findEndpoint,
  insertEndpoint,
  type ListedDelivery,
  lockEndpoint,
  lockForRedelivery,
  type StoredAttempt,
  type StoredEndpoint,
  saveHold,
  saveMove,
  saveResume,
  saveRotation,
  redeliver as sendAgain,
  toAttempt,
  toEndpoint,
  toListedDelivery,
} from '../webhooks/store.ts';
import { audit } from './audit.ts';
import { requirePartner } from './credit.ts';
import { AdminError, type Operator } from './server.ts';

/** What became of one attempt. */
export interface TestOutcome {
  readonly outcome: Outcome;
  readonly status: number | null;
  readonly errorClass: string | null;
  readonly durationMs: number;
}

export interface WebhookAdminParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly ids: IdMaker;
  /** Checks a URL, and answers with it as it will be used. Throws `invalid_request` with a sentence for people. */
  readonly checkUrl: (url: string) => string;
  readonly makeSecret: () => string;
  readonly seal: (partnerId: string, secret: string) => Buffer;
  /** Makes one attempt to send a body, signed like any other. */
  readonly sendTest: (endpoint: StoredEndpoint, id: string, body: Buffer) => Promise<TestOutcome>;
  /** Called when an endpoint was changed, or has something to be sent. */
  readonly onChange: (partnerId: string) => void;
}

const stateWords = enumWords<DeliveryStateWord>(DeliveryStateSchema);
const outcomes: Record<Outcome, AttemptOutcome> = {
  delivered: AttemptOutcome.DELIVERED,
  'endpoint-failed': AttemptOutcome.ENDPOINT_FAILED,
  'event-failed': AttemptOutcome.EVENT_FAILED,
};

const mostListed = 100;
const usuallyListed = 25;
const mostAttemptsListed = 100;
const mostRedelivered = 1_000;
const mostTestsAtOnce = 10;
const longestReasonBytes = 200;

/** The operators' calls on webhook endpoints. Each change is written down in the transaction that makes it. */
export function webhookAdminHandlers(parts: WebhookAdminParts) {
  const { database, clock, ids } = parts;
  let testsUnderWay = 0;

  async function registerEndpoint(
    { partnerId, url: text }: RegisterEndpointRequest,
    operator: Operator,
  ): Promise<RegisterEndpointResponse> {
    const url = checkUrl(text);
    await requirePartner(database, partnerId);
    const secret = parts.makeSecret();
    const registeredAt = clock.now();
    const endpoint = await database.inPartner<StoredEndpoint>(partnerId, {
      touches: ['webhook endpoint'],
      reads: [lockEndpoint(partnerId)],
      decide: (partner, [rows = []]) => {
        if (rows.length > 0) {
          throw new AdminError(status.ALREADY_EXISTS, 'the partner has an endpoint: move it, or rotate its secret');
        }
        const made = {
          partnerId,
          url,
          secret: parts.seal(partnerId, secret),
          afterVersion: partner.version,
          registeredAt,
        };
        const entry = audit({
          at: registeredAt,
          operator,
          action: 'Webhooks.RegisterEndpoint',
          subject: partnerId,
          detail: { url, afterVersion: partner.version.toString() },
        });
        return { writes: [insertEndpoint(made), entry], result: newEndpoint(made) };
      },
    });
    return create(RegisterEndpointResponseSchema, { endpoint: toMessage(endpoint, registeredAt), secret });
  }

  async function moveEndpoint(
    { partnerId, url: text }: MoveEndpointRequest,
    operator: Operator,
  ): Promise<MoveEndpointResponse> {
    const url = checkUrl(text);
    const moved = await change<StoredEndpoint>(partnerId, (endpoint, now) => ({
      writes: [
        ...saveMove(partnerId, url, freshHealth, endpoint.health.pausedAt !== null),
        entry(operator, 'MoveEndpoint', partnerId, now, { from: endpoint.url, to: url }),
      ],
      result: { ...endpoint, url, health: freshHealth },
    }));
    return create(MoveEndpointResponseSchema, { endpoint: toMessage(moved, clock.now()) });
  }

  async function rotateSecret({ partnerId }: RotateSecretRequest, operator: Operator): Promise<RotateSecretResponse> {
    const secret = parts.makeSecret();
    const until = await change<number>(partnerId, (endpoint, now) => {
      const { oldSecretUntil } = endpoint;
      if (oldSecretUntil !== null && signsWithOld(oldSecretUntil, now)) {
        const end = new Date(oldSecretUntil).toISOString();
        throw new AdminError(status.FAILED_PRECONDITION, `the last rotation runs until ${end}`);
      }
      const oldUntil = now + rotationMs;
      return {
        writes: [
          saveRotation(partnerId, parts.seal(partnerId, secret), endpoint.secret, oldUntil),
          entry(operator, 'RotateSecret', partnerId, now, { oldUntil: new Date(oldUntil).toISOString() }),
        ],
        result: oldUntil,
      };
    });
    return create(RotateSecretResponseSchema, { secret, oldSecretUntil: timestampFromMs(until) });
  }

  async function pauseEndpoint(
    { partnerId, reason }: PauseEndpointRequest,
    operator: Operator,
  ): Promise<PauseEndpointResponse> {
    checkReason(reason);
    const changed = await change<boolean>(partnerId, (endpoint, now) => {
      if (endpoint.heldAt !== null) return { writes: [], result: false };
      const writes = [saveHold(partnerId, now), entry(operator, 'PauseEndpoint', partnerId, now, { reason })];
      return { writes, result: true };
    });
    return create(PauseEndpointResponseSchema, { changed });
  }

  async function resumeEndpoint(
    { partnerId, reason }: ResumeEndpointRequest,
    operator: Operator,
  ): Promise<ResumeEndpointResponse> {
    checkReason(reason);
    const changed = await change<boolean>(partnerId, (endpoint, now) => {
      if (endpoint.heldAt === null && endpoint.health.pausedAt === null) return { writes: [], result: false };
      const writes = [
        ...saveResume(partnerId, freshHealth),
        entry(operator, 'ResumeEndpoint', partnerId, now, { reason }),
      ];
      return { writes, result: true };
    });
    return create(ResumeEndpointResponseSchema, { changed });
  }

  async function getEndpoint({ partnerId }: GetEndpointRequest): Promise<GetEndpointResponse> {
    return create(GetEndpointResponseSchema, { endpoint: toMessage(await readEndpoint(partnerId), clock.now()) });
  }

  async function listDeliveries(request: ListDeliveriesRequest): Promise<ListDeliveriesResponse> {
    const { partnerId, beforeVersion, state, eventId } = request;
    const limit = request.limit === 0 ? usuallyListed : request.limit;
    if (limit < 1 || limit > mostListed) throw invalid('`limit` must be 1 to 100');
    if (beforeVersion < 0n) throw invalid('`before_version` must not be negative');
    if (DeliveryState[state] === undefined) throw invalid('`state` is not known');
    await readEndpoint(partnerId);
    const rows = await readRows(
      findDeliveries(
        partnerId,
        beforeVersion === 0n ? undefined : beforeVersion,
        state === DeliveryState.UNSPECIFIED ? undefined : stateWords.word(state),
        eventId === '' ? undefined : eventId,
        limit + 1,
      ),
    );
    const deliveries = rows.slice(0, limit).map(toListedDelivery);
    const versions = deliveries.map(({ version }) => version);
    const attempts =
      versions.length === 0 ? [] : await readRows(findAttempts(partnerId, versions, mostAttemptsListed * limit));
    const attemptsOf = groupBy(attempts.map(toAttempt), ({ version }) => version);
    return create(ListDeliveriesResponseSchema, {
      deliveries: deliveries.map((delivery) => toDeliveryMessage(delivery, attemptsOf.get(delivery.version) ?? [])),
      hasMore: rows.length > limit,
    });
  }

  async function redeliver(request: RedeliverRequest, operator: Operator): Promise<RedeliverResponse> {
    const { partnerId, eventId, from, to, afterVersion, reason } = request;
    checkReason(reason);
    const hasWindow = from !== undefined || to !== undefined;
    if ((eventId !== '') === hasWindow) throw invalid('name either `event_id` or a window, `from` and `to`');
    if (hasWindow && (from === undefined || to === undefined)) throw invalid('a window needs `from` and `to`');
    if (afterVersion < 0n) throw invalid('`after_version` must not be negative');
    const range = hasWindow ? { from: msOf(from), to: msOf(to) } : { eventId };
    if (range.from !== undefined && range.to !== undefined && range.to <= range.from) {
      throw invalid('the window ends before it begins');
    }
    const now = clock.now();
    if (!hasWindow) await requireRecent(partnerId, eventId, now);
    const reads = [lockForRedelivery(partnerId, range, afterVersion, now, mostRedelivered + 1)];
    const versions = await change<bigint[]>(
      partnerId,
      (_endpoint, at, [rows = []]) => {
        const found = rows.map((row) => toBigInt(row.version));
        const taken = found.slice(0, mostRedelivered);
        if (taken.length === 0) return { writes: [], result: [] };
        const detail = {
          ...(hasWindow ? { from: new Date(range.from ?? 0), to: new Date(range.to ?? 0) } : { eventId }),
          events: taken.length,
          reason,
        };
        return {
          writes: [sendAgain(partnerId, taken), entry(operator, 'Redeliver', partnerId, at, detail)],
          result: found,
        };
      },
      reads,
    );
    const taken = versions.slice(0, mostRedelivered);
    return create(RedeliverResponseSchema, {
      events: taken.length,
      lastVersion: taken.at(-1) ?? 0n,
      complete: versions.length <= mostRedelivered,
    });
  }

  async function sendTest({ partnerId }: SendTestRequest, operator: Operator): Promise<SendTestResponse> {
    const endpoint = await readEndpoint(partnerId);
    if (testsUnderWay >= mostTestsAtOnce) {
      throw new AdminError(status.RESOURCE_EXHAUSTED, 'too many tests are under way: call again');
    }
    testsUnderWay += 1;
    try {
      const id = ids.event();
      const now = clock.now();
      const timestamp = new Date(Math.floor(now / 1_000) * 1_000).toISOString().replace('.000Z', 'Z');
      await database.write(entry(operator, 'SendTest', partnerId, now, { id }));
      const body = Buffer.from(JSON.stringify({ object: 'webhook_test', id, timestamp }));
      const { outcome, status: code, errorClass, durationMs } = await parts.sendTest(endpoint, id, body);
      return create(SendTestResponseSchema, {
        webhookId: id,
        outcome: outcomes[outcome],
        status: code ?? undefined,
        errorClass: errorClass ?? '',
        durationMs: BigInt(Math.round(durationMs)),
      });
    } finally {
      testsUnderWay -= 1;
    }
  }

  /** Changes an endpoint under its lock, and tells those who send to it. */
  async function change<T>(
    partnerId: string,
    decide: (endpoint: StoredEndpoint, now: number, rows: SqlRow[][]) => Decision<T>,
    reads: readonly Statement[] = [],
  ): Promise<T> {
    const result = await database.transaction<T>([lockEndpoint(partnerId), ...reads], ([rows, ...more]) => {
      const row = rows?.[0];
      if (row === undefined) throw noEndpoint();
      return decide(toEndpoint(row), clock.now(), more);
    });
    parts.onChange(partnerId);
    return result;
  }

  async function readEndpoint(partnerId: string): Promise<StoredEndpoint> {
    const [row] = await database.read(findEndpoint(partnerId));
    if (row === undefined) throw noEndpoint();
    return toEndpoint(row);
  }

  async function requireRecent(partnerId: string, eventId: string, now: number): Promise<void> {
    await readEndpoint(partnerId);
    const [row] = await readRows(findDeliveries(partnerId, undefined, undefined, eventId, 1));
    if (row === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such event for this endpoint');
    if (isTooOld(toListedDelivery(row).occurredAt, now)) {
      throw new AdminError(
        status.FAILED_PRECONDITION,
        'the event is older than 28 hours and 51 minutes: the feed has it',
      );
    }
  }

  async function readRows(query: Statement): Promise<SqlRow[]> {
    const [rows = []] = await database.readAll([query]);
    return rows;
  }

  function checkUrl(text: string): string {
    try {
      return parts.checkUrl(text);
    } catch (error) {
      if (error instanceof ApiError && error.code === 'invalid_request') throw invalid(error.message);
      throw error;
    }
  }

  return {
    registerEndpoint,
    moveEndpoint,
    rotateSecret,
    pauseEndpoint,
    resumeEndpoint,
    getEndpoint,
    listDeliveries,
    redeliver,
    sendTest,
  };
}

function newEndpoint(made: {
  partnerId: string;
  url: string;
  secret: Buffer;
  afterVersion: bigint;
  registeredAt: number;
}): StoredEndpoint {
  return {
    ...made,
    oldSecret: null,
    oldSecretUntil: null,
    generation: 0,
    health: freshHealth,
    heldAt: null,
    draining: false,
    fence: 0n,
  };
}

function entry(
  operator: Operator,
  call: string,
  partnerId: string,
  at: number,
  detail: Record<string, unknown>,
): Statement {
  return audit({ at, operator, action: `Webhooks.${call}`, subject: partnerId, detail });
}

function toMessage(endpoint: StoredEndpoint, now: number): WebhookEndpoint {
  const { health, oldSecretUntil } = endpoint;
  return create(WebhookEndpointSchema, {
    partnerId: endpoint.partnerId,
    url: endpoint.url,
    registeredAt: timestampFromMs(endpoint.registeredAt),
    afterVersion: endpoint.afterVersion,
    failuresInARow: health.streak,
    failingSince: toTimestamp(health.pausedAt),
    nextProbeAt: toTimestamp(health.probeAt),
    pausedSince: toTimestamp(endpoint.heldAt),
    oldSecretUntil: toTimestamp(signsWithOld(oldSecretUntil, now) ? oldSecretUntil : null),
  });
}

function toDeliveryMessage(delivery: ListedDelivery, attempts: readonly StoredAttempt[]): WebhookDelivery {
  return create(WebhookDeliverySchema, {
    eventId: delivery.eventId,
    version: delivery.version,
    type: delivery.type,
    state: stateWords.value(delivery.state),
    occurredAt: timestampFromMs(delivery.occurredAt),
    attemptsCounted: delivery.attempts,
    dueAt: toTimestamp(delivery.dueAt),
    attempts: attempts.slice(0, mostAttemptsListed).map(toAttemptMessage),
  });
}

function toAttemptMessage(attempt: StoredAttempt): WebhookAttempt {
  return create(WebhookAttemptSchema, {
    number: attempt.number,
    at: timestampFromMs(attempt.at),
    isProbe: attempt.isProbe,
    outcome: outcomes[attempt.outcome],
    status: attempt.status ?? undefined,
    errorClass: attempt.errorClass ?? '',
    durationMs: BigInt(attempt.durationMs),
  });
}

function toTimestamp(ms: number | null): Timestamp | undefined {
  return ms === null ? undefined : timestampFromMs(ms);
}

function msOf(timestamp: Timestamp | undefined): number | undefined {
  return timestamp === undefined ? undefined : Number(timestamp.seconds) * 1_000 + Math.floor(timestamp.nanos / 1e6);
}

function noEndpoint(): AdminError {
  return new AdminError(status.NOT_FOUND, 'the partner has no endpoint');
}

function invalid(message: string): AdminError {
  return new AdminError(status.INVALID_ARGUMENT, message);
}

function checkReason(reason: string): void {
  if (Buffer.byteLength(reason) > longestReasonBytes) throw invalid('`reason` must be at most 200 bytes');
}
