import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { splitStart } from '../../../../src/gateway/edge/json/start.ts';

describe('the beginning of a JSON object', () => {
  for (const [name, text, whole, cut] of [
    ['is split at its last whole member', '{"id":"a","type":"b","content":"AAAA', '{"id":"a","type":"b"}', 'content'],
    ['has no whole member if the first one is cut', ' {"content" : "AAAA', ' {}', 'content'],
    ['names nothing if the cut is in a name', '{"id":"a","cont', '{"id":"a"}', undefined],
    ['names nothing if the cut is behind a name', '{"id":"a","content"', '{"id":"a"}', undefined],
    ['names nothing if the cut is behind a comma', '{"id":"a",', '{"id":"a"}', undefined],
    ['is whole if only white space is cut', '{"id":"a"} \n  ', '{"id":"a"}', undefined],
    ['keeps a text that ends before white space', '{"id":"a"  ', '{"id":"a"}', undefined],
    ['keeps an object that ends before white space', '{"a":1,"b":{"c":2} ', '{"a":1,"b":{"c":2}}', undefined],
    ['drops a number, which may be cut', '{"id":"a","b":12', '{"id":"a"}', 'b'],
    ['keeps commas and brackets of texts', '{"id":"a,}\\",{","content":"A', '{"id":"a,}\\",{"}', 'content'],
    [
      'keeps commas of lists and of objects in it',
      '{"a":[1,{"b":2,"c":3}],"d":4,"e":[5,',
      '{"a":[1,{"b":2,"c":3}],"d":4}',
      'e',
    ],
    ['reads a name with escapes', '{"\\u0063ontent":"A', '{}', 'content'],
    ['keeps characters of several bytes', '{"id":"Ọlá","content":"é', '{"id":"Ọlá"}', 'content'],
    ['is none if it does not begin as one', 'AAAA', '{}', undefined],
    ['is empty', '', '{}', undefined],
    ['closes no object with a bracket too many', '{"a":1}]}', '{"a":1}', undefined],
    ['names nothing if the escapes of a name are wrong', '{"\\x":"A', '{}', undefined],
  ] as const) {
    it(name, () => {
      const start = splitStart(Buffer.from(text));
      assert.deepEqual([start.whole.toString(), start.cut], [whole, cut]);
    });
  }

  it('may be cut within a character', () => {
    const bytes = Buffer.from('{"id":"a","content":"é');
    assert.equal(splitStart(bytes.subarray(0, -1)).whole.toString(), '{"id":"a"}');
  });
});
