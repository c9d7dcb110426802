import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { it } from 'node:test';
import { promisify } from 'node:util';
import { withoutOurs } from '../../src/sandbox/processes.ts';
import { whyNoAcceptor } from '../support/quickfix.ts';

const skip = (await whyNoAcceptor()) ?? false;

it('the demo of FIX shows the life of an order, with the messages beside it', { skip, timeout: 300_000 }, async () => {
  const { stdout } = await promisify(execFile)('make', ['demo', 'BROKER=fix'], { env: withoutOurs(process.env) });
  assert.match(stdout, /Everything held/);
  const rows = [
    /POST \/v1\/orders +│ → NewOrderSingle/,
    /order\.partially_filled, 100 filled/,
    /← ExecutionReport Trade/,
    /→ ResendRequest/,
    /43=Y .*1=/,
    /DELETE .* │ → OrderCancelRequest/,
    /← ExecutionReport Canceled/,
  ];
  for (const row of rows) assert.match(stdout, row);
  assert.equal(stdout.match(/→ NewOrderSingle/g)?.length, 1);
});
