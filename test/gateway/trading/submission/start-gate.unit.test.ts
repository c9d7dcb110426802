import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { StartGate } from '../../../../src/gateway/trading/submission/start-gate.ts';

const refused = (error: unknown) => error instanceof ApiError && error.code === 'exchange_unavailable';

const order = { kind: 'order', partnerId: 'ptn_a' };
const allocation = { kind: 'allocation', partnerId: 'ptn_a' };

describe('the gate of a start', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('lets nothing pass for 3 seconds, and then refuses it', async () => {
    const gate = new StartGate();
    const answers: string[] = [];
    const passing = gate.pass().then(
      () => answers.push('passed'),
      (error: unknown) => answers.push(refused(error) ? 'refused' : String(error)),
    );
    mock.timers.tick(2_999);
    await new Promise(setImmediate);
    assert.deepEqual(answers, [], 'it still waits after 2,999 ms');
    mock.timers.tick(1);
    await passing;
    assert.deepEqual(answers, ['refused']);
  });

  it('lets everyone pass who waited, and everyone after, once it is open', async () => {
    const gate = new StartGate();
    assert.equal(gate.admits('order', 'ptn_a'), false);
    const waited = Promise.all([gate.pass(), gate.pass(order)]);
    gate.open();
    await waited;
    await gate.pass(order);
    assert.deepEqual([gate.isOpen, gate.admits('order', 'ptn_a')], [true, true]);
  });

  it('takes nothing new of a kind of which something is missing, until it was found', async () => {
    const gate = new StartGate();
    gate.open();
    gate.hold([{ kind: 'allocation' }]);
    await assert.rejects(gate.pass(allocation), refused);
    assert.deepEqual([gate.admits('allocation', 'ptn_b'), gate.admits('order', 'ptn_b')], [false, true]);
    await gate.pass(order);
    await gate.pass();
    gate.hold([]);
    await gate.pass(allocation);
    assert.deepEqual(gate.held, []);
  });

  it('takes nothing new of one kind for one partner while an object of that partner is missing', async () => {
    const gate = new StartGate();
    gate.open();
    gate.hold([allocation, { kind: 'order', partnerId: 'ptn_b' }]);
    await assert.rejects(gate.pass(allocation), refused);
    await gate.pass({ kind: 'allocation', partnerId: 'ptn_b' });
    await gate.pass(order);
    const admitted = ['ptn_a', 'ptn_b'].map((id) => [gate.admits('allocation', id), gate.admits('order', id)]);
    assert.deepEqual(admitted, [
      [false, true],
      [true, false],
    ]);
  });

  it('holds workers back however long it takes, and lets them go when the process stops', async () => {
    const gate = new StartGate();
    const began: string[] = [];
    const worker = (name: string) => gate.behind({ name, run: async () => void began.push(name) });
    const stopping = new AbortController();
    const runs = worker('runs').run(new AbortController().signal);
    const stopped = worker('stopped').run(stopping.signal);
    mock.timers.tick(60_000);
    await new Promise(setImmediate);
    assert.deepEqual(began, [], 'none began while the gate was shut');
    stopping.abort();
    await stopped;
    gate.open();
    await runs;
    await worker('late').run(new AbortController().signal);
    assert.deepEqual(began, ['runs', 'late']);
  });
});
