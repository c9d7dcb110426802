import type { MessageInitShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import type {
  ListInstrumentsResponseSchema,
  ListLgasResponseSchema,
  ListMarketDaysResponseSchema,
  ListStatesResponseSchema,
  Reference,
} from '../../gen/marina/broker/v1/reference_pb.ts';
import { Call } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { daysAfter, isDate } from '../../kit/clock.ts';
import type { Reads } from '../clearing/reads.ts';
import { listedInstruments } from '../market/listed-instruments.ts';
import { marketDays } from '../market/market-days.ts';
import { check } from '../validation.ts';
import { unrecorded } from '../wire/legs.ts';
import { RpcError, type SimulatorHandlers } from '../wire/rpc.ts';
import type { BackOfficeContext } from './applications-service.ts';
import { lgasOf, states } from './areas.ts';

interface ReferenceContext extends BackOfficeContext {
  readonly reads: Reads;
}

/** The most days in one answer. */
const maxDays = 100;

/** The broker's lists. Each call passes the faults first. */
export function referenceService({
  wire,
  nonsense,
  reads,
  world,
}: ReferenceContext): SimulatorHandlers<typeof Reference> {
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
    listInstruments: (_, call) =>
      reads.count(call, '', () =>
        wire.carry<MessageInitShape<typeof ListInstrumentsResponseSchema>>(call, {
          ...unrecorded(Call.LIST_INSTRUMENTS, ''),
          take: async () => ({ instruments: listedInstruments(world, world.clock.now()) }),
          nonsense: nonsense.listInstruments,
        }),
      ),
    listMarketDays: ({ fromDate, toDate }, call) =>
      reads.count(call, '', () =>
        wire.carry<MessageInitShape<typeof ListMarketDaysResponseSchema>>(call, {
          ...unrecorded(Call.LIST_MARKET_DAYS, ''),
          take: async () => {
            check(isDate(fromDate), 'from_date');
            check(isDate(toDate) && toDate >= fromDate && toDate <= daysAfter(fromDate, maxDays - 1), 'to_date');
            return { days: marketDays(world.calendar, fromDate, toDate) };
          },
          nonsense: nonsense.listMarketDays,
        }),
      ),
  };
}
