import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { makeReceiverIdentity, type ReceiverPartner, type ReceiverSays } from '../../src/sandbox/receiver.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folders.ts';

const secretOf = (text: string) => `whsec_${Buffer.from(text).toString('base64')}`;
const lagoon: ReceiverPartner = { id: 'par_1', name: 'Lagoon Invest', secret: secretOf('the first secret') };
const harmattan: ReceiverPartner = { id: 'par_2', name: 'Harmattan Capital', secret: secretOf('the other secret') };
const filled = { object: 'event', version: 3, type: 'order.filled', data: { id: 'ord_1', state: 'filled' } };

describe('the webhook receiver of a sandbox with two partners', () => {
  const folder = temporaryFolder();
  const others = createServer();
  let receiver: ChildProcess;
  let port = 0;
  let authority = '';
  let log = '';
  const said: string[] = [];
  /** How many lines the receiver has said when all are there. */
  let lines = 0;

  before(async () => {
    const { identityFile, authorityFile } = await makeReceiverIdentity(folder);
    authority = readFileSync(authorityFile, 'utf8');
    // The port that it had before is somebody else's.
    others.listen(0, '127.0.0.1');
    await once(others, 'listening');
    receiver = spawn(process.execPath, ['--import', 'tsx', 'src/sandbox/receiver-process.ts'], {
      env: {
        ...process.env,
        MARINA_RECEIVER_IDENTITY_FILE: identityFile,
        MARINA_RECEIVER_PORT: String((others.address() as AddressInfo).port),
      },
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    receiver.stdout?.on('data', (text) => {
      log += text;
    });
    receiver.on('message', (message: ReceiverSays) => {
      if (message.type === 'ready') port = message.port;
      else said.push(message.line);
    });
    await eventually(() => assert.notEqual(port, 0));
  });
  after(() => {
    receiver.kill('SIGKILL');
    others.close();
    rmSync(folder, { recursive: true });
  });

  /** Tells the receiver of partners, and waits until it knows the last of them. */
  async function introduce(...partners: readonly ReceiverPartner[]): Promise<void> {
    for (const partner of partners) receiver.send(partner);
    const [last] = partners.slice(-1);
    assert.ok(last !== undefined);
    await eventually(async () => assert.equal(await send(last.id, { object: 'webhook_test' }, last.secret), 200));
    forget();
  }

  function forget(): void {
    said.length = 0;
    lines = 0;
  }

  /** Sends an event, and waits for its line if it has one. */
  async function send(
    id: string,
    event: object,
    secret: string,
    { body = JSON.stringify(event), at = new Date() } = {},
  ) {
    const signature = new Webhook(secret).sign('evt_1', at, JSON.stringify(event));
    const headers = {
      'webhook-id': 'evt_1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
      'webhook-signature': signature,
    };
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const options = { host: '127.0.0.1', port, path: `/${id}`, method: 'POST', ca: authority, headers };
      const sent = request(options, (response) => resolve(response.resume().statusCode));
      sent.on('error', reject).end(body);
    });
    if (status === 200 || status === 400) {
      lines += 1;
      await eventually(() => assert.equal(said.length, lines));
    }
    return status;
  }

  it('an event before its partner is known is to come again, and is received then', async () => {
    assert.equal(await send(lagoon.id, filled, lagoon.secret), 503);
    assert.equal(await send('', filled, lagoon.secret), 503);
    assert.deepEqual(said, []);
    await introduce(lagoon, harmattan);
    assert.equal(await send(lagoon.id, filled, lagoon.secret), 200);
    assert.deepEqual(said, ['Lagoon Invest: event 3 order.filled ord_1 (evt_1)']);
    await eventually(() =>
      assert.match(log, /^\d{4}-\d\d-\d\dT\S+Z Lagoon Invest: event 3 order\.filled ord_1 \(evt_1\)$/m),
    );
  });

  it('an event is verified with the secret of its own partner', async () => {
    forget();
    assert.equal(await send(harmattan.id, filled, harmattan.secret), 200);
    assert.equal(await send(harmattan.id, filled, lagoon.secret), 400);
    assert.equal(await send(lagoon.id, filled, harmattan.secret), 400);
    assert.deepEqual(said, [
      'Harmattan Capital: event 3 order.filled ord_1 (evt_1)',
      'Harmattan Capital: something that its secret does not verify was refused',
      'Lagoon Invest: something that its secret does not verify was refused',
    ]);
  });

  it('a test event is received as a test', async () => {
    forget();
    assert.equal(await send(lagoon.id, { object: 'webhook_test', type: 'webhook.test' }, lagoon.secret), 200);
    assert.deepEqual(said, ['Lagoon Invest: a test (evt_1)']);
  });

  it('an event that was changed on its way, or that is old, is refused', async () => {
    const body = JSON.stringify({ ...filled, version: 4 });
    assert.equal(await send(lagoon.id, filled, lagoon.secret, { body }), 400);
    assert.equal(await send(lagoon.id, filled, lagoon.secret, { at: new Date(Date.now() - 3_600_000) }), 400);
  });

  it('a body of a mebibyte is read, and one byte more is refused', async () => {
    const body = 'x'.repeat(1_048_576);
    assert.equal(await send(lagoon.id, filled, lagoon.secret, { body }), 400);
    const more = await send(lagoon.id, filled, lagoon.secret, { body: `${body}x` }).catch(() => 413);
    assert.equal(more, 413);
    assert.equal(await send(lagoon.id, filled, lagoon.secret), 200, 'it goes on');
  });

  it('a partner whose secret was rotated is verified with the new one', async () => {
    const rotated = { ...lagoon, secret: secretOf('a third secret') };
    await introduce(rotated);
    assert.equal(await send(lagoon.id, filled, lagoon.secret), 400);
    assert.equal(await send(lagoon.id, filled, rotated.secret), 200);
    assert.equal(await send(harmattan.id, filled, harmattan.secret), 200);
  });

  it('the receiver ends when its parent is gone', async () => {
    const ended = once(receiver, 'exit');
    receiver.disconnect();
    assert.deepEqual(await ended, [0, null]);
  });
});
