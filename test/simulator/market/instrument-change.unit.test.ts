import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { InstrumentKind } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { SetInstrumentRequestSchema } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { changedInstrument } from '../../../src/simulator/market/instrument-change.ts';
import { dailyBand } from '../../../src/simulator/market/prices.ts';
import type { InstrumentState } from '../../../src/simulator/model.ts';
import { World } from '../../../src/simulator/world.ts';

const own: InstrumentState = {
  ...{ symbol: 'OWN', name: 'Own Plc', kind: InstrumentKind.ETF, lowerKobo: 900, upperKobo: 1_100, quoteKobo: 1_010 },
  ...{ lastKobo: 1_020, halted: true, pinned: false, position: 4 },
};
const present = { pinned: true };

interface Given {
  name?: string;
  kind?: number;
  lastPriceKobo?: bigint;
  lowerPriceKobo?: bigint;
  upperPriceKobo?: bigint;
  halted?: boolean;
  moves?: boolean;
}

function change(given: Given, before: Partial<InstrumentState> | null = {}): InstrumentState {
  const world = new World(7);
  world.instruments.set('OTHER', { ...own, symbol: 'OTHER' });
  if (before !== null) world.instruments.set('OWN', { ...own, ...before });
  const { halted = false, moves = false, ...instrument } = given;
  return changedInstrument(
    world,
    create(SetInstrumentRequestSchema, { halted, moves, instrument: { symbol: 'OWN', ...instrument } }),
  );
}

describe('a control’s change of a stock', () => {
  it('fields that are absent stay, and whether it is halted is always said', () => {
    assert.deepEqual(change({ halted: true }), { ...own, pinned: false });
    assert.deepEqual(change({}), { ...own, halted: false });
    assert.deepEqual(change({ name: 'New', kind: InstrumentKind.EQUITY, halted: true }), {
      ...own,
      name: 'New',
      kind: InstrumentKind.EQUITY,
    });
  });

  it('a price becomes the quoted and the last one, and moves the band unless a band is given too', () => {
    const { lowerKobo, upperKobo } = dailyBand(2_000);
    const moved = change({ lastPriceKobo: 2_000n });
    assert.deepEqual(
      [moved.quoteKobo, moved.lastKobo, moved.lowerKobo, moved.upperKobo, moved.pinned],
      [2_000, 2_000, lowerKobo, upperKobo, true],
    );
    const half = change({ lastPriceKobo: 2_000n, lowerPriceKobo: 1_500n });
    assert.deepEqual([half.lowerKobo, half.upperKobo], [1_500, upperKobo]);
    const other = change({ lastPriceKobo: 2_000n, upperPriceKobo: 2_500n });
    assert.deepEqual([other.lowerKobo, other.upperKobo], [lowerKobo, 2_500]);
  });

  it('a band alone leaves the prices, and pins them', () => {
    const narrow = change({ lowerPriceKobo: 1_000n, upperPriceKobo: 1_000n });
    assert.deepEqual(
      [narrow.lowerKobo, narrow.upperKobo, narrow.quoteKobo, narrow.lastKobo, narrow.pinned],
      [1_000, 1_000, 1_010, 1_020, true],
    );
    for (const given of [{ lowerPriceKobo: 950n }, { upperPriceKobo: 1_050n }])
      assert.equal(change(given).pinned, true);
  });

  it('a pinned price stays pinned until a control lets it move', () => {
    assert.equal(change({}, present).pinned, true);
    assert.equal(change({ moves: true }, present).pinned, false);
    assert.equal(change({ moves: true, lastPriceKobo: 2_000n }).pinned, false);
    assert.equal(change({}).pinned, false);
  });

  it('a new stock needs a price, comes last, and is an equity with its symbol for a name unless it says otherwise', () => {
    const { lowerKobo, upperKobo } = dailyBand(500);
    assert.deepEqual(change({ lastPriceKobo: 500n }, null), {
      ...{
        symbol: 'OWN',
        name: 'OWN',
        kind: InstrumentKind.EQUITY,
        lowerKobo,
        upperKobo,
        quoteKobo: 500,
        lastKobo: 500,
      },
      ...{ halted: false, pinned: true, position: 1 },
    });
  });

  it('a change that makes no sense is refused by its field', () => {
    const refused = (given: Given) => {
      try {
        change(given);
        return undefined;
      } catch (error) {
        return /value of (\S+) is/.exec((error as Error).message)?.[1];
      }
    };
    const cases: [Given, string | undefined][] = [
      [{ name: 'x'.repeat(200) }, undefined],
      [{ name: 'x'.repeat(201) }, 'instrument.name'],
      [{ kind: 99 }, 'instrument.kind'],
      [{ lastPriceKobo: -1n }, 'instrument.last_price_kobo'],
      [{ lowerPriceKobo: -1n }, 'instrument.lower_price_kobo'],
      [{ upperPriceKobo: -1n }, 'instrument.upper_price_kobo'],
      [{ lowerPriceKobo: 1_101n }, 'instrument.upper_price_kobo'],
      [{ lowerPriceKobo: 1_100n }, undefined],
    ];
    for (const [given, expected] of cases) assert.equal(refused(given), expected, String(Object.entries(given)));
    const world = new World(7);
    const asked = (lastPriceKobo: bigint) =>
      changedInstrument(world, create(SetInstrumentRequestSchema, { instrument: { symbol: 'NEW', lastPriceKobo } }));
    assert.throws(() => asked(0n), /instrument\.last_price_kobo/);
    assert.equal(asked(1n).lastKobo, 1);
    assert.throws(() => changedInstrument(world, create(SetInstrumentRequestSchema, {})), /value of instrument is/);
  });
});
