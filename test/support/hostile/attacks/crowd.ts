import type { Attacker } from '../attacker.ts';
import { Http2Wire } from '../http2-wire.ts';

/** A port of the gateway that speaks gRPC. */
export interface Port {
  readonly port: 'grpcPort' | 'adminPort';
  /** Goes on after the attack's time on the connections it has, for a while, to see them closed. */
  readonly untilThrownOut?: boolean;
}

/** An attacker that is thrown out this often gives up. */
const maxConnections = 200;
const thrownOutWithinMs = 2_000;

export interface Crowd {
  readonly connections?: number;
  readonly greeting?: Buffer;
  /** Done once on each connection before the rest. */
  readonly begin?: (wire: Http2Wire, at: number) => Promise<unknown> | unknown;
  /** Done again and again, as long as the connection is good for it. */
  readonly act: (wire: Http2Wire, at: number) => Promise<unknown> | unknown;
  readonly pauseMs?: number;
}

/** Keeps some connections busy with hostile frames, and opens a new one for each that is of no more use. */
export async function crowd(
  attacker: Attacker,
  { port, untilThrownOut }: Port,
  how: Crowd,
): Promise<{ opened: number }> {
  const { connections = 4, greeting, begin, act, pauseMs = 0 } = how;
  let opened = 0;
  const endAt = performance.now() + attacker.leftMs + (untilThrownOut ? thrownOutWithinMs : 0);
  const one = async () => {
    while (attacker.isOn && opened < maxConnections) {
      const at = opened++;
      const wire = new Http2Wire(await attacker.connect(attacker.target[port]), greeting);
      await begin?.(wire, at);
      while (performance.now() < endAt && wire.isOpen && !wire.isStuck) {
        await act(wire, at);
        await pause(pauseMs);
      }
      await pause(20);
    }
  };
  await Promise.all(Array.from({ length: connections }, one));
  return { opened };
}

export function many<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

export function pause(ms = 0): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** So many may be unanswered at once: a client that waits for answers asks no more. */
const maxUnanswered = 200;

/** Does something so many times a second until the attack's time is over, whether or not it was answered. */
export async function paced(
  attacker: Attacker,
  perSecond: number,
  act: (at: number) => Promise<unknown>,
): Promise<void> {
  const startedAt = performance.now();
  const under = new Set<Promise<unknown>>();
  let at = 0;
  while (attacker.isOn) {
    const due = ((performance.now() - startedAt) * perSecond) / 1_000;
    while (at < due && under.size < maxUnanswered) {
      const acting = act(at++);
      under.add(acting);
      void acting.finally(() => under.delete(acting));
    }
    await pause(10);
  }
  await Promise.all(under);
}
