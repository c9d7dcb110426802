import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe } from 'node:test';
import { AccountStatus } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';
import { createPartner, linkAccount } from '../../../src/sandbox/provision.ts';
import { type Cluster, callTimeout } from '../../support/cluster.ts';
import * as fairness from '../../support/hostile/attacks/fairness.ts';
import { underAttack } from '../../support/hostile/under-attack.ts';
import { createKey } from '../../support/keys.ts';

const forMs = 2_500;

async function prepare(cluster: Cluster): Promise<fairness.FairnessOptions['prepared']> {
  const partnerId = await createPartner(cluster.database, { name: 'With the usual limits' });
  const { key } = await createKey(cluster.database, { partnerId, scopes: [Scope.READ, Scope.TRADE] });
  const account = `F${randomBytes(6).toString('hex').toUpperCase()}`;
  await linkAccount(cluster.database, { partnerId, account });
  await cluster.controls.setAccount({ account, status: AccountStatus.ACTIVE }, callTimeout);
  return { usualKey: key, usualAccount: account };
}

/** Nothing but these answers was given. */
function only(...statuses: string[]) {
  return (seen: Record<string, number>) => {
    const others = Object.keys(seen).filter((status) => !statuses.includes(status));
    assert.deepEqual(others, [], JSON.stringify(seen));
  };
}

describe('a greedy partner', () => {
  const attack = underAttack({
    attacks: new URL('../../support/hostile/attacks/fairness.ts', import.meta.url),
    prepare,
  });

  attack('50 times its rate', { run: fairness.aboveItsRate, forMs, check: only('200', '429') });
  attack('more orders at once than may be under way', {
    run: fairness.ordersAtOnce,
    forMs,
    check: only('201', '429'),
  });
  attack('40 balances at once', { run: fairness.balancesAtOnce, forMs, check: only('200') });
});
