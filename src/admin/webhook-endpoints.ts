import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { reading } from '../db/facts.ts';
import type { Webhooks } from '../gen/marina/admin/v1/webhooks_pb.ts';
import { lockEndpoints, moved, newEndpoint, resumed, saveEndpoint } from '../webhooks/endpoint-store.ts';
import { rotationMs, signsWithOld } from '../webhooks/rules.ts';
import { type Endpoint, endpoints } from '../webhooks/table.ts';
import type { AuditEntry } from './audit.ts';
import { type AdminCalls, AdminError, type Operator } from './call.ts';
import { requirePartner } from './credit.ts';
import {
  changeEndpoint,
  entry,
  outcomes,
  readEndpoint,
  toTimestamp,
  type WebhookAdminParts,
  waitUntilAdopted,
} from './webhook-parts.ts';

const mostTestsAtOnce = 10;

/** The operators' calls on endpoints themselves: where events go, under which secret, and whether they do. */
export function webhookEndpointHandlers(
  parts: WebhookAdminParts,
): Omit<AdminCalls<typeof Webhooks>, 'listDeliveries' | 'redeliver'> {
  const { database, clock, ids } = parts;
  let testsUnderWay = 0;

  /** Makes a change, and answers with the endpoint when it is in force; undefined when there was nothing to change. */
  async function change(
    call: string,
    { partnerId }: { readonly partnerId: string },
    operator: Operator,
    changed: (endpoint: Endpoint, now: number) => Endpoint | undefined,
    told: (before: Endpoint, after: Endpoint) => Pick<AuditEntry, 'detail' | 'before' | 'after'>,
  ): Promise<Endpoint | undefined> {
    const endpoint = await changeEndpoint<Endpoint | undefined>(parts, partnerId, (before, now) => {
      const after = changed(before, now);
      if (after === undefined) return { writes: [], result: undefined };
      // Whoever sends to it must say that it has seen this revision.
      const { writes, saved } = saveEndpoint(before, { ...after, changedRevision: before.revision + 1n });
      return { writes: [...writes, entry(call, partnerId, operator, now, told(before, saved))], result: saved };
    });
    await waitUntilAdopted(parts, partnerId);
    return endpoint;
  }

  return {
    async registerEndpoint({ partnerId, url: text }, operator) {
      const url = parts.checkUrl(text);
      await requirePartner(database, partnerId);
      const secret = parts.makeSecret();
      const registeredAt = clock.now();
      const endpoint = await database.inPartner(partnerId, {
        touches: ['webhook endpoint'],
        fact: reading(lockEndpoints([partnerId])),
        decide: ([rows = []], { version: afterVersion }) => {
          if (rows.length > 0) {
            throw new AdminError(status.ALREADY_EXISTS, 'the partner has an endpoint: move it, or rotate its secret');
          }
          const sealed = parts.seal(partnerId, secret);
          const made = newEndpoint({ partnerId, url, secret: sealed, afterVersion, registeredAt });
          const said = { detail: {}, after: { url, afterVersion } };
          const writes = [endpoints.insert(made), entry('RegisterEndpoint', partnerId, operator, registeredAt, said)];
          return { writes, result: made };
        },
      });
      return { endpoint: toMessage(endpoint, registeredAt), secret };
    },

    async moveEndpoint(request, operator) {
      const url = parts.checkUrl(request.url);
      const endpoint = await change(
        'MoveEndpoint',
        request,
        operator,
        (before) => moved(before, url),
        (before, after) => ({ detail: {}, before: { url: before.url }, after: { url: after.url } }),
      );
      return { endpoint: endpoint && toMessage(endpoint, clock.now()) };
    },

    async rotateSecret(request, operator) {
      const secret = parts.makeSecret();
      const endpoint = await change(
        'RotateSecret',
        request,
        operator,
        (before, now) => {
          const { oldSecretUntil } = before;
          if (oldSecretUntil !== null && signsWithOld(oldSecretUntil, now)) {
            const end = new Date(oldSecretUntil).toISOString();
            throw new AdminError(status.FAILED_PRECONDITION, `the last rotation runs until ${end}`);
          }
          const sealed = parts.seal(request.partnerId, secret);
          return { ...before, secret: sealed, oldSecret: before.secret, oldSecretUntil: now + rotationMs };
        },
        (_, { oldSecretUntil }) => ({ detail: { oldUntil: new Date(oldSecretUntil ?? 0).toISOString() } }),
      );
      return { secret, oldSecretUntil: toTimestamp(endpoint?.oldSecretUntil ?? null) };
    },

    async pauseEndpoint(request, operator) {
      const hold = (before: Endpoint, now: number) => (before.heldAt === null ? { ...before, heldAt: now } : undefined);
      const endpoint = await change('PauseEndpoint', request, operator, hold, pausesOf(request.reason));
      return { changed: endpoint !== undefined };
    },

    async resumeEndpoint(request, operator) {
      const resume = (before: Endpoint) =>
        before.heldAt === null && before.pausedAt === null ? undefined : resumed(before);
      const endpoint = await change('ResumeEndpoint', request, operator, resume, pausesOf(request.reason));
      return { changed: endpoint !== undefined };
    },

    async getEndpoint({ partnerId }) {
      return { endpoint: toMessage(await readEndpoint(database, partnerId), clock.now()) };
    },

    async sendTest({ partnerId }, operator) {
      const endpoint = await readEndpoint(database, partnerId);
      if (testsUnderWay >= mostTestsAtOnce) {
        throw new AdminError(status.RESOURCE_EXHAUSTED, 'too many tests are under way: call again');
      }
      testsUnderWay += 1;
      try {
        const id = ids.event();
        const now = clock.now();
        const timestamp = new Date(Math.floor(now / 1_000) * 1_000).toISOString().replace('.000Z', 'Z');
        await database.write(entry('SendTest', partnerId, operator, now, { detail: { id } }));
        const body = Buffer.from(JSON.stringify({ object: 'webhook_test', id, timestamp }));
        const { outcome, status: code, errorClass, durationMs } = await parts.sendTest(endpoint, id, body);
        return {
          webhookId: id,
          outcome: outcomes[outcome],
          status: code ?? undefined,
          errorClass: errorClass ?? '',
          durationMs: BigInt(durationMs),
        };
      } finally {
        testsUnderWay -= 1;
      }
    },
  };
}

/** Tells what keeps an endpoint from being sent to. */
function pausesOf(reason: string) {
  const pauses = ({ heldAt, pausedAt }: Endpoint) => ({ paused: heldAt !== null, failing: pausedAt !== null });
  return (before: Endpoint, after: Endpoint) => ({ detail: { reason }, before: pauses(before), after: pauses(after) });
}

function toMessage(endpoint: Endpoint, now: number) {
  const { partnerId, url, afterVersion, streak, oldSecretUntil } = endpoint;
  return {
    partnerId,
    url,
    registeredAt: timestampFromMs(endpoint.registeredAt),
    afterVersion,
    failuresInARow: streak,
    failingSince: toTimestamp(endpoint.pausedAt),
    nextProbeAt: toTimestamp(endpoint.probeAt),
    pausedSince: toTimestamp(endpoint.heldAt),
    oldSecretUntil: toTimestamp(signsWithOld(oldSecretUntil, now) ? oldSecretUntil : null),
  };
}
