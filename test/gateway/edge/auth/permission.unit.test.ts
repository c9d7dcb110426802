import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Permission } from '../../../../src/gateway/edge/auth/caller.ts';
import { whilePermitted } from '../../../../src/gateway/edge/auth/caller.ts';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';

/** A permission of which something is heard before each of the first checks. */
function heardOf(times: number, renew: () => void = () => {}) {
  let left = times;
  const counts = { renewed: 0, stored: 0 };
  const permission: Permission = {
    async renew() {
      counts.renewed += 1;
      renew();
    },
    isLatest: () => left-- <= 0,
  };
  const store = (check: () => void) => {
    check();
    counts.stored += 1;
    return Promise.resolve('stored');
  };
  return { permission, counts, store };
}

describe('work in the name of a caller', () => {
  it('is done once when nothing is heard of the caller, whose permission is renewed before', async () => {
    const { permission, counts, store } = heardOf(0);
    assert.equal(await whilePermitted(permission, async (check) => store(check)), 'stored');
    assert.deepEqual(counts, { renewed: 1, stored: 1 });
  });

  it('is begun again with a renewed permission when something is heard, four times at most', async () => {
    const often = heardOf(3);
    assert.equal(await whilePermitted(often.permission, async (check) => often.store(check)), 'stored');
    assert.deepEqual(often.counts, { renewed: 4, stored: 1 });
    const always = heardOf(100);
    await assert.rejects(
      whilePermitted(always.permission, async (check) => always.store(check)),
      (error: unknown) => error instanceof ApiError && error.code === 'service_unavailable',
    );
    assert.deepEqual(always.counts, { renewed: 4, stored: 0 }, 'nothing was stored for a caller in doubt');
  });

  it('is not done for a caller whose permission ended meanwhile', async () => {
    let renewals = 0;
    const { permission, counts, store } = heardOf(1, () => {
      renewals += 1;
      if (renewals > 1) throw new ApiError('unauthorized');
    });
    await assert.rejects(
      whilePermitted(permission, async (check) => store(check)),
      (error: unknown) => error instanceof ApiError && error.code === 'unauthorized',
    );
    assert.equal(counts.stored, 0);
  });

  it('work that fails by itself is not begun again', async () => {
    const { permission, counts } = heardOf(0);
    await assert.rejects(
      whilePermitted(permission, async () => {
        throw new Error('its own');
      }),
      /its own/,
    );
    assert.equal(counts.renewed, 1);
  });
});
