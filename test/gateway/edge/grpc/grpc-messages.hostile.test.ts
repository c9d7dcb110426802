import assert from 'node:assert/strict';
import { describe } from 'node:test';
import * as grpc from '../../../support/hostile/attacks/grpc-messages.ts';
import { underAttack } from '../../../support/hostile/under-attack.ts';

const options = { port: 'grpcPort' };
const forMs = 1_500;

/** How calls ended that are no gRPC as it should be: never by a fault of the server. */
function checkEndings(endings: Record<string, number>): void {
  assert.ok(Object.keys(endings).length > 0, 'calls were made');
  // 2 is UNKNOWN: what gRPC says of an error that nobody described.
  for (const fault of ['0', '2', 'no answer'])
    assert.equal(endings[fault] ?? 0, 0, `${fault}: ${JSON.stringify(endings)}`);
}

describe('hostile messages on the gRPC port', () => {
  const attack = underAttack({
    attacks: new URL('../../../support/hostile/attacks/grpc-messages.ts', import.meta.url),
  });

  attack('wrong content types behind 160 open uploads', { run: grpc.wrongContentTypes, options, forMs });
  attack('compressed bombs on reflection', { run: grpc.bombsOnReflection, options, forMs });
  attack('compressed bombs on calls of one message', { run: grpc.bombsOnUnary, options, forMs });
  attack('compressed bombs on health', { run: grpc.bombsOnHealth, options, forMs });
  attack('compressed bombs on uploads', { run: grpc.bombsOnUploads, options, forMs });
  attack('broken compression (CVE-2026-48069)', { run: grpc.brokenCompression, options, forMs, check: checkEndings });
  attack('oversized messages (CVE-2024-37168)', { run: grpc.oversizedMessages, options, forMs });
  attack('many messages where one is asked for', { run: grpc.manyMessages, options, forMs });
  attack('messages in frames of one byte (CVE-2026-84304)', { run: grpc.tinyFrames, options, forMs });
  attack('strange metadata', { run: grpc.strangeMetadata, options, forMs, check: checkEndings });
  attack('strange timeouts', { run: grpc.strangeTimeouts, options, forMs });
  attack('unknown methods', { run: grpc.unknownMethods, options, forMs, check: checkEndings });
  attack('streams that stand still', {
    run: grpc.standingStreams,
    options: { ...options, endedWithinMs: 40_000 },
    check: (left: Record<string, number>) => {
      assert.deepEqual(
        Object.entries(left).filter(([, count]) => count > 0),
        [],
        'streams were not ended within 40 s',
      );
    },
  });
});
