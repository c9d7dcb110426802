import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { type AddressDetail, addressShower, networkOf } from '../../src/kit/addresses.ts';
import { LineSampler } from '../../src/kit/line-sampler.ts';
import { createLogger } from '../../src/kit/log.ts';

interface Summary {
  readonly lines: string;
  readonly leftOut: number;
  readonly addresses: number;
  readonly mostFrom: readonly { readonly clientAddress?: string; readonly leftOut: number }[];
}

/** A sampler whose minutes pass when they are told to. */
function sampling(
  use: (parts: { sampler: LineSampler; nextMinute: () => Summary[] }) => void,
  detail: AddressDetail = 'full',
) {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const lines: string[] = [];
    const log = createLogger({ name: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } });
    const nextMinute = () => {
      mock.timers.tick(60_000);
      return lines.splice(0).map((line) => JSON.parse(line) as Summary);
    };
    use({ sampler: new LineSampler(log, 'request', addressShower(detail)), nextMinute });
  } finally {
    mock.timers.reset();
  }
}

const times = (count: number, take: () => boolean) =>
  Array.from({ length: count }, take).filter((isTaken) => isTaken).length;

describe('log lines of clients without a key', () => {
  it('are written 20 times a minute for an address, and the others are counted in one line', () =>
    sampling(({ sampler, nextMinute }) => {
      assert.equal(
        times(1_000, () => sampler.take('192.0.2.1')),
        20,
      );
      assert.equal(
        times(15, () => sampler.take('192.0.2.2')),
        15,
      );
      const [summary, ...more] = nextMinute();
      assert.deepEqual(more, []);
      assert.deepEqual([summary?.lines, summary?.leftOut, summary?.addresses], ['request', 980, 1]);
      assert.deepEqual(summary?.mostFrom, [{ clientAddress: '192.0.2.1', leftOut: 980 }]);
      assert.equal(
        times(30, () => sampler.take('192.0.2.1')),
        20,
        'the next minute begins at none',
      );
    }));

  it('are written 300 times a minute however many addresses there are', () =>
    sampling(({ sampler, nextMinute }) => {
      let at = 0;
      const next = () => sampler.take(`10.${(at >> 16) & 255}.${(at >> 8) & 255}.${at++ & 255}`);
      assert.equal(times(100_000, next), 300);
      const [summary, ...more] = nextMinute();
      assert.deepEqual(more, []);
      assert.equal(summary?.leftOut, 99_700);
      assert.ok((summary?.addresses ?? 0) <= 1_001, 'a bounded number of addresses is remembered');
      assert.equal(summary?.mostFrom[0]?.clientAddress, 'others');
    }));

  it('log lines are written 300 times in each minute, also after minutes in which none was left out', () =>
    sampling(({ sampler, nextMinute }) => {
      let at = 0;
      const next = () => sampler.take(`10.0.${(at >> 8) & 255}.${at++ & 255}`);
      for (const lines of [300, 1, 299, 300]) {
        assert.equal(times(lines, next), lines);
        assert.deepEqual(nextMinute(), []);
      }
    }));

  it('clients of one IPv6 /64 count together', () =>
    sampling(({ sampler }) => {
      let at = 0;
      assert.equal(
        times(100, () => sampler.take(`2001:db8:1:2::${(at++).toString(16)}`)),
        20,
      );
      assert.equal(
        times(5, () => sampler.take('2001:db8:1:3::1')),
        5,
      );
    }));

  it('make no line of their own when none was left out', () =>
    sampling(({ sampler, nextMinute }) => {
      assert.equal(
        times(20, () => sampler.take('192.0.2.1')),
        20,
      );
      assert.deepEqual(nextMinute(), []);
    }));

  it('are counted without an address where addresses are not logged', () =>
    sampling(({ sampler, nextMinute }) => {
      times(30, () => sampler.take('192.0.2.1'));
      assert.deepEqual(nextMinute()[0]?.mostFrom, [{ leftOut: 10 }]);
    }, 'none'));
});

describe('a client address in a log', () => {
  const shown = (detail: AddressDetail, address: string) => addressShower(detail)(address);

  it('is whole, cut to its network, or absent', () => {
    assert.equal(shown('full', '203.0.113.77'), '203.0.113.77');
    assert.equal(shown('full', '::ffff:203.0.113.77'), '203.0.113.77');
    assert.equal(shown('full', '2001:DB8:0:0::7'), '2001:db8::7');
    assert.equal(shown('network', '203.0.113.77'), '203.0.113.0/24');
    assert.equal(shown('network', '::ffff:203.0.113.77'), '203.0.113.0/24');
    assert.equal(shown('network', '2001:db8:1:2:3:4:5:6'), '2001:db8:1::/48');
    for (const address of ['203.0.113.77', '2001:db8::7']) assert.equal(shown('none', address), undefined);
  });

  it('is no text that a client made up', () => {
    for (const address of ['', 'unknown', 'x\ny', '203.0.113.77, 10.0.0.1']) {
      for (const detail of ['full', 'network', 'none'] as const)
        assert.equal(shown(detail, address), undefined, address);
    }
  });

  it('is counted with its network', () => {
    assert.equal(networkOf('2001:db8:1:2::5'), networkOf('2001:db8:1:2:9::'));
    assert.notEqual(networkOf('2001:db8:1:2::5'), networkOf('2001:db8:1:3::5'));
    assert.equal(networkOf('::ffff:192.0.2.1'), '192.0.2.1');
  });
});
