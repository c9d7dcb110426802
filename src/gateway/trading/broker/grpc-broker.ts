import type { Broker, BrokerId } from './broker.ts';
import { BrokerClock } from './clock.ts';
import { grpcAllocations, grpcApplications, grpcSubmissions } from './grpc-back-office.ts';
import { type BrokerOptions, closeAll } from './grpc-connection.ts';
import { grpcOrders } from './grpc-orders.ts';
import { grpcRecords } from './grpc-records.ts';
import { grpcStatements } from './grpc-statements.ts';
import { grpcWithdrawals } from './grpc-withdrawals.ts';

export interface GrpcBrokerOptions extends Omit<BrokerOptions, 'clock'> {
  /** `host:port` of its back office: all but orders and the list of submissions. */
  readonly backOfficeAddress: string;
  /** The largest expected difference between its clock and ours. */
  readonly clockSkewMs: number;
}

/** A broker that serves `marina.broker.v1` over gRPC. Each part connects at its first use. */
export function createGrpcBroker(id: BrokerId, options: GrpcBrokerOptions): Broker {
  const clock = new BrokerClock(options.clockSkewMs);
  const exchange = { ...options, clock };
  const backOffice = { ...exchange, address: options.backOfficeAddress };
  const orders = grpcOrders(exchange);
  const applications = grpcApplications(backOffice);
  const allocations = grpcAllocations(backOffice);
  const withdrawals = grpcWithdrawals(backOffice);
  const submissions = grpcSubmissions(exchange);
  const records = grpcRecords(backOffice);
  const statements = grpcStatements(backOffice);
  const parts = { orders, applications, allocations, withdrawals, submissions, records, statements };
  return {
    ...{ ...parts, id, clock, documents: applications },
    close: () => closeAll(Object.values(parts)),
  };
}
