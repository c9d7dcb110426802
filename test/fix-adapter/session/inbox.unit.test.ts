import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Inbox } from '../../../src/fix-adapter/session/inbox.ts';
import { FixMessage } from '../../../src/fix-adapter/wire/message.ts';

interface Commit {
  readonly messages: number;
  readonly next: number;
  readonly passedOver: boolean;
}

/** An inbox over a record that fails as often as it is told to. */
function begin({ storedNext = 1, hasMissed = false, failures = 0 } = {}) {
  const commits: Commit[] = [];
  let left = failures;
  const record = {
    received: async (messages: readonly FixMessage[], next: number, passedOver: boolean) => {
      if (left-- > 0) throw new Error('the database is away');
      commits.push({ messages: messages.length, next, passedOver });
    },
  };
  const inbox = new Inbox(record, { stored: () => {} }, storedNext, hasMissed);
  return { inbox, commits };
}

const message = new FixMessage([[35, '8']]);

describe('the messages of a connection that the record does not have', () => {
  it('are committed with the fact that others were passed over, once', async () => {
    const { inbox, commits } = begin();
    inbox.passOver();
    await inbox.store(4);
    inbox.add(message);
    await inbox.store(5);
    assert.deepEqual(commits, [
      { messages: 0, next: 4, passedOver: true },
      { messages: 1, next: 5, passedOver: false },
    ]);
  });

  it('leave it known that others were passed over until somebody was told, over any number of commits', async () => {
    const { inbox } = begin();
    inbox.passOver();
    assert.equal(inbox.hasMissed, false, 'the record does not have it yet');
    await inbox.store(4);
    for (const next of [5, 6]) {
      inbox.add(message);
      await inbox.store(next);
      assert.equal(inbox.hasMissed, true);
    }
    inbox.told();
    assert.equal(inbox.hasMissed, false);
  });

  it('leave it known that others were passed over on an earlier connection', async () => {
    const { inbox } = begin({ hasMissed: true });
    inbox.add(message);
    await inbox.store(2);
    assert.equal(inbox.hasMissed, true);
  });

  it('stay, with the fact that others were passed over, if a commit fails', async () => {
    const { inbox, commits } = begin({ failures: 1 });
    inbox.add(message);
    inbox.passOver();
    await assert.rejects(inbox.store(3), /away/);
    assert.deepEqual([inbox.waiting.length, inbox.hasMissed], [1, false]);
    await inbox.store(3);
    assert.deepEqual(commits, [{ messages: 1, next: 3, passedOver: true }]);
    assert.deepEqual([inbox.waiting.length, inbox.hasMissed], [0, true]);
  });

  it('are not committed for administrative messages alone, but the last number is at the end', async () => {
    const { inbox, commits } = begin({ storedNext: 3 });
    await inbox.store(7);
    assert.deepEqual(commits, []);
    await inbox.storeAtEnd(7);
    await inbox.storeAtEnd(7);
    assert.deepEqual(commits, [{ messages: 0, next: 7, passedOver: false }]);
  });

  it('let no number past them at the end, because a message without a commit must come again', async () => {
    const { inbox, commits } = begin({ failures: 1 });
    inbox.add(message);
    await assert.rejects(inbox.store(2));
    await inbox.storeAtEnd(2);
    assert.deepEqual(commits, []);
  });

  it('let a message of ours be stored with the number of the next one only while none of them waits', async () => {
    const { inbox } = begin({ storedNext: 3, failures: 1 });
    assert.equal(inbox.storedTo(7), 7, 'only administrative messages came');
    inbox.add(message);
    assert.equal(inbox.storedTo(8), 3);
    await assert.rejects(inbox.store(8));
    assert.equal(inbox.storedTo(8), 3, 'the commit failed');
    await inbox.store(8);
    assert.equal(inbox.storedTo(9), 9);
    inbox.passOver();
    assert.equal(inbox.storedTo(10), 8, 'the record does not have that others were passed over');
  });
});
