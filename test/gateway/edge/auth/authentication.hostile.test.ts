import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { createPartner } from '../../../../src/sandbox/provision.ts';
import { adminClient } from '../../../support/admin.ts';
import type { Cluster, GatewayProcess } from '../../../support/cluster.ts';
import * as authentication from '../../../support/hostile/attacks/authentication.ts';
import { underAttack } from '../../../support/hostile/under-attack.ts';
import { createKey } from '../../../support/keys.ts';

const forMs = 2_000;

async function prepare(cluster: Cluster, gateway: GatewayProcess): Promise<authentication.Prepared> {
  const newKey = async (partnerId: string) => createKey(cluster.database, { partnerId, scopes: [Scope.READ] });
  const newPartner = (name: string) => createPartner(cluster.database, { name });
  const unseen: string[] = [];
  // One for each time an attack may be made; a key that was used is known.
  for (let count = 0; count < 20; count += 1) unseen.push((await newKey(await newPartner(`Unseen ${count}`))).key);
  const partnerId = await newPartner('With a revoked key');
  const [revoked, good] = [await newKey(partnerId), await newKey(partnerId)];
  const admin = adminClient(gateway.adminPort);
  await admin.keys.revokeKey({ keyId: revoked.id }, admin.options);
  admin.close();
  return { unseen, revoked: revoked.key, good: good.key };
}

/** How a request ends whose sender was thrown out. */
const thrownOut = ['ECONNRESET', 'EPIPE', 'closed', 'reset 2', 'reset 7', 'reset 8', 'no answer'];

/** Every guess is answered 401, over gRPC 16, or not at all; and a good key from the same address works. */
function checkGuesses(seen: Record<'rest' | 'grpc', Record<string, number>> & { good: string }): void {
  assertOnly(seen.rest, '401');
  assertOnly(seen.grpc, '16');
  assert.equal(seen.good, '200');
}

function assertOnly(seen: Record<string, number>, answer: string): void {
  const answers = Object.keys(seen).filter((ending) => !thrownOut.includes(ending));
  assert.deepEqual(answers, [answer], JSON.stringify(seen));
}

describe('hostile credentials', () => {
  const attack = underAttack({
    attacks: new URL('../../../support/hostile/attacks/authentication.ts', import.meta.url),
    prepare,
  });
  const guessing = { run: authentication.guessKeys, check: checkGuesses };
  const perSecond = 1_000;

  attack('10,000 guessed keys', { ...guessing, forMs: 7_000, options: { kind: 'unknown', perSecond: 10_000 / 7 } });
  attack('keys with a forged check part', { ...guessing, forMs, options: { kind: 'forged', perSecond } });
  attack('keys of the other environment', { ...guessing, forMs, options: { kind: 'other environment', perSecond } });
  attack('malformed credentials', { ...guessing, forMs, options: { kind: 'malformed', perSecond } });
  attack('a revoked key used 1,000 times a second', {
    run: authentication.useRevoked,
    options: { perSecond },
    forMs,
    check: ({ revoked, good }: Record<'revoked' | 'good', Record<string, number>>) => {
      assertOnly(revoked, '401');
      assert.deepEqual(Object.keys(good), ['200'], 'a refused key spent the rate of the partner');
    },
  });
});
