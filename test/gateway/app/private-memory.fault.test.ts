import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Cluster, type GatewayProcess } from '../../support/cluster.ts';

describe('the memory of a gateway', () => {
  let cluster: Cluster;
  let gateway: GatewayProcess;
  before(async () => {
    cluster = await Cluster.start();
    gateway = await cluster.startGateway();
  });
  after(() => cluster.stop());

  it('is not opened to a debugger by SIGUSR1, and the gateway goes on', async () => {
    process.kill(gateway.pid, 'SIGUSR1');
    await delay(500);
    assert.doesNotMatch(readFileSync(gateway.logPath, 'utf8'), /Debugger listening/);
    const { status } = await fetch(`http://127.0.0.1:${gateway.opsPort}/livez`);
    assert.equal(status, 200);
  });

  it('is in no core dump', () => {
    assert.match(readFileSync(`/proc/${gateway.pid}/coredump_filter`, 'utf8'), /^0+\s$/);
  });
});
