import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { Cluster, GatewayProcess, Partner } from '../../../support/cluster.ts';
import { apply, fourTypes, overGrpc, overRest } from '../../../support/documents.ts';
import * as documents from '../../../support/hostile/attacks/documents.ts';
import { largePng, pictureBombs } from '../../../support/hostile/bombs.ts';
import type { NamedCall } from '../../../support/hostile/honest.ts';
import { underAttack } from '../../../support/hostile/under-attack.ts';
import { noisePng } from '../../../support/images.ts';

const forMs = 4_000;
/** An upload waits for the picture that is being decoded, and for what other partners used less of the decoders. */
const uploadWithinMs = 5_000;

/** An honest partner sends the same small pictures again and again, each when the one before was answered. */
async function uploads(gateway: GatewayProcess, partner: Partner): Promise<NamedCall[]> {
  const application = await apply(gateway.request, partner.key);
  const file = await noisePng();
  return [overRest(gateway.restPort), overGrpc(gateway.grpcPort)].map((send, protocol) => {
    let isSending = false;
    return [
      protocol === 0 ? 'PUT document' : 'gRPC SendDocument',
      async () => {
        if (isSending) return;
        isSending = true;
        const type = fourTypes[protocol] ?? 'photo';
        const { outcome } = await send({ key: partner.key, id: application, type, file }).finally(() => {
          isSending = false;
        });
        assert.equal(outcome, 'delivered');
      },
      uploadWithinMs,
    ] as const;
  });
}

async function prepare(_: Cluster, gateway: GatewayProcess, { key }: Partner) {
  const applications: string[] = [];
  // Their accounts are not opened when all four documents are there, so that they go on taking files.
  const fields = { last_name: 'SIM-WAIT' };
  for (let count = 0; count < 10; count += 1) applications.push(await apply(gateway.request, key, fields));
  const files = { large: [await largePng()], bombs: await pictureBombs() };
  return { applications, files };
}

/** Every file is refused, unread perhaps, or is sent as it should be; nothing fails on our side. */
function checkAnswers(seen: Record<string, number>): void {
  const known = ['200', '409', '422', '429', '503', 'ECONNRESET', 'EPIPE'];
  assert.deepEqual(
    Object.keys(seen).filter((status) => !known.includes(status)),
    [],
    JSON.stringify(seen),
  );
}

describe('hostile documents', () => {
  const attack = underAttack({
    attacks: new URL('../../../support/hostile/attacks/documents.ts', import.meta.url),
    honest: uploads,
    prepare,
  });
  const peakMiB = 250;

  attack('40 pictures of 8,000 × 8,000 pixels at once', {
    run: documents.sendFiles,
    options: { file: 'large', atOnce: 40 },
    forMs,
    peakMiB,
    check: checkAnswers,
  });
  attack('pictures that are bombs', {
    run: documents.sendFiles,
    options: { file: 'bombs', atOnce: 10 },
    forMs,
    peakMiB,
    check: checkAnswers,
  });
  attack('950 uploads held open without a key', {
    run: documents.heldUploads,
    options: { port: 'grpcPort' },
    forMs,
    peakMiB,
  });
});
