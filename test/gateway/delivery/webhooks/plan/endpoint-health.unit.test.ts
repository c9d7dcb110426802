import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EndpointQueue, type NextTry } from '../../../../../src/gateway/delivery/webhooks/plan/endpoint-queue.ts';
import {
  type AttemptResult,
  type EndpointHealth,
  freshHealth,
  healthAfter,
} from '../../../../../src/gateway/delivery/webhooks/rules.ts';
import type { Attempt, Endpoint } from '../../../../../src/gateway/delivery/webhooks/table.ts';
import { fc } from '../../../../support/properties.ts';
import { delivery, endpoint } from '../../../../support/webhook-rows.ts';

const paused: EndpointHealth = { streak: 3, pausedAt: 0, probeAt: 0, probedVersion: 0n, failingSince: 0 };

function healthOf({ streak, pausedAt, probeAt, probedVersion, failingSince }: EndpointHealth): EndpointHealth {
  return { streak, pausedAt, probeAt, probedVersion, failingSince };
}

/** An endpoint's row, and the queue of the process that sends to it. Steps that cannot be done now do nothing. */
class Served {
  row: Endpoint = endpoint();
  readonly queue = new EndpointQueue(this.row, performance.now());
  readonly underWay: { readonly next: NextTry; readonly generation: number }[] = [];
  readonly ended: { readonly attempt: Attempt; readonly generation: number }[] = [];
  #version = 0;

  begin(): void {
    this.#version += 1;
    const part = this.queue.isPaused ? 'probe' : 'new';
    this.queue.take({ part, after: 0n, most: 1_000 }, [delivery(this.#version)]);
    const next = this.queue.next(0);
    if (typeof next === 'object') this.underWay.push({ next, generation: this.queue.endpoint.generation });
  }

  end(outcome: AttemptResult): void {
    const ended = this.underWay.shift();
    if (ended === undefined) return;
    const { next, generation } = ended;
    const { version } = next.delivery;
    const answer = { outcome, status: null, errorClass: null, durationMs: 0 };
    const attempt = { partnerId: 'par_1', version, number: 1, at: 0, isProbe: next.isProbe, ...answer };
    this.queue.ended(next, attempt, generation);
    this.ended.push({ attempt, generation });
  }

  /** Attempts to a former URL are recorded and say nothing of the present one. */
  record(): void {
    const made = this.ended.splice(0);
    if (made.length === 0) return;
    let health = healthOf(this.row);
    for (const { attempt, generation } of made) {
      if (generation === this.row.generation) health = healthAfter(health, attempt);
    }
    this.change(health);
    this.queue.recorded(
      made.map(({ attempt }) => attempt.version),
      this.row,
    );
  }

  change(change: Partial<Endpoint>): void {
    this.row = { ...this.row, ...change, revision: this.row.revision + 1n };
  }

  move(): void {
    this.change({ ...freshHealth, generation: this.row.generation + 1 });
  }

  poll(): void {
    this.queue.refresh(this.row, performance.now());
  }
}

const steps: Readonly<Record<string, (served: Served) => void>> = {
  begin: (served) => served.begin(),
  delivered: (served) => served.end('delivered'),
  'endpoint failed': (served) => served.end('endpoint-failed'),
  'event failed': (served) => served.end('event-failed'),
  record: (served) => served.record(),
  moved: (served) => served.move(),
  'moved and known': (served) => {
    served.move();
    served.poll();
  },
  resumed: (served) => served.change(freshHealth),
  poll: (served) => served.poll(),
};

describe('the health of an endpoint', () => {
  it('the health of an endpoint is that of its row once all attempts are recorded, whatever came before, and an operator’s change counts', () => {
    const step = fc.constantFrom(...Object.keys(steps));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (names) => {
        const served = new Served();
        for (const name of names) steps[name]?.(served);
        while (served.underWay.length > 0) served.end('delivered');
        served.record();
        served.poll();
        assert.deepEqual(healthOf(served.queue.health), healthOf(served.row));
        for (const health of [paused, freshHealth]) {
          served.change(health);
          served.poll();
          assert.deepEqual(healthOf(served.queue.health), health);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});
