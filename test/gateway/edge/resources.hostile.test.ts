import { describe } from 'node:test';
import * as resources from '../../support/hostile/attacks/resources.ts';
import { underAttack } from '../../support/hostile/under-attack.ts';

const rest = { port: 'restPort' };
const grpc = { port: 'grpcPort' };
const forMs = 2_000;

describe('hostile use of connections', () => {
  const attack = underAttack({ attacks: new URL('../../support/hostile/attacks/resources.ts', import.meta.url) });

  attack('10,050 idle connections from one address, to REST', {
    run: resources.idleSockets,
    options: { ...rest, connections: 10_050 },
    forMs,
    closedWithinMs: 15_000,
  });
  attack('10,050 idle connections from one address, to gRPC', {
    run: resources.idleSockets,
    options: { ...grpc, connections: 10_050 },
    forMs,
    closedWithinMs: 40_000,
  });
  attack('10,050 idle connections from 201 addresses', {
    run: resources.idleSockets,
    options: { ...rest, connections: 10_050, addresses: 201 },
    forMs,
    closedWithinMs: 15_000,
  });
  attack('heads of requests byte by byte (slowloris)', {
    run: resources.slowHeads,
    options: { ...rest, connections: 500 },
    forMs,
    closedWithinMs: 2_000,
  });
  attack('2,000 bodies byte by byte, with a key', {
    run: resources.slowBodies,
    options: { ...rest, connections: 2_000 },
    forMs,
    closedWithinMs: 3_000,
  });
  attack('answers that are not read (slow read)', {
    run: resources.unreadAnswers,
    options: { ...rest, connections: 20 },
    forMs,
  });
  attack('requests sent ahead without end', { run: resources.pipelines, options: { ...rest, connections: 4 }, forMs });
  attack('connections opened and reset without end', {
    run: resources.churn,
    options: { ...rest, connections: 10 },
    forMs,
  });
});
