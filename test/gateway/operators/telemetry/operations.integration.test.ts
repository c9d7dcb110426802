import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';
import { ReflectedClient } from '../../../support/reflected.ts';

const buf = fileURLToPath(new URL('../../../../node_modules/.bin/buf', import.meta.url));

describe('a tool that knows no protos', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  async function curl(...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(buf, [
      'curl',
      '--http2-prior-knowledge',
      '--protocol',
      'grpc',
      ...args,
    ]);
    return stdout.trim();
  }

  it("finds the services of the partners' and of the operators' port", async () => {
    assert.deepEqual((await curl('--list-services', `http://127.0.0.1:${gateway.app.grpcPort}`)).split('\n'), [
      'grpc.health.v1.Health',
      'marina.gateway.v1.Accounts',
      'marina.gateway.v1.Allocations',
      'marina.gateway.v1.Applications',
      'marina.gateway.v1.Events',
      'marina.gateway.v1.Keys',
      'marina.gateway.v1.Limits',
      'marina.gateway.v1.Orders',
      'marina.gateway.v1.Reference',
      'marina.gateway.v1.Sandbox',
      'marina.gateway.v1.Wallet',
      'marina.gateway.v1.Withdrawals',
    ]);
    assert.deepEqual((await curl('--list-services', `http://127.0.0.1:${gateway.app.adminPort}`)).split('\n'), [
      'grpc.health.v1.Health',
      'marina.admin.v1.Accounts',
      'marina.admin.v1.Audit',
      'marina.admin.v1.Clock',
      'marina.admin.v1.CustomerAccounts',
      'marina.admin.v1.Diagnostics',
      'marina.admin.v1.Documents',
      'marina.admin.v1.Keys',
      'marina.admin.v1.Partners',
      'marina.admin.v1.Proposals',
      'marina.admin.v1.Releases',
      'marina.admin.v1.Reports',
      'marina.admin.v1.Settlements',
      'marina.admin.v1.Trading',
      'marina.admin.v1.Wallets',
      'marina.admin.v1.Webhooks',
    ]);
  });

  it('learns the details that errors of the partners have', async () => {
    const client = await ReflectedClient.connect(`127.0.0.1:${gateway.app.grpcPort}`);
    const details = ['marina.gateway.v1.Error', 'google.rpc.ErrorInfo', 'google.rpc.BadRequest'];
    assert.deepEqual(
      details.map((name) => client.knows(name)),
      [true, true, true],
    );
    client.close();
  });

  it('asks both ports for their health, by service too', async () => {
    for (const port of [gateway.app.grpcPort, gateway.app.adminPort]) {
      const answer = await curl('--reflect', '-d', '{}', `http://127.0.0.1:${port}/grpc.health.v1.Health/Check`);
      assert.deepEqual(JSON.parse(answer), { status: 'SERVING' });
    }
    const answer = await curl(
      '--reflect',
      '-d',
      '{"service":"marina.gateway.v1.Orders"}',
      `http://127.0.0.1:${gateway.app.grpcPort}/grpc.health.v1.Health/Check`,
    );
    assert.deepEqual(JSON.parse(answer), { status: 'SERVING' });
  });
});
