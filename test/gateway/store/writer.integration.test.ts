import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { Database } from '../../../src/gateway/store/database.ts';
import { type Statement, statement } from '../../../src/gateway/store/statement.ts';
import { type ClusterNode, WriterNode } from '../../../src/gateway/store/writer.ts';
import { openTestDatabase } from '../../support/database.ts';

/** Without a sign for so long, nobody writes through a node any more. */
const quietMs = 5_000;

describe('the node through which gateways write', () => {
  let database: Database;
  let close: () => Promise<void>;
  let nowMs: number;
  /** Done right before a gateway takes the place of a node. */
  let beforeTakeOver: () => Promise<unknown>;
  before(async () => {
    ({ database, close } = await openTestDatabase());
  });
  after(async () => {
    await database.write(statement("UPDATE writer SET node = '', fence = 0 WHERE id = 1"));
    await close();
  });
  beforeEach(async () => {
    nowMs = 0;
    beforeTakeOver = async () => {};
    await database.write(statement("UPDATE writer SET node = 'one', fence = fence + 1 WHERE id = 1"));
  });

  const beat = () => database.write(statement('UPDATE writer_beats SET beat = beat + 1 WHERE id = 1'));
  const run = async (statements: readonly Statement[]) => {
    await database.writeAll(statements);
  };

  /** The part of a gateway that reaches the database at a node. */
  function gatewayAt(name: string): WriterNode {
    const node: ClusterNode = {
      name,
      ask: (query) => database.read(query),
      write: run,
      writeUnchecked: async (statements) => {
        await beforeTakeOver();
        await run(statements);
      },
    };
    const keepTo = () => {};
    return new WriterNode({ atNode: (work) => work(node), keepTo }, undefined, () => nowMs);
  }

  const writes = async (gateway: WriterNode) => (await gateway.renew())?.isWriter;

  it('another node is written through once that one was quiet for five seconds, and not a millisecond earlier', async () => {
    const gateway = gatewayAt('two');
    assert.equal(await writes(gateway), false);
    nowMs = quietMs - 1;
    assert.equal(await writes(gateway), false);
    await beat();
    assert.equal(await writes(gateway), false, 'a gateway has written through it');
    nowMs += quietMs - 1;
    assert.equal(await writes(gateway), false);
    nowMs += 1;
    assert.deepEqual([await writes(gateway), await writes(gatewayAt('one'))], [true, false]);
  });

  it('the node stays the same if a gateway shows that it writes there while another one takes its place', async () => {
    const gateway = gatewayAt('two');
    await writes(gateway);
    nowMs = quietMs;
    beforeTakeOver = beat;
    assert.deepEqual([await writes(gateway), await writes(gatewayAt('one'))], [false, true]);
  });

  it('the node is that of one gateway if two take its place at once', async () => {
    const [two, three] = [gatewayAt('two'), gatewayAt('three')];
    for (const gateway of [two, three]) await writes(gateway);
    nowMs = quietMs;
    beforeTakeOver = async () => {
      beforeTakeOver = async () => {};
      assert.equal(await writes(three), true);
    };
    assert.equal(await writes(two), false);
  });
});
