import assert from 'node:assert/strict';
import { afterEach, describe, it, mock } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway } from '../../support/gateway.ts';

const dayMs = 86_400_000;

describe("a gateway whose machine's clock jumps a day ahead", () => {
  let gateway: TestGateway;
  afterEach(async () => {
    mock.restoreAll();
    await gateway.stop();
  });

  /** The answer of /readyz, and the named part's place in it. */
  async function readiness() {
    const response = await fetch(`http://127.0.0.1:${gateway.app.opsPort}/readyz`);
    const { reasons } = (await response.json()) as { reasons: { part: string }[] };
    return [response.status, reasons.map(({ part }) => part)];
  }

  function jump(ms: number): void {
    const { now } = Date;
    mock.method(Date, 'now', () => now() + ms);
  }

  it('is not ready while the database and the broker both say so, and ready by itself afterwards', async () => {
    gateway = await startGateway();
    assert.deepEqual(await readiness(), [200, []]);
    jump(dayMs);
    // The simulator runs in this process. Its clock stays right.
    await gateway.controls.setClockError({ errorMs: BigInt(-dayMs) }, callTimeout);
    await eventually(async () => assert.deepEqual(await readiness(), [503, ['clock']]), 30_000);
    mock.restoreAll();
    await gateway.controls.setClockError({}, callTimeout);
    await eventually(async () => assert.deepEqual(await readiness(), [200, []]), 40_000);
  });
});
