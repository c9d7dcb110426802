import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway } from '../../../support/gateway.ts';

describe('a broker that has fewer reports than were applied', () => {
  it('is in trouble, and nothing it reports is taken for old: all of it is applied once the numbers fit again', async () => {
    const gateway = await startGateway();
    try {
      const partner = await gateway.newPartner();
      const troubles = async () => {
        const response = await fetch(`http://127.0.0.1:${gateway.app.opsPort}/readyz`);
        const { degraded } = (await response.json()) as { degraded: { part: string }[] };
        return degraded.map(({ part }) => part);
      };
      /** Another process takes the stream over for a moment, and leaves this position. */
      const moveTo = async (position: number) => {
        await gateway.database.write(
          statement(
            `INSERT INTO positions (name, position) VALUES ('order-reports', ?)
              ON DUPLICATE KEY UPDATE position = VALUES(position)`,
            String(position),
          ),
        );
        await gateway.database.write(
          statement(
            "UPDATE leases SET holder = 'another', fence = fence + 1, expires_at = NOW(3) WHERE name = 'order-reports'",
          ),
        );
      };
      const filled = (id: string) =>
        eventually(async () => {
          const { body } = await gateway.rest('GET', `/v1/orders/${id}`, { key: partner.key });
          assert.equal(body.state, 'filled');
        }, 30_000);
      await filled((await gateway.place(partner, { symbol: 'SIM-FILL' })).body.id);
      await moveTo(1_000_000);
      await eventually(async () => assert.deepEqual(await troubles(), ['order-reports']), 30_000);
      const { body: placed } = await gateway.place(partner, { symbol: 'SIM-FILL' });
      await moveTo(0);
      await filled(placed.id);
      await eventually(async () => assert.deepEqual(await troubles(), []), 30_000);
    } finally {
      await gateway.stop();
    }
  });
});
