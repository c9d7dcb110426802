import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Chapter, Screen } from '../../src/sandbox/demo-screen.ts';

function shown(isTTY: boolean, environment: NodeJS.ProcessEnv = {}, columns = 80) {
  const written: string[] = [];
  let wait = () => {};
  /** Until a terminal shows what is waited for; anywhere else at once. */
  const waited = new Promise<void>((resolve) => {
    wait = resolve;
  });
  const isLive = isTTY && environment.TERM !== 'dumb';
  if (!isLive) wait();
  const write = (text: string) => {
    written.push(text);
    if (text.includes('waiting')) wait();
  };
  const screen = new Screen({ isTTY, columns, write }, environment);
  return { screen, text: () => written.join(''), waited };
}

function chapter(shows: string, run: Chapter['run'] = async () => {}): Chapter {
  return { title: `The part with ${shows}`, shows, run };
}

describe('a demo', () => {
  it('sums up what was shown when everything held', async () => {
    const { screen, text } = shown(false);
    const run = async () => screen.say('201 ord_1 pending');
    assert.equal(await screen.play([chapter('an order', run), chapter('a cancel')]), undefined);
    assert.match(text(), /1\/2 {2}The part with an order\n {3}201 ord_1 pending\n/);
    assert.match(text(), /What was shown\n {3}✓ an order\n {3}✓ a cancel\n\nEverything held \(0 s\)\.\n$/);
  });

  it('ends where something does not hold, and says what was not reached', async () => {
    const { screen, text } = shown(false);
    const failure = new Error('the cancel must be confirmed');
    const fails = async () => {
      throw failure;
    };
    assert.equal(await screen.play([chapter('an order'), chapter('a cancel', fails), chapter('notes')]), failure);
    assert.match(text(), /✓ an order\n {3}✗ a cancel\n {3}– notes: not reached\n$/);
    assert.doesNotMatch(text(), /The part with notes|Everything held/);
  });

  it('shows what is waited for in one line of the terminal, however narrow that is', async () => {
    for (const columns of [20, 40]) {
      const { screen, text, waited } = shown(true, { NO_COLOR: '1' }, columns);
      await screen.play([chapter('an order', () => screen.waiting('waiting for an order with a long name', waited))]);
      const [line = ''] = /(?<=\r).*(?= s\))/.exec(text()) ?? [];
      assert.ok(/^ {3}\S waiting .*\(0$/.test(line), line);
      assert.ok(line.length + ' s)'.length < columns, `${line} s)`);
    }
  });

  it('has progress and colours on a terminal, no colours where none are wanted, and plain lines anywhere else', async () => {
    for (const [isTTY, environment, isLive, isColoured] of [
      [true, {}, true, true],
      [true, { NO_COLOR: '1' }, true, false],
      [true, { TERM: 'dumb' }, false, false],
      [false, {}, false, false],
    ] as const) {
      const { screen, text, waited } = shown(isTTY, environment);
      const run = () => screen.waiting('waiting for an order', waited);
      await screen.play([chapter('an order', run)]);
      const about = JSON.stringify({ isTTY, environment });
      assert.equal(text().includes('waiting for an order (0 s)'), isLive, about);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are such characters.
      assert.equal(/\u001b\[\d+m/.test(text()), isColoured, about);
      assert.equal(text().includes('\u001b'), isLive, about);
    }
  });
});
