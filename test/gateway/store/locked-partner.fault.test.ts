import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { statement } from '../../../src/gateway/store/statement.ts';
import { eventually } from '../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../support/gateway.ts';
import { lockPartnerRow } from '../../support/partner-lock.ts';
import { patient } from '../../support/patience.ts';

/** How long the row is locked. `MARINA_TEST_LOCK_SECONDS=40` measures what decision 0010 says. */
const lockedMs = Number(process.env.MARINA_TEST_LOCK_SECONDS ?? 13) * 1_000;
const others = 6;

describe('fills of partners while the row of another partner is locked', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  async function place(partner: TestPartner, quantity: number): Promise<string> {
    const { status, text, body } = await gateway.place(partner, { symbol: 'SIM-REST', quantity });
    assert.equal(status, 201, text);
    return String(body.id);
  }

  const fill = (clientOrderId: string, quantity: number) =>
    gateway.controls.fillOrder({ clientOrderId, quantity: BigInt(quantity) }, callTimeout);

  async function stateOf(id: string): Promise<string> {
    const [row] = await gateway.database.read(statement('SELECT state FROM orders WHERE id = ?', id));
    return String(row?.state);
  }

  /** How long after it a fill is applied, in milliseconds. */
  async function latency(partner: TestPartner, quantity: number): Promise<number> {
    const id = await place(partner, quantity);
    const began = performance.now();
    await fill(id, quantity);
    while ((await stateOf(id)) !== 'filled') {
      assert.ok(performance.now() - began < lockedMs + 60_000, 'a fill is never applied');
      await delay(5);
    }
    return performance.now() - began;
  }

  const at = (sorted: readonly number[], part: number) => sorted[Math.floor((sorted.length - 1) * part)] ?? 0;

  it('are applied at once, and those of the locked partner when it is free, each once', async (context) => {
    const locked = await gateway.newPartner();
    const partners: TestPartner[] = [];
    for (let count = 0; count < others; count += 1) partners.push(await gateway.newPartner());
    const waiting: string[] = [];
    for (let quantity = 1; quantity <= 20; quantity += 1) waiting.push(await place(locked, quantity));
    for (const partner of partners) await latency(partner, 1);

    const lock = await lockPartnerRow(gateway.databaseUrl, locked.id);
    const until = performance.now() + lockedMs;
    const latencies: number[] = [];
    try {
      const fillLocked = async () => {
        for (const [index, id] of waiting.entries()) {
          await fill(id, index + 1);
          await delay((lockedMs * 0.9) / waiting.length);
        }
      };
      const fillOthers = async (partner: TestPartner) => {
        for (let quantity = 2; performance.now() < until; quantity += 1) {
          latencies.push(await latency(partner, quantity));
          await delay(50);
        }
      };
      await Promise.all([fillLocked(), ...partners.map(fillOthers)]);
    } finally {
      await lock.release();
    }
    const sorted = latencies.sort((one, other) => one - other);
    const [median, p99, longest] = [at(sorted, 0.5), at(sorted, 0.99), at(sorted, 1)].map(Math.round);
    context.diagnostic(`${sorted.length} fills: median ${median} ms, p99 ${p99} ms, longest ${longest} ms`);
    assert.ok((p99 ?? 0) < patient(1_000), `one fill in a hundred is applied after ${p99} ms`);

    await eventually(async () => {
      for (const id of waiting) assert.equal(await stateOf(id), 'filled');
    }, 30_000);
    const [wrong] = await gateway.database.read(
      statement('SELECT COUNT(*) AS wrong FROM orders WHERE partner_id = ? AND filled_quantity <> quantity', locked.id),
    );
    assert.equal(Number(wrong?.wrong), 0, 'a fill was applied twice or not at all');
  });
});
