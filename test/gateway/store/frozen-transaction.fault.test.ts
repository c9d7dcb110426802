import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Cluster, type GatewayProcess } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';

describe('a process frozen in a transaction that holds a partner', () => {
  let cluster: Cluster;
  let gateway: GatewayProcess;
  before(async () => {
    cluster = await Cluster.start();
    gateway = await cluster.startGateway();
  });
  after(() => cluster.stop());

  it('holds it for 4 seconds and not for as long as it is frozen, and writes nothing when it goes on', async () => {
    const partner = await cluster.newPartner();
    const program = join(import.meta.dirname, '../../support/fault/stands-still.ts');
    const frozen = spawn(process.execPath, ['--import', 'tsx', program, cluster.databaseUrl, partner.id], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const said: string[] = [];
      frozen.stdout.setEncoding('utf8').on('data', (text: string) => said.push(text));
      await once(frozen.stdout, 'data');
      const began = performance.now();
      await eventually(async () => {
        const { status } = await gateway.place(partner, { symbol: 'SIM-FILL' });
        assert.equal(status, 201);
      });
      const tookMs = performance.now() - began;
      assert.ok(tookMs > 1_000 && tookMs < 15_000, `${Math.round(tookMs)} ms`);
      frozen.kill('SIGCONT');
      await once(frozen, 'close');
      assert.equal(said.join(''), 'locked\nUnavailableError\n');
      const [row] = await cluster.database.read(statement('SELECT name FROM partners WHERE id = ?', partner.id));
      assert.notEqual(row?.name, 'written late');
    } finally {
      frozen.kill('SIGKILL');
    }
  });
});
