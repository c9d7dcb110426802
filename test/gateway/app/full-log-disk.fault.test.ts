import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, it, type TestContext } from 'node:test';
import { Cluster, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { scrape } from '../../support/metrics.ts';
import { mountSmallDisk, type SmallDisk } from '../../support/small-disk.ts';

describe('a gateway whose log cannot be written', () => {
  let cluster: Cluster;
  let partner: Partner;
  let disk: SmallDisk | undefined;
  before(async () => {
    cluster = await Cluster.start();
    partner = await cluster.newPartner();
  });
  afterEach(async () => {
    await disk?.remove();
    disk = undefined;
  });
  after(() => cluster.stop());

  async function smallDisk(test: TestContext): Promise<SmallDisk | undefined> {
    disk = await mountSmallDisk(64);
    if (disk === undefined) test.skip('mounting a file system is not allowed here');
    return disk;
  }

  /** Answers at once, whatever became of the log. */
  async function ops({ opsPort }: GatewayProcess, path: string): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${opsPort}${path}`, { signal: AbortSignal.timeout(1_000) });
    return response.text();
  }

  async function serves(gateway: GatewayProcess): Promise<void> {
    assert.match(await ops(gateway, '/livez'), /live/);
    const placed = await gateway.place(partner, { symbol: 'SIM-REST' });
    assert.equal(placed.status, 201, JSON.stringify(placed.body));
  }

  it('because its disk is full serves on, says so, and writes on when there is room again', async (test) => {
    const { path, fill, free } = (await smallDisk(test)) ?? {};
    if (path === undefined || fill === undefined || free === undefined) return;
    const gateway = await cluster.startGateway({}, undefined, join(path, 'gateway.log'));
    await serves(gateway);
    fill();
    await serves(gateway);
    await eventually(async () => {
      await serves(gateway); // The file's last block has room for some lines.
      assert.match(await ops(gateway, '/readyz'), /"status":"ready".*"part":"log"/);
    });
    const { value } = await scrape(gateway.opsPort);
    assert.ok(value('marina_part_trouble_seconds', { part: 'log' }) > 0, 'for the alert');
    const { body: last } = await gateway.place(partner, { symbol: 'SIM-REST' });

    free();
    await eventually(async () => {
      const line = gateway.logged().find(({ objectId, msg }) => objectId === last.id && msg === 'request');
      assert.ok(line !== undefined, 'what waited is written');
      assert.doesNotMatch(await ops(gateway, '/readyz'), /"part":"log"/);
    });
    await serves(gateway);
    assert.deepEqual(await gateway.stop(), { code: 0, signal: null });
    assert.equal(gateway.logged().at(-1)?.msg, 'stopped', 'the last lines are written before it ends');
  });

  it('because its disk is full stops in order all the same', async (test) => {
    const { path, fill } = (await smallDisk(test)) ?? {};
    if (path === undefined || fill === undefined) return;
    const gateway = await cluster.startGateway({}, undefined, join(path, 'gateway.log'));
    fill();
    await serves(gateway);
    assert.deepEqual(await gateway.stop(), { code: 0, signal: null });
  });

  it('because nobody reads it any more serves on, and stops in order', async () => {
    const path = join(cluster.folder, 'pipe');
    execFileSync('mkfifo', [path]);
    // Both ends, so that opening it waits for nobody.
    const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    const gateway = await cluster.startGateway({}, undefined, path);
    await eventually(async () => {
      await serves(gateway); // Until the pipe is full.
      assert.match(await ops(gateway, '/readyz'), /"status":"ready".*"part":"log"/);
    }, 60_000);

    const bytes = Buffer.alloc(1024 * 1024);
    let text = '';
    const { body: last } = await gateway.place(partner, { symbol: 'SIM-REST' });
    await eventually(() => {
      text += bytes.subarray(0, readSync(reader, bytes)).toString();
      assert.ok(text.includes(`"objectId":"${last.id}"`), 'the reader is back, and gets what waited');
    });
    for (const line of text.slice(0, text.lastIndexOf('\n')).split('\n')) JSON.parse(line);

    closeSync(reader);
    await serves(gateway);
    await serves(gateway);
    assert.deepEqual(await gateway.stop(), { code: 0, signal: null });
    rmSync(path);
  });
});
