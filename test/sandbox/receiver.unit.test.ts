import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { makeReceiverIdentity, type ReceiverPartner, type ReceiverSays } from '../../src/sandbox/receiver.ts';

describe('the webhook receiver of a sandbox', () => {
  const folder = mkdtempSync(join(tmpdir(), 'marina-receiver-'));
  let receiver: ChildProcess | undefined;
  after(() => {
    receiver?.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  });

  it('goes on answering when the disk of its log is full', async () => {
    const full = openSync('/dev/full', 'w');
    const { identityFile, authorityFile } = await makeReceiverIdentity(folder);
    const started = spawn(process.execPath, ['--import', 'tsx', 'src/sandbox/receiver-process.ts'], {
      env: { ...process.env, MARINA_RECEIVER_IDENTITY_FILE: identityFile },
      stdio: ['ignore', full, 'inherit', 'ipc'],
    });
    receiver = started;
    const [ready] = (await once(started, 'message')) as [ReceiverSays];
    assert.ok(ready.type === 'ready');
    const partner: ReceiverPartner = { id: 'par_1', name: 'Lagoon Invest', secret: 'whsec_c2VjcmV0' };
    started.send(partner);
    for (let count = 0; count < 3; count += 1) assert.equal(await post(ready.port, partner.id, authorityFile), 400);
    assert.equal(started.exitCode, null);
  });

  function post(port: number, path: string, authority: string): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, path: `/${path}`, method: 'POST', ca: readFileSync(authority) };
      const sent = request(options, (response) => resolve(response.resume().statusCode));
      sent.on('error', reject).end('unsigned');
    });
  }
});
