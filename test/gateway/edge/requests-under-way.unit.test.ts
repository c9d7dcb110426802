import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RequestsUnderWay } from '../../../src/gateway/edge/bounds.ts';
import { ApiError } from '../../../src/gateway/edge/errors.ts';

const bounds = {
  total: 20,
  perPartner: 8,
  reserve: 6,
  smallPartner: 2,
  identifying: 10,
  identifyingPerAddress: 4,
};

/** Takes as often as it goes, at most 100 times; returns how often, and why it went no further. */
function takeAll(take: () => unknown): { taken: number; code: string | undefined } {
  for (let taken = 0; taken < 100; taken += 1) {
    try {
      take();
    } catch (error) {
      return { taken, code: error instanceof ApiError ? error.code : String(error) };
    }
  }
  return { taken: 100, code: undefined };
}

describe('requests under way', () => {
  it('one partner has at most its own share', () => {
    const requests = new RequestsUnderWay(bounds);
    assert.deepEqual(
      takeAll(() => requests.take('a')),
      { taken: 8, code: 'rate_limited' },
    );
    assert.equal(requests.total, 8);
  });

  it('the last places are kept for partners that hold few', () => {
    const requests = new RequestsUnderWay(bounds);
    takeAll(() => requests.take('a'));
    assert.deepEqual(
      takeAll(() => requests.take('b')),
      { taken: 6, code: 'rate_limited' },
      'of 20 places 14 are for everybody',
    );
    for (const partner of ['c', 'd', 'e']) {
      assert.deepEqual(
        takeAll(() => requests.take(partner)),
        { taken: 2, code: 'rate_limited' },
      );
    }
    assert.deepEqual(
      takeAll(() => requests.take('f')),
      { taken: 0, code: 'service_unavailable' },
      'all places are taken',
    );
  });

  it('a place is free again once, when its request is over', () => {
    const requests = new RequestsUnderWay(bounds);
    const giveBack = requests.take('a');
    takeAll(() => requests.take('a'));
    giveBack();
    giveBack();
    assert.equal(takeAll(() => requests.take('a')).taken, 1);
    assert.equal(requests.total, 8);
  });

  it('look-ups of keys are bounded for each address, and in all', () => {
    const requests = new RequestsUnderWay(bounds);
    assert.deepEqual(
      takeAll(() => requests.identify('192.0.2.1')),
      { taken: 4, code: 'service_unavailable' },
    );
    assert.deepEqual(
      takeAll(() => requests.identify('2001:db8::1')),
      { taken: 4, code: 'service_unavailable' },
    );
    assert.equal(takeAll(() => requests.identify('2001:db8::2')).taken, 0, 'the same /64');
    assert.equal(takeAll(() => requests.identify('192.0.2.3')).taken, 2, 'ten in all');
  });
});
