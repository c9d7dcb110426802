import type {
  BrokerAllocation,
  BrokerWithdrawal,
  Controls,
  ExchangeOrder,
} from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import type { GrpcClient } from '../../src/kit/grpc-client.ts';
import { patient } from './patience.ts';

type ControlsClient = GrpcClient<typeof Controls>;

const callTimeout = { timeoutMs: patient(10_000) };

/** All orders of the simulated exchange, or those after one. */
export async function exchangeOrders(controls: ControlsClient, after = 0n): Promise<ExchangeOrder[]> {
  const all: ExchangeOrder[] = [];
  for (let afterSequence = after; ; ) {
    const { orders, hasMore } = await controls.listExchangeOrders({ afterSequence }, callTimeout);
    all.push(...orders);
    afterSequence = orders.at(-1)?.sequence ?? afterSequence;
    if (!hasMore) return all;
  }
}

/** All allocations of the simulated broker, or those after one, by the id that the gateway gave them. */
export async function brokerAllocations(controls: ControlsClient, after = 0n): Promise<Map<string, BrokerAllocation>> {
  const all = new Map<string, BrokerAllocation>();
  for (let afterSequence = after; ; ) {
    const { allocations, hasMore } = await controls.listAllocations({ afterSequence }, callTimeout);
    for (const allocation of allocations) all.set(allocation.record?.clientAllocationId ?? '', allocation);
    afterSequence = allocations.at(-1)?.sequence ?? afterSequence;
    if (!hasMore) return all;
  }
}

/** All withdrawals of the simulated broker, or those after one, by the id that the gateway gave them. */
export async function brokerWithdrawals(controls: ControlsClient, after = 0n): Promise<Map<string, BrokerWithdrawal>> {
  const all = new Map<string, BrokerWithdrawal>();
  for (let afterSequence = after; ; ) {
    const { withdrawals, hasMore } = await controls.listWithdrawals({ afterSequence }, callTimeout);
    for (const withdrawal of withdrawals) all.set(withdrawal.clientWithdrawalId, withdrawal);
    afterSequence = withdrawals.at(-1)?.sequence ?? afterSequence;
    if (!hasMore) return all;
  }
}
