import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { reading } from '../db/facts.ts';
import {
  type GetEndpointRequest,
  type GetEndpointResponse,
  GetEndpointResponseSchema,
  type MoveEndpointRequest,
  type MoveEndpointResponse,
  MoveEndpointResponseSchema,
  type PauseEndpointRequest,
  type PauseEndpointResponse,
  PauseEndpointResponseSchema,
  type RegisterEndpointRequest,
  type RegisterEndpointResponse,
  RegisterEndpointResponseSchema,
  type ResumeEndpointRequest,
  type ResumeEndpointResponse,
  ResumeEndpointResponseSchema,
  type RotateSecretRequest,
  type RotateSecretResponse,
  RotateSecretResponseSchema,
  type WebhookEndpoint,
  WebhookEndpointSchema,
} from '../gen/marina/admin/v1/webhooks_pb.ts';
import { ApiError } from '../lib/errors.ts';
import {
  insertEndpoint,
  lockEndpoint,
  type StoredEndpoint,
  saveHold,
  saveMove,
  saveResume,
  saveRotation,
} from '../webhooks/endpoint-store.ts';
import { freshHealth, rotationMs, signsWithOld } from '../webhooks/rules.ts';
import { audit } from './audit.ts';
import { AdminError, type Operator } from './call.ts';
import { requirePartner } from './credit.ts';
import {
  changeEndpoint,
  entry,
  readEndpoint,
  toTimestamp,
  type WebhookAdminParts,
  waitUntilAdopted,
} from './webhook-parts.ts';

/** The operators' calls on endpoints themselves: where events go, under which secret, and whether they do. */
export function webhookEndpointHandlers(parts: WebhookAdminParts) {
  const { database, clock } = parts;

  async function registerEndpoint(
    { partnerId, url: text }: RegisterEndpointRequest,
    operator: Operator,
  ): Promise<RegisterEndpointResponse> {
    const url = checkUrl(text);
    await requirePartner(database, partnerId);
    const secret = parts.makeSecret();
    const registeredAt = clock.now();
    const endpoint = await database.inPartner(partnerId, {
      touches: ['webhook endpoint'],
      fact: reading(lockEndpoint(partnerId)),
      decide: ([rows = []], partner) => {
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
          partnerId,
          subject: partnerId,
          detail: {},
          after: { url, afterVersion: partner.version },
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
    const moved = await changeEndpoint<StoredEndpoint>(parts, partnerId, (endpoint, now) => ({
      writes: [
        ...saveMove(partnerId, url, freshHealth, endpoint.health.pausedAt !== null),
        entry(operator, 'MoveEndpoint', partnerId, now, {}, { url: endpoint.url }, { url }),
      ],
      result: { ...endpoint, url, health: freshHealth },
    }));
    await waitUntilAdopted(parts, partnerId);
    return create(MoveEndpointResponseSchema, { endpoint: toMessage(moved, clock.now()) });
  }

  async function rotateSecret({ partnerId }: RotateSecretRequest, operator: Operator): Promise<RotateSecretResponse> {
    const secret = parts.makeSecret();
    const until = await changeEndpoint<number>(parts, partnerId, (endpoint, now) => {
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
    await waitUntilAdopted(parts, partnerId);
    return create(RotateSecretResponseSchema, { secret, oldSecretUntil: timestampFromMs(until) });
  }

  async function pauseEndpoint(
    { partnerId, reason }: PauseEndpointRequest,
    operator: Operator,
  ): Promise<PauseEndpointResponse> {
    const changed = await changeEndpoint<boolean>(parts, partnerId, (endpoint, now) => {
      if (endpoint.heldAt !== null) return { writes: [], result: false };
      const writes = [
        saveHold(partnerId, now),
        entry(operator, 'PauseEndpoint', partnerId, now, { reason }, pauses(endpoint), {
          ...pauses(endpoint),
          paused: true,
        }),
      ];
      return { writes, result: true };
    });
    await waitUntilAdopted(parts, partnerId);
    return create(PauseEndpointResponseSchema, { changed });
  }

  async function resumeEndpoint(
    { partnerId, reason }: ResumeEndpointRequest,
    operator: Operator,
  ): Promise<ResumeEndpointResponse> {
    const changed = await changeEndpoint<boolean>(parts, partnerId, (endpoint, now) => {
      if (endpoint.heldAt === null && endpoint.health.pausedAt === null) return { writes: [], result: false };
      const writes = [
        ...saveResume(partnerId, freshHealth),
        entry(operator, 'ResumeEndpoint', partnerId, now, { reason }, pauses(endpoint), {
          paused: false,
          failing: false,
        }),
      ];
      return { writes, result: true };
    });
    await waitUntilAdopted(parts, partnerId);
    return create(ResumeEndpointResponseSchema, { changed });
  }

  async function getEndpoint({ partnerId }: GetEndpointRequest): Promise<GetEndpointResponse> {
    return create(GetEndpointResponseSchema, {
      endpoint: toMessage(await readEndpoint(database, partnerId), clock.now()),
    });
  }

  function checkUrl(text: string): string {
    try {
      return parts.checkUrl(text);
    } catch (error) {
      if (error instanceof ApiError && error.code === 'invalid_request')
        throw new AdminError(status.INVALID_ARGUMENT, error.message, { param: 'url' });
      throw error;
    }
  }

  return { registerEndpoint, moveEndpoint, rotateSecret, pauseEndpoint, resumeEndpoint, getEndpoint };
}

/** What keeps an endpoint from being sent to. */
function pauses({ heldAt, health }: StoredEndpoint): Record<string, unknown> {
  return { paused: heldAt !== null, failing: health.pausedAt !== null };
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
    revision: 0n,
    changedRevision: 0n,
    seenRevision: 0n,
  };
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
