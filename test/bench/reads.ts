import { Metadata } from '@grpc/grpc-js';
import { Pool } from 'undici';
import { Orders } from '../../src/gen/marina/gateway/v1/orders_pb.ts';
import { createGrpcClient } from '../../src/lib/grpc-client.ts';
import type { Cluster } from '../support/cluster.ts';
import type { Turns } from './run.ts';
import { startBaseline } from './support/processes.ts';
import type { Row } from './support/report.ts';
import { atOnce, inTurns } from './support/turns.ts';

/** GetOrder over REST and gRPC against bare servers that answer with the same bytes. */
export async function benchReads(cluster: Cluster, { rounds, durationMs }: Turns): Promise<Row[]> {
  const gateway = await cluster.startGateway();
  const partner = await cluster.newPartner();
  const placed: string[] = [];
  for (let count = 0; count < 100; count += 1) {
    const { body } = await gateway.place(partner, {
      symbol: 'SIM-REST',
      quantity: 1 + count,
      client_reference: 'bench',
    });
    placed.push(body.id);
  }
  const variables = { BASELINE_DATABASE_URL: cluster.databaseUrl, BASELINE_PARTNER: partner.id };
  const bareRest = await startBaseline('rest-get', variables);
  const bareGrpc = await startBaseline('grpc-get', variables);
  let turn = 0;
  const nextId = () => placed[turn++ % placed.length] ?? '';

  const restCall = (pool: Pool) => async () => {
    const headers = { authorization: `Bearer ${partner.key}` };
    const { statusCode, body } = await pool.request({ path: `/v1/orders/${nextId()}`, method: 'GET', headers });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${statusCode} ${text}`);
  };
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${partner.key}`);
  const grpcCall = (port: number) => {
    const clients = Array.from({ length: 4 }, () => createGrpcClient(Orders, `127.0.0.1:${port}`));
    return () => clients[turn % clients.length]?.getOrder({ id: nextId() }, { timeoutMs: 10_000, metadata });
  };
  const pools = [gateway.restPort, bareRest.port].map(
    (port) => new Pool(`http://127.0.0.1:${port}`, { connections: atOnce, pipelining: 1 }),
  );
  const [oursPool, theirsPool] = pools as [Pool, Pool];

  const rest = await inTurns(
    { call: restCall(oursPool), pid: gateway.pid },
    { call: restCall(theirsPool), pid: bareRest.process.pid },
    { rounds, durationMs },
  );
  const grpc = await inTurns(
    { call: async () => grpcOurs(), pid: gateway.pid },
    { call: async () => grpcTheirs(), pid: bareGrpc.process.pid },
    { rounds, durationMs },
  );
  await Promise.all(pools.map((pool) => pool.close()));
  await Promise.all([bareRest.process.stop(), bareGrpc.process.stop()]);
  return [
    { what: 'REST GetOrder, throughput against bare node:http', figure: rest.ratio, bound: '≥ 0.75×' },
    { what: 'REST GetOrder, CPU per request, ours / bare', figure: rest.cpu },
    { what: 'gRPC GetOrder, throughput against bare grpc-js', figure: grpc.ratio, bound: '≥ 0.85×' },
    { what: 'gRPC GetOrder, CPU per request, ours / bare', figure: grpc.cpu },
  ];

  function grpcOurs() {
    oursGrpc ??= grpcCall(gateway.grpcPort);
    return oursGrpc();
  }
  function grpcTheirs() {
    theirsGrpc ??= grpcCall(bareGrpc.port);
    return theirsGrpc();
  }
}

let oursGrpc: (() => Promise<unknown> | undefined) | undefined;
let theirsGrpc: (() => Promise<unknown> | undefined) | undefined;
