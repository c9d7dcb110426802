import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { MessageSender, type MessageSenderOptions } from '../../../src/fix-adapter/session/sender.ts';
import type { NumberedMessage, Outgoing, SessionSettings } from '../../../src/fix-adapter/session/types.ts';
import { Framing } from '../../../src/fix-adapter/wire/framing.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';

interface Order extends Outgoing {
  readonly id: string;
}

function begin(more: Partial<MessageSenderOptions<Order>> = {}) {
  const chunks: Buffer[] = [];
  let flush: (() => void) | undefined;
  const line = { isHeld: false, now: 1_000 };
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _, done) {
      chunks.push(chunk);
      if (line.isHeld) flush = done;
      else done();
    },
  });
  const commits: { readonly ids: readonly string[]; readonly nextOut: number }[] = [];
  const unwritten: string[] = [];
  const filled: [number, number][] = [];
  const failures: unknown[] = [];
  const sender = new MessageSender<Order>({
    socket,
    settings: { beginString: 'FIX.4.4', senderCompId: 'US', targetCompId: 'THEM' } as SessionSettings,
    nextOut: 1,
    record: {
      sending: async (messages: readonly NumberedMessage<Order>[], nextOut: number) => {
        commits.push({ ids: messages.map(({ message }) => message.id), nextOut });
        return [];
      },
      unwritten: async (messages) => void unwritten.push(...messages.map(({ id }) => id)),
    },
    now: () => line.now,
    mayWrite: () => true,
    gapFilled: (from, to) => void filled.push([from, to]),
    failed: (error) => void failures.push(error),
    ...more,
  });
  const outcomes = new Map<string, string>();
  const send = (id: string, notAfterMs = Number.POSITIVE_INFINITY, text = 'x') => {
    const settled = (outcome: string) => {
      assert.ok(!outcomes.has(id), 'settled once');
      outcomes.set(id, outcome);
    };
    sender.send({ id, type: 'D', fields: [[tags.Text, text]], notAfterMs, settled });
  };
  /** The written messages, as type, number and NewSeqNo. */
  const written = () =>
    chunks.flatMap((chunk) =>
      new Framing()
        .push(chunk)
        .map((one) => ('message' in one ? shortly(one.message.type, one.message.number, one.message.get(36)) : '?')),
    );
  const release = () => {
    line.isHeld = false;
    flush?.();
  };
  return { sender, line, chunks, commits, unwritten, filled, failures, outcomes, send, written, release };
}

function shortly(type: string, number: number, next: string | undefined): string {
  return next === undefined ? `${type}${number}` : `${type}${number}-${next}`;
}

describe('the sender of a FIX session', () => {
  it('commits what comes together once, before a byte of it, and writes it in the order of its numbers', async () => {
    const { sender, chunks, commits, outcomes, send, written } = begin({});
    send('a');
    sender.administrative('0');
    send('b');
    assert.deepEqual([chunks.length, commits.length], [0, 0]);
    await sender.drained();
    assert.deepEqual(commits, [{ ids: ['a', 'b'], nextOut: 4 }]);
    assert.deepEqual(written(), ['D1', '02', 'D3']);
    assert.deepEqual([...outcomes.values()], ['written', 'written']);
  });

  it('does not write an order whose time ran out while bytes before it waited', async () => {
    const { sender, line, commits, unwritten, outcomes, send, written, release } = begin();
    line.isHeld = true;
    sender.administrative('0');
    await sender.drained();
    send('late', 1_100);
    while (commits.length < 2) await turn();
    line.now = 1_101;
    release();
    await sender.drained();
    assert.deepEqual(outcomes.get('late'), 'unwritten');
    assert.deepEqual(unwritten, ['late']);
    assert.deepEqual(written(), ['01', '42-3']);
  });

  it('writes an order that waited for the bytes before it in time', async () => {
    const { sender, line, commits, outcomes, send, release } = begin();
    line.isHeld = true;
    sender.administrative('0');
    await sender.drained();
    send('in time', 1_100);
    while (commits.length < 2) await turn();
    release();
    await sender.drained();
    assert.equal(outcomes.get('in time'), 'written');
  });

  it('passes over what was written, and not over what is about to be', async () => {
    const { sender, filled, send, written } = begin();
    send('a');
    sender.fill(1, Number.MAX_SAFE_INTEGER);
    send('b');
    await sender.drained();
    assert.deepEqual(written(), ['D1', '41-2', 'D2']);
    assert.deepEqual(filled, [[1, 1]]);
  });

  it('passes over no more than was asked for, because the other side may have read what follows', async () => {
    const { sender, filled, send, written } = begin();
    for (const id of ['a', 'b', 'c']) send(id);
    await sender.drained();
    sender.fill(1, 1);
    await sender.drained();
    assert.deepEqual(written(), ['D1', 'D2', 'D3', '41-2']);
    assert.deepEqual(filled, [[1, 1]]);
  });

  it('has nothing to say about numbers that it has not written yet', async () => {
    const { sender, filled, written } = begin({ nextOut: 5 });
    sender.fill(5, Number.MAX_SAFE_INTEGER);
    await sender.drained();
    assert.deepEqual(written(), []);
    assert.deepEqual(filled, []);
  });

  it('takes no number for a message that cannot be written', async () => {
    const { sender, commits, outcomes, send } = begin();
    send('a', Number.POSITIVE_INFINITY, 'a\x01b');
    await sender.drained();
    assert.equal(outcomes.get('a'), 'unrecorded');
    assert.deepEqual(commits, []);
  });

  it('writes nothing once another process has the session', async () => {
    let isOurs = true;
    const { sender, outcomes, send, written } = begin({
      mayWrite: () => isOurs,
      record: {
        sending: async () => {
          isOurs = false;
          return [];
        },
        unwritten: async () => {},
      },
    });
    send('a');
    sender.administrative('0');
    await sender.drained();
    assert.equal(outcomes.get('a'), 'unwritten');
    assert.deepEqual(written(), []);
  });

  it('fills the number of an order that the record refuses, and writes the others', async () => {
    const { sender, outcomes, send, written } = begin({
      record: {
        sending: async (messages) => messages.flatMap(({ message }) => (message.id === 'b' ? [message] : [])),
        unwritten: async () => assert.fail('a refused order is not the one that is stored'),
      },
    });
    for (const id of ['a', 'b', 'c']) send(id);
    await sender.drained();
    assert.deepEqual(Object.fromEntries(outcomes), { a: 'written', b: 'refused', c: 'written' });
    assert.deepEqual(written(), ['D1', '42-3', 'D3']);
  });

  it('gives up what waits when it is closed', async () => {
    const { sender, outcomes, send, written } = begin();
    send('a');
    await sender.close();
    send('b');
    assert.deepEqual(Object.fromEntries(outcomes), { a: 'unrecorded', b: 'unrecorded' });
    assert.deepEqual(written(), []);
  });

  it('has proven that an order was not written, also if that cannot be stored', async () => {
    const failure = new Error('away');
    const { sender, failures, outcomes, send } = begin({
      record: {
        sending: async () => [],
        unwritten: async () => {
          throw failure;
        },
      },
    });
    send('late', 0);
    await sender.drained();
    assert.equal(outcomes.get('late'), 'unwritten');
    assert.deepEqual(failures, [failure]);
  });

  it('does not know what became of a commit without an answer, writes nothing of it, and nothing after it', async () => {
    const failure = new Error('away');
    const { sender, failures, outcomes, send, written } = begin({
      record: {
        sending: async () => {
          send('next');
          throw failure;
        },
        unwritten: async () => {},
      },
    });
    send('a');
    await sender.drained();
    assert.deepEqual(Object.fromEntries(outcomes), { a: 'unknown', next: 'unrecorded' });
    assert.deepEqual(failures, [failure]);
    assert.deepEqual(written(), []);
  });

  it('lets so many orders wait, and refuses others at once', async () => {
    const { sender, outcomes, send } = begin();
    for (let at = 0; at < 5_001; at += 1) send(`o${at}`);
    assert.deepEqual([...outcomes.keys()], ['o5000']);
    await sender.drained();
    assert.equal([...outcomes.values()].filter((outcome) => outcome === 'written').length, 5_000);
  });

  it('gives no room of orders to answers, however many orders were written before', async () => {
    const { sender, failures, send } = begin();
    for (let at = 0; at < 20; at += 1) send(`o${at}`);
    await sender.drained();
    for (let at = 0; at < 1_000; at += 1) sender.administrative('0', [tags.TestReqID, 'x']);
    assert.deepEqual(failures, []);
    sender.administrative('0', [tags.TestReqID, 'x']);
    assert.equal(failures.length, 1);
    await sender.drained();
  });

  it('gives up an other side that asks for more answers than it could want', async () => {
    const { sender, failures } = begin();
    for (let at = 0; at < 1_001; at += 1) sender.administrative('0', [tags.TestReqID, 'x']);
    assert.equal(failures.length, 1);
    await sender.drained();
  });

  it('a sender gives the room of each answer back once it is written, however many there are in a day', async () => {
    const { sender, failures, send, written } = begin();
    for (let time = 0; time < 3; time += 1) {
      for (let at = 0; at < 400; at += 1) sender.administrative('0');
      for (let at = 0; at < 400; at += 1) sender.fill(1, 1);
      send(`o${time}`);
      await sender.drained();
    }
    assert.deepEqual(failures, []);
    const of = (type: string) => written().filter((one) => one.startsWith(type)).length;
    assert.deepEqual([of('0'), of('4'), of('D')], [1_200, 1_200, 3]);
  });

  it('a sender leaves out what the other side can do without while 500 answers wait, and keeps the rest for what it cannot', async () => {
    const { sender, failures, written } = begin();
    for (let at = 0; at < 600; at += 1) sender.courtesy('3');
    for (let at = 0; at < 500; at += 1) sender.administrative('0');
    assert.deepEqual(failures, []);
    await sender.drained();
    const of = (type: string) => written().filter((one) => one.startsWith(type)).length;
    assert.deepEqual([of('3'), of('0')], [500, 500]);
    sender.courtesy('3');
    await sender.drained();
    assert.equal(of('3'), 501, 'there is room again');
  });

  it('a sender writes an order in the last millisecond of its time, and not in the next one', async () => {
    for (const [notAfterMs, outcome] of [
      [999, 'unwritten'],
      [1_000, 'written'],
    ] as const) {
      const { sender, outcomes, send } = begin();
      send('a', notAfterMs);
      await sender.drained();
      assert.equal(outcomes.get('a'), outcome);
    }
  });

  it('a sender writes no order that waited for the bytes before it if another process has the session by then', async () => {
    let isOurs = true;
    const { sender, line, commits, unwritten, outcomes, send, written, release } = begin({ mayWrite: () => isOurs });
    line.isHeld = true;
    sender.administrative('0');
    await sender.drained();
    send('a');
    while (commits.length < 2) await turn();
    isOurs = false;
    release();
    await sender.drained();
    assert.deepEqual([outcomes.get('a'), unwritten, written()], ['unwritten', ['a'], ['01']]);
  });

  it('a sender waits a second for the bytes before an order, refuses those behind it at once, and goes on when they are read', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { sender, line, commits, outcomes, send, release } = begin();
    line.isHeld = true;
    sender.administrative('0');
    await sender.drained();
    send('a');
    send('b');
    while (commits.length < 2) await turn();
    t.mock.timers.tick(999);
    await turn();
    assert.equal(outcomes.size, 0);
    t.mock.timers.tick(1);
    await sender.drained();
    assert.deepEqual(
      [...outcomes],
      [
        ['a', 'unwritten'],
        ['b', 'unwritten'],
      ],
    );
    send('c');
    await sender.drained();
    assert.equal(outcomes.get('c'), 'unwritten', 'it was not waited for again');
    release();
    await turn();
    send('d');
    await sender.drained();
    assert.equal(outcomes.get('d'), 'written');
  });

  it('a sender gives up an other side that leaves more than a mebibyte unread', async () => {
    const { sender, line, failures, outcomes, send } = begin();
    line.isHeld = true;
    const half = [tags.Text, 'x'.repeat(524_288)] as const;
    sender.administrative('0', half);
    await sender.drained();
    assert.deepEqual(failures, []);
    sender.administrative('0', half);
    await sender.drained();
    assert.equal(failures.length, 1);
    send('a');
    assert.equal(outcomes.get('a'), 'unrecorded');
  });

  it('a sender knows the types of the last 10,000 of its own messages, and of no order', async () => {
    const { sender, send } = begin();
    for (let round = 0; round < 20; round += 1) {
      for (let at = 0; at < 500; at += 1) sender.administrative(round % 2 === 0 ? '0' : '1');
      await sender.drained();
    }
    send('a');
    await sender.drained();
    assert.deepEqual(
      [1, 501, 10_000, 10_001].map((number) => sender.typeOf(number)),
      ['0', '1', '1', undefined],
    );
    sender.administrative('5');
    await sender.drained();
    assert.deepEqual(
      [1, 2, 10_002].map((number) => sender.typeOf(number)),
      [undefined, '0', '5'],
    );
  });
});
