import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { buildConnector } from 'undici';
import { EndpointConnections } from '../../../../../src/gateway/delivery/webhooks/attempt/connections.ts';

/** Connections to an endpoint, none of which is dialled. The clock stands until the test moves it. */
function startConnections({ mock }: TestContext) {
  const clock = { ms: 100_000 };
  mock.method(performance, 'now', () => clock.ms);
  const url = new URL('https://example.com/');
  const connect = () => assert.fail('nothing is sent');
  const connections = new EndpointConnections(url.href, url, connect as unknown as buildConnector.connector);
  return { connections, clock };
}

const over = new Error('over');

describe("an endpoint's connections", () => {
  it('a connection that was given back is used again, the last one first, until it is a minute old', (t) => {
    const { connections, clock } = startConnections(t);
    const [first, second] = [connections.take(), connections.take()];
    assert.notEqual(first, second);
    connections.giveBack(first);
    connections.giveBack(second);
    assert.deepEqual([connections.take() === second, connections.take() === first], [true, true]);
    connections.giveBack(first);
    clock.ms += 59_999;
    assert.equal(connections.take(), first);
    connections.giveBack(first);
    clock.ms += 1;
    const third = connections.take();
    assert.deepEqual([third === first, first.client.closed, third.client.closed], [false, true, false]);
    clock.ms += 30_000;
    const fourth = connections.take();
    connections.giveBack(fourth);
    connections.giveBack(third);
    clock.ms += 30_000;
    assert.equal(connections.take(), fourth, 'one that is too old is passed over');
    assert.equal(third.client.closed, true);
  });

  it('an endpoint is busy while any attempt has a connection, however the attempts ended', async (t) => {
    const { connections } = startConnections(t);
    for (const round of ['first', 'second']) {
      const [kept, broken] = [connections.take(), connections.takeNew()];
      assert.equal(connections.isBusy, true, round);
      connections.giveBack(kept);
      assert.equal(connections.isBusy, true, 'one is still under way');
      await connections.discard(broken, over);
      assert.deepEqual([connections.isBusy, broken.client.destroyed], [false, true], round);
    }
    const idle = connections.take();
    connections.giveBack(idle);
    idle.client.emit('disconnect', new URL('https://example.com/'), [], over as never);
    assert.equal(connections.isBusy, false, 'the endpoint closed an idle one');
    assert.notEqual(connections.take(), idle);
    assert.equal(connections.isBusy, true);
  });

  it('a connection that breaks under its attempt is not taken for an idle one', (t) => {
    const { connections } = startConnections(t);
    const [broken, idle] = [connections.take(), connections.take()];
    connections.giveBack(idle);
    broken.client.emit('disconnect', new URL('https://example.com/'), [], over as never);
    assert.equal(connections.isBusy, true);
    assert.equal(connections.take(), idle);
  });

  it('connections to a former URL close with their attempts, and all are broken off at the end', async (t) => {
    const moved = startConnections(t).connections;
    const [underWay, idle] = [moved.take(), moved.take()];
    moved.giveBack(idle);
    moved.close();
    assert.deepEqual([idle.client.closed, underWay.client.closed, moved.isBusy], [true, false, true]);
    moved.giveBack(underWay);
    assert.deepEqual([underWay.client.closed, moved.isBusy], [true, false]);
    const ended = startConnections(t).connections;
    const [one, two] = [ended.take(), ended.take()];
    ended.giveBack(two);
    await ended.destroy(over);
    assert.deepEqual(
      [one.client.destroyed, two.client.destroyed, ended.isBusy, ended.isClosing],
      [true, true, false, true],
    );
    assert.notEqual(ended.take(), two, 'none that was broken off is used again');
  });
});
