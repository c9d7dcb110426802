import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { neededWalls, tryWalls } from '../../src/decoder/decoder.ts';
import { Cluster, type Partner } from '../support/cluster.ts';
import { apply, fourTypes, overRest } from '../support/documents.ts';
import { ready } from '../support/eventually.ts';
import { restCaller } from '../support/gateway.ts';
import { noiseJpeg, noisePng } from '../support/images.ts';
import { missingForSystemd, type Systemd, startSystemd } from '../support/systemd.ts';

const run = promisify(execFile);
const unitPath = 'docs/deploy/marina.service';
const missing = await missingForSystemd();
/** Where the unit's output goes here, since no journal runs. */
const output = '/run/marina.log';

describe('docs/deploy/marina.service', { skip: missing ?? false }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'marina-systemd-'));
  let cluster: Cluster;
  let systemd: Systemd;
  let partner: Partner;
  let isolated: boolean;
  let ports: { restPort: number; opsPort: number };

  before(async () => {
    const walls = await tryWalls();
    isolated = neededWalls.every((wall) => walls.has(wall));
    cluster = await Cluster.start({ MARINA_DECODER_SANDBOX: isolated ? 'required' : 'auto' });
    partner = await cluster.newPartner();
    await run('make', ['build']);
    cpSync('dist', join(folder, 'marina'), { recursive: true });
    mkdirSync(join(folder, 'marina/node_modules'), { recursive: true });
    systemd = await startSystemd({
      folder,
      user: 'marina',
      units: { 'marina.service': `${readFileSync(unitPath, 'utf8')}\n[Service]\nStandardOutput=append:${output}\n` },
      mounts: { '/opt/marina': join(folder, 'marina'), '/opt/marina/node_modules': resolve('node_modules') },
      files: {
        'marina/marina.env': Object.entries(cluster.gatewayVariables)
          .map(([name, value]) => `${name}=${value}\n`)
          .join(''),
      },
    });
  });
  after(async () => {
    await systemd?.stop();
    await cluster?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const show = async (property: string) =>
    (await systemd.systemctl('show', '--value', '-p', property, 'marina.service')).trim();

  it('starts a gateway as its user, behind a filter of system calls, without rights and core dumps', async () => {
    await systemd.systemctl('start', 'marina.service');
    ports = await ready(async () => {
      const text = await systemd.inside('cat', output);
      const line = text.split('\n').find((each) => each.includes('"msg":"ready"'));
      assert.ok(line !== undefined, text);
      return JSON.parse(line);
    }, 20_000);
    const pid = await show('MainPID');
    const status = await systemd.inside('cat', `/proc/${pid}/status`);
    assert.match(status, /^Uid:\t64242\t64242\t64242\t64242$/m);
    assert.match(status, /^Seccomp:\t2$/m);
    assert.match(status, /^NoNewPrivs:\t1$/m);
    assert.match(status, /^CapEff:\t0+$/m);
    assert.match(await systemd.inside('cat', `/proc/${pid}/limits`), /^Max core file size +0 +0 /m);
  });

  it('lets it decode documents, behind the walls that this machine offers', async () => {
    if (isolated) assert.match(await systemd.inside('cat', output), /"msg":"images are decoded behind walls"/);
    const id = await apply(restCaller(ports), partner.key);
    const send = overRest(ports.restPort);
    const files = [await noiseJpeg(800, 600), await noisePng(300, 300)];
    for (const [index, type] of fourTypes.entries()) {
      const { outcome } = await send({ key: partner.key, id, type, file: files[index % 2] ?? Buffer.alloc(0) });
      assert.equal(outcome, 'delivered', type);
    }
  });

  it('refuses a file that is no image, which takes a decoder that runs', async () => {
    const id = await apply(restCaller(ports), partner.key);
    const file = (await noiseJpeg(200, 200)).subarray(0, 4_000);
    const { outcome } = await overRest(ports.restPort)({ key: partner.key, id, type: 'photo', file });
    assert.equal(outcome, 'invalid_document');
  });

  it('stops it in order', async () => {
    await systemd.systemctl('stop', 'marina.service');
    assert.equal(await show('Result'), 'success');
    assert.equal(await show('ExecMainStatus'), '0');
    assert.match(await systemd.inside('cat', output), /"msg":"stopped"/);
  });
});

describe('docs/deploy/marina.service, as systemd reads it', { skip: missing ?? false }, () => {
  it('has nothing that systemd does not know', async () => {
    const { stderr } = await run('systemd-analyze', ['verify', '--man=no', resolve(unitPath)]).catch((error) => error);
    const own = String(stderr)
      .split('\n')
      .filter((line) => line.includes('marina.service') && !line.includes('not executable'));
    assert.deepEqual(own, []);
  });

  it('exposes little, as systemd counts it', async () => {
    await run('systemd-analyze', ['security', '--offline=yes', '--threshold=20', '--no-pager', resolve(unitPath)]);
  });
});
