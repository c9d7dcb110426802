import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { addressOf, safeLine } from '../../clients/typescript/src/listen/printer.ts';

const key = 'marina_test_abcDEF-123_456';
const secret = 'whsec_AAAA+/bbbb==';

describe('the lines that marina-listen prints', () => {
  it('show every character that a terminal acts on as its number', () => {
    const safe = safeLine([]);
    const cases: [string, string][] = [
      ['\x1b[2J\x1b[31mred', '\\u{1b}[2J\\u{1b}[31mred'],
      ['\x1b]0;title\x07', '\\u{1b}]0;title\\u{7}'],
      ['\x1b]52;c;ZWNobw==\x1b\\', '\\u{1b}]52;c;ZWNobw==\\u{1b}\\'],
      ['one\r\ntwo\ttabs\b\x7f', 'one\\u{d}\\u{a}two\\u{9}tabs\\u{8}\\u{7f}'],
      ['\x9b31mC1', '\\u{9b}31mC1'],
      ['\u202egnp.exe\u2066\u200f', '\\u{202e}gnp.exe\\u{2066}\\u{200f}'],
      ['zero\u200bwidth\ufeff\u2060', 'zero\\u{200b}width\\u{feff}\\u{2060}'],
      ['line\u2028paragraph\u2029', 'line\\u{2028}paragraph\\u{2029}'],
      ['half \ud800 tag \u{e0041} private \ue000', 'half \\u{d800} tag \\u{e0041} private \\u{e000}'],
      ['no-break\u00a0space', 'no-break\\u{a0}space'],
      ['e\u0301\u0301\u20dd\ufe0f', 'e\\u{301}\\u{301}\\u{20dd}\\u{fe0f}'],
      ['nothing \u3164\u115f\uffa0\u2800 there', 'nothing \\u{3164}\\u{115f}\\u{ffa0}\\u{2800} there'],
      ['₦ é 中 😀 as they are', '₦ é 中 😀 as they are'],
    ];
    for (const [text, expected] of cases) assert.equal(safe(text), expected);
  });

  it('have no character outside the printable ones, whatever stood there', () => {
    const safe = safeLine([key]);
    for (let first = 0; first < 0x3000; first += 256) {
      const all = String.fromCodePoint(...Array.from({ length: 256 }, (_, at) => first + at));
      assert.doesNotMatch(safe(all), /[\p{C}\p{M}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u);
    }
  });

  it('hide the key and the secret of this run, also as part of an address', () => {
    const safe = safeLine([key, secret, 'another-secret-text']);
    const line = `sent ${key} with ${secret} and ${encodeURIComponent(secret)}, another-secret-text.`;
    assert.equal(safe(line), 'sent [hidden] with [hidden] and [hidden], [hidden].');
  });

  it('hide every text that has the form of a key or a secret', () => {
    const safe = safeLine([undefined, '', 'a']);
    assert.equal(safe('Unexpected argument marina_live_x9-Y_z'), 'Unexpected argument [hidden]');
    assert.equal(safe(`{"secret":"${secret}"}`), '{"secret":"[hidden]"}');
    assert.equal(safe('has to be `whsec_` and base64'), 'has to be `whsec_` and base64', 'a prefix is no secret');
    assert.equal(safe('a banana'), 'a banana', 'a short text is no secret');
  });

  it('are cut, whatever they have', () => {
    const line = safeLine([])('x'.repeat(100_000));
    assert.equal(line, `${'x'.repeat(500)}…`);
    assert.ok(safeLine([])('\x1b'.repeat(100_000)).length < 4_000);
  });

  it('name an address without its password and query', () => {
    assert.equal(addressOf(new URL('http://me:pw@127.0.0.1:3000/hooks?token=abc#x')), 'http://127.0.0.1:3000/hooks');
  });
});
