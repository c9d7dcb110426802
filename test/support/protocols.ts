import { Metadata } from '@grpc/grpc-js';
import { Allocations } from '../../src/gen/marina/gateway/v1/allocations_pb.ts';
import { Applications } from '../../src/gen/marina/gateway/v1/applications_pb.ts';
import { Events } from '../../src/gen/marina/gateway/v1/events_pb.ts';
import { Keys } from '../../src/gen/marina/gateway/v1/keys_pb.ts';
import { Orders } from '../../src/gen/marina/gateway/v1/orders_pb.ts';
import { Wallet } from '../../src/gen/marina/gateway/v1/wallet_pb.ts';
import { createGrpcClient } from '../../src/kit/grpc-client.ts';
import type { RestAnswer, TestGateway, TestPartner } from './gateway.ts';

/** The services of a gateway over gRPC, and what a partner calls them with. */
export function grpcClients({ app }: TestGateway) {
  const address = `127.0.0.1:${app.grpcPort}`;
  const clients = {
    orders: createGrpcClient(Orders, address),
    allocations: createGrpcClient(Allocations, address),
    applications: createGrpcClient(Applications, address),
    events: createGrpcClient(Events, address),
    keys: createGrpcClient(Keys, address),
    wallet: createGrpcClient(Wallet, address),
  };
  return {
    ...clients,
    as({ key }: TestPartner) {
      const metadata = new Metadata();
      metadata.set('authorization', `Bearer ${key}`);
      return { timeoutMs: 10_000, metadata };
    },
    close() {
      for (const client of Object.values(clients)) client.close();
    },
  };
}

/** Calls an operation over Connect, in JSON. */
export async function connectCall({ app }: TestGateway, { key }: TestPartner, operation: string, request: unknown) {
  const answer = await fetch(`http://127.0.0.1:${app.restPort}/marina.gateway.v1.${operation}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(request),
  });
  return { status: answer.status, body: (await answer.json()) as RestAnswer['body'] };
}
