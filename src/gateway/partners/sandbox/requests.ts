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
import type { KeptRequest, KeptRequests } from '../../edge/kept-requests/kept-requests.ts';
import type { Cursors } from '../../edge/paging.ts';

const protocols: Record<KeptRequest['protocol'], RequestProtocol> = {
  rest: RequestProtocol.REST,
  grpc: RequestProtocol.GRPC,
  connect: RequestProtocol.CONNECT,
};

/** The call with which a partner sees its own requests in a sandbox. */
export function requestToolHandlers(
  cursors: Cursors,
  requests: Pick<KeptRequests, 'list'>,
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

function toMessage({ requestId, at, protocol, keyId, objectId, durationMs, ...kept }: KeptRequest): RequestRecord {
  return create(RequestRecordSchema, {
    ...{ ...kept, id: requestId, key: keyId, about: objectId },
    at: toSecond(at),
    protocol: protocols[protocol],
    durationMs: BigInt(Math.round(durationMs)),
  });
}
