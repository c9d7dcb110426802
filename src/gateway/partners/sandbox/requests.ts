import { create } from '@bufbuild/protobuf';
import {
  ListRequestsResponseSchema,
  RequestProtocol,
  type RequestRecord,
  RequestRecordSchema,
  type Sandbox,
} from '../../../gen/marina/gateway/v1/sandbox_pb.ts';
import { toSecond } from '../../../kit/clock.ts';
import type { HandlersOf } from '../../edge/call.ts';
import type { Cursors } from '../../edge/paging.ts';

/** A request that is kept for its partner. */
export interface LoggedRequest {
  /** Grows with each request of the process. */
  readonly number: number;
  readonly requestId: string;
  /** In business time. */
  readonly at: number;
  readonly protocol: 'rest' | 'grpc' | 'connect';
  readonly method: string;
  readonly path: string;
  readonly operation: string | undefined;
  readonly keyId: string;
  readonly status: number;
  readonly code: string | undefined;
  readonly objectId: string | undefined;
  readonly durationMs: number;
  readonly requestBody: string | undefined;
  readonly answerBody: string | undefined;
}

/** The requests that are kept, of a partner before one, the newest first. */
export interface LoggedRequests {
  list(partnerId: string, before: number | undefined, most: number): readonly LoggedRequest[];
}

const protocols: Record<LoggedRequest['protocol'], RequestProtocol> = {
  rest: RequestProtocol.REST,
  grpc: RequestProtocol.GRPC,
  connect: RequestProtocol.CONNECT,
};

/** The call with which a partner sees its own requests in a sandbox. */
export function requestToolHandlers(
  cursors: Cursors,
  requests: LoggedRequests,
): Pick<HandlersOf<typeof Sandbox>, 'listRequests'> {
  return {
    async listRequests({ limit = 25, cursor }, { caller: { partnerId } }) {
      const issuedFor = ['requests', partnerId];
      const before = cursor === undefined ? undefined : Number(cursors.read(issuedFor, cursor));
      const found = requests.list(partnerId, before, limit + 1);
      const { data, ...page } = cursors.page(issuedFor, found, limit, ({ number }) => String(number));
      return create(ListRequestsResponseSchema, { ...page, data: data.map(toMessage) });
    },
  };
}

function toMessage({ requestId, at, protocol, keyId, objectId, durationMs, ...kept }: LoggedRequest): RequestRecord {
  return create(RequestRecordSchema, {
    ...{ ...kept, id: requestId, key: keyId, about: objectId },
    at: toSecond(at),
    protocol: protocols[protocol],
    durationMs: BigInt(Math.round(durationMs)),
  });
}
