import type { MessageInitShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import type {
  ListLgasResponseSchema,
  ListStatesResponseSchema,
  Reference,
} from '../../gen/marina/broker/v1/reference_pb.ts';
import { Call } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { lgasOf, states } from '../areas.ts';
import type { Reads } from '../clearing/reads.ts';
import { unrecorded } from '../legs.ts';
import { RpcError, type UnaryHandlers } from '../rpc.ts';
import type { BackOfficeContext } from './applications-service.ts';

interface ReferenceContext extends BackOfficeContext {
  readonly reads: Reads;
}

/** The broker's lists. Each call passes the faults first. */
export function referenceService({ wire, nonsense, reads }: ReferenceContext): UnaryHandlers<typeof Reference> {
  return {
    listStates: (_, call) =>
      reads.count(call, '', () =>
        wire.carry<MessageInitShape<typeof ListStatesResponseSchema>>(call, {
          ...unrecorded(Call.LIST_STATES, ''),
          take: async () => ({ states: [...states] }),
          nonsense: nonsense.listStates,
        }),
      ),
    listLgas: ({ state }, call) =>
      reads.count(call, '', () =>
        wire.carry<MessageInitShape<typeof ListLgasResponseSchema>>(call, {
          ...unrecorded(Call.LIST_LGAS, ''),
          take: async () => {
            const lgas = lgasOf(state);
            if (lgas === undefined) throw new RpcError(status.NOT_FOUND, 'The broker does not know the state.');
            return { lgas: [...lgas] };
          },
          nonsense: nonsense.listLgas,
        }),
      ),
  };
}
