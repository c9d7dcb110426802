import { Pool } from 'undici';
import { statement } from '../../src/gateway/store/statement.ts';
import type { Cluster, GatewayProcess } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import type { Turns } from './run.ts';
import { startBaseline } from './support/processes.ts';
import type { Row } from './support/report.ts';
import { notKept } from './support/rest-calls.ts';
import { atOnce, inTurns } from './support/turns.ts';

/** The limits agreed with the partner are above the load, so that nothing is refused and each request still counts. */
const agreed = { requestsPerSecond: 100_000, requestsBurst: 100_000, requestsUnderWay: 64 };
const nobodyThere = 'nats://127.0.0.1:1';

/** Requests that are held to limits counted across replicas, against a bare server, and against limits counted here. */
export async function benchLimits(cluster: Cluster, { rounds, durationMs }: Turns): Promise<Row[]> {
  const [shared, , local] = await Promise.all([
    cluster.startGateway(),
    cluster.startGateway(),
    cluster.startGateway({ MARINA_NATS_URL: nobodyThere }),
  ]);
  await eventually(async () => {
    const ready = await fetch(`http://127.0.0.1:${shared.opsPort}/readyz`);
    if ((await ready.text()).includes('across replicas')) throw new Error('limits are not counted across replicas');
  });
  const partner = await cluster.newPartner();
  const { requestsPerSecond, requestsBurst, requestsUnderWay } = agreed;
  await cluster.database.write(
    statement(
      'UPDATE partners SET requests_per_second = ?, requests_burst = ?, requests_under_way = ? WHERE id = ?',
      requestsPerSecond,
      requestsBurst,
      requestsUnderWay,
      partner.id,
    ),
  );
  const placed: string[] = [];
  for (let count = 0; count < 100; count += 1) {
    const { body } = await shared.place(partner, {
      symbol: 'SIM-REST',
      quantity: 1 + count,
      client_reference: 'bench',
    });
    placed.push(body.id);
  }
  const bare = await startBaseline('rest-get', {
    BASELINE_DATABASE_URL: cluster.databaseUrl,
    BASELINE_PARTNER: partner.id,
  });
  const pools: Pool[] = [];
  const poolOf = (port: number) => {
    const pool = new Pool(`http://127.0.0.1:${port}`, { connections: atOnce, pipelining: 1 });
    pools.push(pool);
    return pool;
  };
  let turn = 0;
  const getOrder = (port: number) => {
    const pool = poolOf(port);
    const headers = { ...notKept, authorization: `Bearer ${partner.key}` };
    return async () => {
      turn += 1;
      const answer = await pool.request({ path: `/v1/orders/${placed[turn % placed.length]}`, method: 'GET', headers });
      await expectOk(answer);
    };
  };
  const estimate = ({ restPort }: GatewayProcess) => {
    const pool = poolOf(restPort);
    const headers = { ...notKept, authorization: `Bearer ${partner.key}`, 'content-type': 'application/json' };
    const order = { account: partner.account, symbol: 'SIM-REST', side: 'buy', quantity: 10, type: 'market' };
    const body = JSON.stringify(order);
    return async () => expectOk(await pool.request({ path: '/v1/orders/estimate', method: 'POST', headers, body }));
  };

  const turns = { rounds, durationMs };
  const ours = { call: getOrder(shared.restPort), pid: shared.pid };
  const againstBare = await inTurns(ours, { call: getOrder(bare.port), pid: bare.process.pid }, turns);
  const againstLocal = await inTurns(ours, { call: getOrder(local.restPort), pid: local.pid }, turns);
  const estimates = await inTurns(
    { call: estimate(shared), pid: shared.pid },
    { call: estimate(local), pid: local.pid },
    turns,
  );
  await Promise.all(pools.map((pool) => pool.close()));
  await bare.process.stop();
  return [
    {
      what: 'REST GetOrder, limits across replicas, against bare node:http',
      figure: againstBare.ratio,
      bound: '≥ 0.65×',
    },
    { what: 'REST GetOrder, limits across replicas against local ones', figure: againstLocal.ratio, bound: '≥ 0.85×' },
    { what: '  CPU per request, across replicas / local', figure: againstLocal.cpu },
    {
      what: 'REST EstimateOrder (rate and place), across replicas against local',
      figure: estimates.ratio,
      bound: '≥ 0.85×',
    },
    { what: '  CPU per request, across replicas / local', figure: estimates.cpu },
  ];
}

async function expectOk({ statusCode, body }: Awaited<ReturnType<Pool['request']>>): Promise<void> {
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`${statusCode} ${text}`);
}
