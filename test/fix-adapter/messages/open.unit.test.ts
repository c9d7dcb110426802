import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openMessageLog } from '../../../src/fix-adapter/messages/open.ts';
import { createLogger } from '../../../src/kit/log.ts';

/** A password that changes when the test says. */
class Password {
  readonly #listeners: ((value: string | undefined) => void)[] = [];

  constructor(public current: string | undefined) {}

  onChange(listener: (value: string | undefined) => void): void {
    this.#listeners.push(listener);
  }

  becomes(value: string | undefined): void {
    this.current = value;
    for (const listener of this.#listeners) listener(value);
  }
}

const open = (passwords: readonly Password[], messageDays: number) =>
  openMessageLog({
    settings: { messageDays, messageMebibytes: 1, logsHeartbeats: false, maskedTags: [58] },
    ...{ passwords, database: {} as never, fence: 1n, now: () => 0, onDropped: () => {} },
    log: createLogger({ name: 'fix', level: 'silent' }),
  });

describe('the message log as it is set', () => {
  it('passwords are masked wherever the other side repeats them: those of each session, and the last ten that there were', () => {
    const [own, next, copy] = [new Password('first'), new Password(undefined), new Password('of the copy')];
    const { masking } = open([own, next, copy], 0);
    const shown = (text: string) => masking.value(text);
    assert.equal(shown('first, later, of the copy'), '***, later, ***');
    next.becomes('later');
    assert.equal(shown('first, later, of the copy'), '***, ***, ***');
    next.becomes(undefined);
    own.becomes('later');
    assert.equal(shown('first, later, of the copy'), '***, ***, ***', 'the former one may still be repeated');
    for (let count = 0; count < 7; count += 1) own.becomes(`word ${count}`);
    assert.equal(shown('first, later, word 0, word 6'), '***, ***, ***, ***');
    own.becomes('later');
    own.becomes('the last one');
    assert.equal(shown('later, word 0, the last one'), '***, ***, ***', 'one that comes again is one of the last');
  });

  it('a log that keeps messages for no day has none of either session, and masks all the same', async () => {
    const none = open([], 0);
    assert.deepEqual(
      [none.tap, none.dropCopyTap, none.workers, none.masking.field(58, 'x')],
      [undefined, undefined, [], '***'],
    );
    await none.written(60_000);
    const kept = open([], 1);
    assert.deepEqual([typeof kept.tap, typeof kept.dropCopyTap, kept.workers.length], ['function', 'function', 2]);
  });
});
