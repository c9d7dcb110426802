import { describe } from 'node:test';
import * as attacks from './support/attacks/http2-frames.ts';
import { underAttack } from './support/under-attack.ts';

const grpc = { port: 'grpcPort' };

describe('HTTP/2 frames against the gRPC port', () => {
  const attack = underAttack({ attacks: new URL('./support/attacks/http2-frames.ts', import.meta.url) });

  attack('rapid reset, CVE-2023-44487', { run: attacks.rapidReset, options: grpc, closedWithinMs: 2_000 });
});
