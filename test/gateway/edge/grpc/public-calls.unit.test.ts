import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PublicCalls, type PublicMethod, publicMethods } from '../../../../src/gateway/edge/grpc/public.ts';

const methodAt = (path: string) => publicMethods.get(path) as PublicMethod;
const check = methodAt('/grpc.health.v1.Health/Check');
const list = methodAt('/grpc.health.v1.Health/List');
const watch = methodAt('/grpc.health.v1.Health/Watch');
const describeFiles = methodAt('/grpc.reflection.v1.ServerReflection/ServerReflectionInfo');
const describeFilesBefore = methodAt('/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo');

/** Opens calls from addresses until one is refused, at most so many. Returns what gives each back. */
function openAll(
  calls: PublicCalls,
  method: PublicMethod,
  address: (at: number) => string,
  isKnown: boolean,
  most = 5_000,
) {
  const open: (() => void)[] = [];
  while (open.length < most) {
    const giveBack = calls.take(method, address(open.length), isKnown);
    if (giveBack === undefined) return open;
    open.push(giveBack);
  }
  return open;
}

const one = () => '192.0.2.1';
const many = (at: number) => `198.51.${at >> 8}.${at & 255}`;

describe('open calls of methods without a key', () => {
  for (const [name, method, isKnown, ofOne, ofAll] of [
    ['health checks of addresses without a recent key', check, false, 32, 256],
    ['health checks of addresses with a recent key', check, true, 250, 1_000],
    ['health watches of addresses without a recent key', watch, false, 16, 256],
    ['health watches of addresses with a recent key', watch, true, 500, 2_000],
    ['reflections of addresses without a recent key', describeFiles, false, 16, 64],
    ['reflections of addresses with a recent key', describeFiles, true, 16, 64],
  ] as const) {
    it(`open ${name} are at most ${ofOne} of one and ${ofAll} of all, and each that ends makes room for one`, () => {
      const calls = new PublicCalls();
      const [first, ...others] = openAll(calls, method, one, isKnown);
      assert.equal(1 + others.length, ofOne);
      assert.notEqual(calls.take(method, '192.0.2.2', isKnown), undefined, 'another address has its own');
      first?.();
      first?.();
      assert.equal(openAll(calls, method, one, isKnown).length, 1, 'a call that ends twice makes room once');

      const all = new PublicCalls();
      const open = openAll(all, method, many, isKnown);
      assert.equal(open.length, ofAll);
      for (const giveBack of open.splice(0, 2)) giveBack();
      assert.equal(openAll(all, method, (at) => `203.0.113.${at}`, isKnown).length, 2);
    });
  }

  it('calls without a recent key leave the room of those with one, and the other way round', () => {
    const calls = new PublicCalls();
    assert.equal(openAll(calls, check, many, false).length, 256);
    assert.equal(openAll(calls, check, many, true).length, 1_000);
  });

  it('checks and lists share one bound, watches have another, and both versions of reflection share one', () => {
    const calls = new PublicCalls();
    openAll(calls, check, one, false);
    assert.equal(calls.take(list, one(), false), undefined);
    assert.equal(openAll(calls, watch, one, false).length, 16);
    openAll(calls, describeFiles, one, false);
    assert.equal(calls.take(describeFilesBefore, one(), false), undefined);
  });

  it('addresses of one IPv6 /64 are one address, and the next /64 is another', () => {
    const calls = new PublicCalls();
    assert.equal(openAll(calls, check, (at) => `2001:db8::${at.toString(16)}`, false).length, 32);
    assert.notEqual(calls.take(check, '2001:db8:0:1::1', false), undefined);
  });
});
