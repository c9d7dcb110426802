import { describe } from 'node:test';
import { adminClient } from '../../support/admin.ts';
import type { GatewayProcess, Partner } from '../../support/cluster.ts';
import * as operators from '../../support/hostile/attacks/operator-port.ts';
import type { NamedCall } from '../../support/hostile/honest.ts';
import { underAttack } from '../../support/hostile/under-attack.ts';

const options = { port: 'adminPort' };
const forMs = 1_500;
const thrownOut = { options: { ...options, untilThrownOut: true }, forMs, closedWithinMs: 25_000 };
const tolerated = { options, forMs };

/** Operators work meanwhile, too. */
async function operatorCalls(gateway: GatewayProcess, { id: partnerId }: Partner): Promise<NamedCall[]> {
  const admin = adminClient(gateway.adminPort);
  return [['ListKeys of an operator', async () => void (await admin.keys.listKeys({ partnerId }, admin.options))]];
}

describe("unauthenticated callers on the operators' port", () => {
  const attack = underAttack({
    attacks: new URL('../../support/hostile/attacks/operator-port.ts', import.meta.url),
    honest: operatorCalls,
  });

  attack("rapid reset on the operators' port", { run: operators.rapidReset, ...thrownOut });
  attack("MadeYouReset on the operators' port", { run: operators.madeYouReset, ...thrownOut });
  attack("CONTINUATION flood on the operators' port", { run: operators.continuationFlood, ...thrownOut });
  attack("ping flood on the operators' port", { run: operators.pingFlood, ...thrownOut });
  attack("HPACK bomb on the operators' port", { run: operators.hpackBomb, ...thrownOut });
  attack("malformed heads on the operators' port", { run: operators.strangeHeads, ...tolerated });
  attack("wrong content types on the operators' port", { run: operators.wrongContentTypes, ...tolerated });
  attack("compressed bombs on the operators' port", { run: operators.bombsOnUnary, ...tolerated });
  attack("compressed bombs on the operators' reflection", { run: operators.bombsOnReflection, ...tolerated });
  attack("oversized messages on the operators' port", { run: operators.oversizedMessages, ...tolerated });
  attack("1,000 idle connections to the operators' port", {
    run: operators.idleSockets,
    options: { ...options, connections: 1_000 },
    forMs,
    closedWithinMs: 40_000,
  });
  attack('1,000 idle connections to the operations port', {
    run: operators.idleSockets,
    options: { port: 'opsPort', connections: 1_000 },
    forMs,
    closedWithinMs: 65_000,
  });
});
