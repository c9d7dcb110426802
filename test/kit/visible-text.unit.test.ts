import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fixCommand } from '../../src/fix-adapter/command.ts';
import { isVisibleLine, isVisibleText } from '../../src/kit/visible-text.ts';

const invisible: readonly (readonly [string, string])[] = [
  ['NUL', '\u0000'],
  ['escape', '\u001b'],
  ['delete', '\u007f'],
  ['next line of C1', '\u0085'],
  ['the control sequence introducer of C1', '\u009b'],
  ['a soft hyphen', '\u00ad'],
  ['an Arabic letter mark', '\u061c'],
  ['a Hangul filler', '\u3164'],
  ['a zero-width space', '\u200b'],
  ['a zero-width joiner', '\u200d'],
  ['a right-to-left mark', '\u200f'],
  ['a line separator', '\u2028'],
  ['a paragraph separator', '\u2029'],
  ['a right-to-left override', '\u202e'],
  ['a word joiner', '\u2060'],
  ['a right-to-left isolate', '\u2067'],
  ['a pop of an isolate', '\u2069'],
  ['a blank Braille pattern', '\u2800'],
  ['a variation selector', '\ufe0f'],
  ['a byte order mark', '\ufeff'],
  ['an interlinear annotation anchor', '\ufff9'],
  ['a tag of plane 14', '\u{e0041}'],
];

describe('a text that operators write', () => {
  for (const [name, character] of invisible) {
    it(`cannot be seen whole with ${name}`, () => {
      for (const text of [character, `a${character}b`, `${character}a`, `a${character}`]) {
        assert.equal(isVisibleLine(text), false);
        assert.equal(isVisibleText(text), false);
      }
    });
  }

  for (const text of ['', 'Acme Ltd', 'Ọlá & Ṣadé', 'a\u0301', '中文', 'النص', '₦10 – “agreed”', '👍']) {
    it(`can be seen: ${text}`, () => {
      assert.equal(isVisibleLine(text), true);
      assert.equal(isVisibleText(text), true);
    });
  }

  it('is one line without line breaks and tabs, and a text with them', () => {
    for (const text of ['a\nb', 'a\r\nb', 'a\tb']) {
      assert.equal(isVisibleLine(text), false);
      assert.equal(isVisibleText(text), true);
    }
  });
});

describe('a command of the FIX adapter that notes who did something, and why', () => {
  for (const words of [
    ['numbers', '1', '1', 'a\u200bda', 'agreed'],
    ['numbers', '--drop-copy', '1', '1', 'ada', 'agreed\u0085'],
    ['restored', 'a\u202eda', 'a backup'],
    ['release', 'ada', 'compared\u001b[2J'],
    ['settle-finding', '1', 'ada', 'by\u2066phone'],
    ['settle', `ord_${'a'.repeat(20)}`, 'ada', 'by\u0007phone'],
  ]) {
    it(`refuses a text that cannot be seen: ${words[0]}`, async (t) => {
      const said = t.mock.method(console, 'error', () => undefined);
      assert.equal(await fixCommand(words, {}), 2);
      assert.match(String(said.mock.calls[0]?.arguments[0]), /one line of characters that can be seen/);
    });
  }
});
