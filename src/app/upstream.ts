import { AllocationBroker, ApplicationBroker, SubmissionsBroker } from '../broker/back-office.ts';
import { BrokerClock } from '../broker/clock.ts';
import { Broker } from '../broker/orders.ts';
import { RecordsBroker } from '../broker/records.ts';
import { Controls } from '../gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../lib/grpc-client.ts';
import type { Base } from './base.ts';

export type Upstream = ReturnType<typeof createUpstream>;

/** The broker, and the simulator's controls where there is one. Each connects when it is first used. */
export function createUpstream({ config, log, tracer, metrics }: Base) {
  const { brokerAddress: address, simulatorAddress, submitTimeoutMs, readTimeoutMs } = config;
  const clock = new BrokerClock(config.clockSkewMs);
  const options = { address, submitTimeoutMs, readTimeoutMs, clock, log, tracer, metrics };
  const isSteered = config.environment === 'sandbox' && simulatorAddress !== undefined;
  const clients = {
    broker: new Broker(options),
    applications: new ApplicationBroker(options),
    allocations: new AllocationBroker(options),
    submissions: new SubmissionsBroker(options),
    records: new RecordsBroker(options),
    simulator: isSteered ? createGrpcClient(Controls, simulatorAddress) : undefined,
  };
  return {
    ...clients,
    clock,
    close: () => {
      for (const client of Object.values(clients)) client?.close();
    },
  };
}
