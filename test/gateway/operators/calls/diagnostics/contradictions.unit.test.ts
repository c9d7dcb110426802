import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openContradictions } from '../../../../../src/gateway/operators/calls/diagnostics/contradictions.ts';

const now = Date.UTC(2026, 10, 2, 3, 0);
const rowOf = (partner: number, prefix: string, count: number, ageMs: number) => ({
  ...{ partner_id: `par_${partner}`, prefix, count: String(count), oldest: new Date(now - ageMs) },
});
const kinds = ['order', 'application', 'allocation', 'withdrawal'];
const none = kinds.map((kind) => ({ kind, partner: 'other', count: 0 }));

describe('the figures of open contradictions', () => {
  it('have a figure of 0 for each kind if none is open, so that the alert knows that the replica has figures', () => {
    assert.deepEqual(openContradictions([], now), { count: 0, oldestMs: 0, byPartner: none });
  });

  it('name 20 partners, with each of their kinds, and add up the others by kind', () => {
    const rows = [
      ...Array.from({ length: 22 }, (_, partner) => rowOf(partner, 'ord', 3, partner * 1_000)),
      ...[rowOf(0, 'wdr', 1, 90_000), rowOf(21, 'alc', 2, 5)],
    ];
    const { count, oldestMs, byPartner } = openContradictions(rows, now);
    assert.deepEqual([count, oldestMs], [69, 90_000]);
    const own = byPartner.filter(({ partner }) => partner !== 'other');
    assert.equal(new Set(own.map(({ partner }) => partner)).size, 20);
    assert.deepEqual(
      own.filter(({ partner }) => partner === 'par_0').map(({ kind, count: of }) => [kind, of]),
      [
        ['order', 3],
        ['withdrawal', 1],
      ],
    );
    assert.deepEqual(
      byPartner.filter(({ partner }) => partner === 'other').map(({ kind, count: of }) => [kind, of]),
      [
        ['order', 6],
        ['application', 0],
        ['allocation', 2],
        ['withdrawal', 0],
      ],
    );
  });

  it('are never of the time to come, if a clock was ahead', () => {
    assert.equal(openContradictions([rowOf(1, 'ord', 1, -5_000)], now).oldestMs, 0);
  });
});
