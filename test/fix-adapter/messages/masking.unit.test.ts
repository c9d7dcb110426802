import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { alwaysMasked } from '../../../src/fix-adapter/messages/masked-tags.ts';
import { Masking, maxTextLength } from '../../../src/fix-adapter/messages/masking.ts';
import { subjectOf } from '../../../src/fix-adapter/messages/subject.ts';
import { cancelName, orderName } from '../../../src/fix-adapter/orders/names.ts';
import { lengthOf } from '../../../src/fix-adapter/wire/data-fields.ts';
import { decode, type Field } from '../../../src/fix-adapter/wire/message.ts';
import { fc } from '../../support/properties.ts';

const soh = '\x01';
/** Its letters are in no tag and in no mask, so that one of them in a text is a leak. */
const secret = fc.stringMatching(/^[A-Z]{4,40}$/);
const credentialTags = [89, 96, 554, 925, 1402, 1404] as const;
const quiet = new Masking({ moreTags: [], secrets: () => [] });

/** Any other field, whose values share no character with a secret. */
const field = fc.tuple(
  fc.integer({ min: 11, max: 20_000 }).filter((tag) => !lengthOf.has(tag) && ![34, 35].includes(tag)),
  fc.stringMatching(/^[a-z0-9 |\\.]{1,30}$/),
);

function textOf(masking: Masking, bytes: string): string {
  const { fields, isWhole } = decode(Buffer.from(bytes, 'latin1'));
  return masking.text(fields, isWhole ? undefined : 'what follows cannot be read');
}

function assertHides(text: string, word: string): void {
  assert.ok(!/[A-Z]/.test(text), `${text} shows a part of ${word}`);
}

describe('the text of a message in the log', () => {
  it('shows no byte of a credential, wherever its field stands', () => {
    fc.assert(
      fc.property(
        fc.array(field, { maxLength: 8 }),
        fc.constantFrom(...credentialTags),
        secret,
        fc.nat(),
        fc.constantFrom('', '0', '000'),
        (fields, tag, word, place, zeros) => {
          const texts = fields.map(([each, value]) => `${each}=${value}${soh}`);
          texts.splice(place % (texts.length + 1), 0, `${zeros}${tag}=${word}${soh}`);
          assertHides(textOf(quiet, `35=a${soh}${texts.join('')}`), word);
        },
      ),
    );
  });

  it('shows no byte of a credential in a field of bytes, also if a separator and another field are in it', () => {
    fc.assert(
      fc.property(fc.constantFrom(...lengthOf), secret, secret, ([lengthTag, tag], word, other) => {
        const value = `${word}${soh}58=${other}`;
        const text = textOf(quiet, `35=a${soh}${lengthTag}=${value.length}${soh}${tag}=${value}${soh}58=end${soh}`);
        assertHides(text, value);
        assert.match(text, /58=end$/);
      }),
    );
  });

  it('shows no byte of a credential in a message that cannot be read, wherever it stops to be one', () => {
    fc.assert(
      fc.property(secret, fc.nat(), fc.constantFrom(...credentialTags), (word, at, tag) => {
        const bytes = `35=a${soh}58=one${soh}95=10${soh}${tag}=${word}${soh}abc=1${soh}96=${word}${soh}58=${word}`;
        const cut = bytes.slice(0, at % (bytes.length + 1));
        // Also where the separator before it was lost.
        for (const broken of [bytes, cut, bytes.replace(`${soh}${tag}`, `${tag}`)]) {
          assertHides(textOf(quiet, broken.replace(`58=${word}`, '')), word);
        }
      }),
    );
  });

  it("shows no byte of the session's own passwords in any value, and none of a part that was cut off", () => {
    fc.assert(
      fc.property(secret, fc.nat({ max: maxTextLength + 100 }), field, (word, before, [tag, value]) => {
        const masking = new Masking({ moreTags: [], secrets: () => [word] });
        const text = masking.text([
          [58, `${'a'.repeat(before)}${word}${value}`],
          [tag, `${word}${word}`],
        ]);
        assertHides(text, word);
        assert.ok(text.length <= maxTextLength);
        assertHides(masking.value(`x${word}`), word);
      }),
    );
  });

  it('masks each field of credentials and personal data, and those that a setting adds', () => {
    const masking = new Masking({ moreTags: [58, 5_001], secrets: () => [] });
    for (const tag of [...alwaysMasked.keys(), ...lengthOf.values(), 58, 5_001]) {
      assert.equal(masking.text([[tag, 'ADE']]), `${tag}=***`);
    }
    assert.equal(
      quiet.text([
        [1, 'NG-1'],
        [58, 'unknown account'],
      ]),
      '1=NG-1|58=unknown account',
    );
  });

  it('shows the id of a party only if its role is that of a firm', () => {
    const group: Field[] = [
      [453, '3'],
      ...[
        [448, 'FIRM'],
        [447, 'D'],
        [452, '1'],
      ].map(([tag, value]): Field => [Number(tag), String(value)]),
      [448, 'ADE'],
      [447, 'D'],
      [452, '3'],
      [448, 'NOBODY'],
    ];
    assert.equal(quiet.text(group), '453=3|448=FIRM|447=D|452=1|448=***|447=D|452=3|448=***');
    assert.equal(
      quiet.text([
        [448, 'ADE'],
        [448, 'FIRM'],
        [452, '1'],
      ]),
      '448=***|448=FIRM|452=1',
    );
  });

  it('has one line of printable ASCII, in which a separator can be told from a value', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 100 }), (bytes) => {
        const text = quiet.text([[58, Buffer.from(bytes).toString('latin1')]]);
        assert.match(text, /^58=[ -{}~]*$/);
      }),
    );
    assert.equal(quiet.text([[58, 'a|b\\c\x01']]), '58=a\\x7cb\\x5cc\\x01');
  });
});

describe('the order that a message is about', () => {
  it('is found by ClOrdID, by OrigClOrdID, by the id of a cancel, and by BusinessRejectRefID', () => {
    assert.deepEqual(subjectOf([[11, 'ord_a']]), { orderId: 'ord_a', clOrdId: 'ord_a' });
    assert.deepEqual(
      subjectOf([
        [11, 'ord_a.c12'],
        [41, 'ord_a'],
      ]),
      { orderId: 'ord_a', clOrdId: 'ord_a.c12' },
    );
    assert.deepEqual(subjectOf([[11, 'ord_a.c2']]), { orderId: 'ord_a', clOrdId: 'ord_a.c2' });
    assert.deepEqual(subjectOf([[41, 'ord_a.c1']]), { orderId: 'ord_a', clOrdId: '' });
    assert.deepEqual(subjectOf([[379, 'ord_b.c1']]), { orderId: 'ord_b', clOrdId: '' });
    assert.deepEqual(subjectOf([[58, 'x']]), { orderId: '', clOrdId: '' });
  });

  it('is found by the short names that an order and its cancels have at an exchange that takes 20 characters', () => {
    const id = 'ord_k3n5q7t2w4y6a2c4e6g2';
    const [name = '', cancel = ''] = [orderName(id, 20), cancelName(id, 3, 20)];
    assert.deepEqual([name.length, cancel.length], [20, 20]);
    assert.deepEqual(subjectOf([[11, name]]), { orderId: id, clOrdId: name });
    assert.deepEqual(subjectOf([[11, cancel]]), { orderId: id, clOrdId: cancel });
    assert.deepEqual(
      subjectOf([
        [11, cancel],
        [41, name],
      ]),
      { orderId: id, clOrdId: cancel },
    );
  });
});
