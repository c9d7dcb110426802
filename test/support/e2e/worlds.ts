import assert from 'node:assert/strict';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';
import { Call, WireFault } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { callTimeout, type TestGateway, type TestPartner } from '../gateway.ts';
import { createKey } from '../keys.ts';
import { goodBody } from './calls.ts';

/** A circumstance that gets a request refused although nothing in the request is wrong. */
export type Circumstance = 'rate' | 'credential' | 'scope' | 'place' | 'same key' | 'similar' | 'limit';

/** The Idempotency-Key of an order that was placed before, where that is the circumstance. */
export const usedKey = 'a key that was used for another order';

/** Makes a partner in some circumstances, the key of which was never seen by the gateway. */
export async function partnerIn(gateway: TestGateway, circumstances: ReadonlySet<Circumstance>): Promise<TestPartner> {
  const { database, controls } = gateway;
  const partner = await gateway.newPartner();
  if (circumstances.has('same key')) {
    const placed = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 7 }, usedKey);
    assert.equal(placed.status, 201, placed.text);
  }
  if (circumstances.has('similar')) {
    const { account } = partner;
    await controls.injectFault({ call: Call.SUBMIT_ORDER, account, fault: WireFault.HANG }, callTimeout);
    const placed = await gateway.place(partner, goodBody(account));
    assert.equal(placed.body.state, 'uncertain', placed.text);
  }
  const change = (sql: string) => database.write(statement(`UPDATE partners SET ${sql} WHERE id = ?`, partner.id));
  if (circumstances.has('limit')) {
    await change(
      'orders_kobo_per_day = (SELECT COALESCE(SUM(used_kobo), 0) FROM usage_days WHERE partner_id = partners.id)',
    );
  }
  if (circumstances.has('place')) await change('requests_under_way = 0');
  if (circumstances.has('rate')) await change('requests_burst = 0, requests_per_second = 0');
  const scopes = circumstances.has('scope') ? [Scope.APPLY] : [Scope.READ, Scope.TRADE];
  const { id: keyId, key } = await createKey(database, { partnerId: partner.id, scopes });
  if (circumstances.has('credential')) {
    await database.write(statement('UPDATE api_keys SET revoked_at = created_at WHERE id = ?', keyId));
  }
  return { ...partner, key, keyId };
}
