import { UpstreamCalls } from '../broker/calls.ts';
import { BrokerClock } from '../broker/clock.ts';
import { GrpcAllocations } from '../broker/grpc-allocations.ts';
import { GrpcApplications } from '../broker/grpc-applications.ts';
import { GrpcBroker } from '../broker/grpc-broker.ts';
import { GrpcRecords } from '../broker/grpc-records.ts';
import { GrpcSubmissions } from '../broker/grpc-submissions.ts';
import { Controls } from '../gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../lib/grpc-client.ts';
import type { Base } from './base.ts';

export type Upstream = ReturnType<typeof createUpstream>;

/** The broker, and the simulator's controls where there is one. Each connects when it is first used. */
export function createUpstream({ config, log, tracer, metrics }: Base) {
  const { brokerAddress: address, simulatorAddress, submitTimeoutMs, readTimeoutMs } = config;
  const clock = new BrokerClock(config.clockSkewMs);
  const calls = new UpstreamCalls({ clock, log, tracer, metrics });
  const options = { address, submitTimeoutMs, readTimeoutMs, calls };
  const isSteered = config.environment === 'sandbox' && simulatorAddress !== undefined;
  const clients = {
    /** Orders, documents, and what is asked before them. */
    broker: new GrpcBroker(options),
    applications: new GrpcApplications(options),
    allocations: new GrpcAllocations(options),
    /** What the broker was given. */
    submissions: new GrpcSubmissions(options),
    /** What is read of accounts, and the reference lists. */
    records: new GrpcRecords(options),
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
