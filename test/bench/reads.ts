import type { Cluster } from '../support/cluster.ts';
import type { Turns } from './run.ts';
import { getOrderOverGrpc } from './support/operations.ts';
import { startBaseline } from './support/processes.ts';
import type { Row } from './support/report.ts';
import { RestCalls } from './support/rest-calls.ts';
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

  const pools = [gateway.restPort, bareRest.port].map((port) => new RestCalls(port, atOnce));
  const [oursPool, theirsPool] = pools as [RestCalls, RestCalls];
  const overRest = (pool: RestCalls) => () => pool.get(partner, `/v1/orders/${nextId()}`);

  const rest = await inTurns(
    { call: overRest(oursPool), pid: gateway.pid },
    { call: overRest(theirsPool), pid: bareRest.process.pid },
    { rounds, durationMs },
  );
  const grpc = await inTurns(
    { call: getOrderOverGrpc(gateway.grpcPort, partner, nextId), pid: gateway.pid },
    { call: getOrderOverGrpc(bareGrpc.port, partner, nextId), pid: bareGrpc.process.pid },
    { rounds, durationMs },
  );
  await Promise.all(pools.map((pool) => pool.close()));
  await Promise.all([bareRest.process.stop(), bareGrpc.process.stop()]);
  return [
    { what: 'REST GetOrder, throughput against bare node:http', figure: rest.ratio, bound: '≥ 0.75×' },
    { what: 'REST GetOrder, CPU per request, ours / bare', figure: rest.cpu },
    { what: 'gRPC GetOrder, throughput against bare grpc-js', figure: grpc.ratio, bound: '≥ 1.0×' },
    { what: 'gRPC GetOrder, CPU per request, ours / bare', figure: grpc.cpu, bound: '≤ 1.1×' },
  ];
}
