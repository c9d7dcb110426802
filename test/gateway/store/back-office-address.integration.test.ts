import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { grpcSubmissions } from '../../../src/gateway/trading/broker/grpc-back-office.ts';
import { AccountStatus } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Controls } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../../../src/kit/grpc-client.ts';
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts';
import { callTimeout, startGateway, type TestGateway } from '../../support/gateway.ts';
import { patient } from '../../support/patience.ts';
import { createTestDatabase, type TestDatabase } from '../../support/servers.ts';

describe('a gateway whose broker has its back office elsewhere', () => {
  let office: Simulator;
  let database: TestDatabase;
  let gateway: TestGateway;
  before(async () => {
    database = await createTestDatabase();
    office = await startSimulator({ databaseUrl: database.url, port: 0 });
    gateway = await startGateway({ MARINA_BACK_OFFICE_ADDRESS: `127.0.0.1:${office.port}` });
  });
  after(async () => {
    await gateway.stop();
    await office.close();
    await database.drop();
  });

  /** How many submissions a simulator was given. */
  async function givenTo(port: number): Promise<number | undefined> {
    const timeouts = { submitTimeoutMs: patient(2_000), readTimeoutMs: patient(2_000) };
    const broker = grpcSubmissions({ ...timeouts, address: `127.0.0.1:${port}` });
    try {
      return (await broker.submissionsAfter(0n, 100))?.length;
    } finally {
      broker.close();
    }
  }

  it('sends orders to the one and allocations to the other, and reads accounts there', async () => {
    const partner = await gateway.newPartner();
    const controls = createGrpcClient(Controls, `127.0.0.1:${office.port}`);
    await controls.setAccount({ account: partner.account, status: AccountStatus.ACTIVE }, callTimeout);
    controls.close();
    await gateway.fund(partner, 10_000n);
    const order = await gateway.place(partner, { symbol: 'SIM-FILL' });
    assert.equal(order.status, 201, order.text);
    assert.deepEqual([await givenTo(gateway.simulatorPort), await givenTo(office.port)], [1, 0]);
    const allocation = await gateway.allocate(partner, {});
    assert.equal(allocation.status, 201, allocation.text);
    assert.deepEqual([await givenTo(gateway.simulatorPort), await givenTo(office.port)], [1, 1]);
    const balance = await gateway.rest('GET', `/v1/accounts/${partner.account}/balance`, { key: partner.key });
    assert.equal(balance.status, 200, balance.text);
  });
});
