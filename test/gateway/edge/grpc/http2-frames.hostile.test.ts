import { describe } from 'node:test';
import * as http2 from '../../../support/hostile/attacks/http2-frames.ts';
import { underAttack } from '../../../support/hostile/under-attack.ts';

const options = { port: 'grpcPort' };
const forMs = 1_500;
/** A client that floods is disconnected; a connection that is not read meanwhile is closed as idle. */
const thrownOut = { options: { ...options, untilThrownOut: true }, forMs, closedWithinMs: 25_000 };
/** An amount below the limit costs no connection. */
const tolerated = { options, forMs };
/** A client without a key that sends nothing more may stay this long. */
const silent = { options, forMs, closedWithinMs: 40_000 };

describe('hostile HTTP/2 frames on the gRPC port', () => {
  const attack = underAttack({ attacks: new URL('../../../support/hostile/attacks/http2-frames.ts', import.meta.url) });

  attack('rapid reset (CVE-2023-44487)', { run: http2.rapidReset, ...thrownOut });
  attack('MadeYouReset (CVE-2025-8671)', { run: http2.madeYouReset, ...thrownOut });
  attack('CONTINUATION flood (CVE-2024-27316)', { run: http2.continuationFlood, ...thrownOut });
  attack('CONTINUATION broken off (CVE-2024-27983)', { run: http2.brokenContinuation, ...thrownOut });
  attack('data dribble (CVE-2019-9511)', { run: http2.dataDribble, ...tolerated });
  attack('ping flood (CVE-2019-9512)', { run: http2.pingFlood, ...thrownOut });
  attack('resource loop by priorities (CVE-2019-9513)', { run: http2.priorityFlood, ...tolerated });
  attack('reset flood (CVE-2019-9514)', { run: http2.resetFlood, ...thrownOut });
  attack('settings flood (CVE-2019-9515)', { run: http2.settingsFlood, ...thrownOut });
  attack('empty header names (CVE-2019-9516)', { run: http2.emptyHeaders, ...thrownOut });
  attack('internal data buffering (CVE-2019-9517)', { run: http2.internalBuffering, ...tolerated });
  attack('empty frames flood (CVE-2019-9518)', { run: http2.emptyFrames, ...thrownOut });
  attack('HPACK bomb (CVE-2016-6581)', { run: http2.hpackBomb, ...thrownOut });
  attack('HPACK table sizes', { run: http2.hpackTableSizes, ...thrownOut });
  attack('broken HPACK (CVE-2025-59465)', { run: http2.brokenHpack, ...thrownOut });
  attack('window overflow (CVE-2026-21714)', { run: http2.windowOverflow, ...thrownOut });
  attack('DATA on streams that have ended', { run: http2.dataWithoutStream, ...thrownOut });
  attack('oversized and misfit frames', { run: http2.oversizedFrames, ...thrownOut });
  attack('unknown frames', { run: http2.unknownFrames, ...tolerated });
  attack('GOAWAY, then further frames (CVE-2025-23085)', { run: http2.goaways, ...tolerated });
  attack('malformed heads (CVE-2026-48068)', { run: http2.strangeHeads, ...tolerated });
  attack('wrong stream numbers', { run: http2.strangeStreamNumbers, ...thrownOut });
  attack('more streams than may be', { run: http2.tooManyStreams, ...tolerated });
  attack('silence: no HTTP/2, half a header block, half-open streams', { run: http2.silence, ...silent });
});
