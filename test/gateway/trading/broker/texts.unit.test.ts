import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create, type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import { services } from '../../../../src/broker-check/session.ts';
import { withRightTexts, wrongText } from '../../../../src/gateway/trading/broker/rules.ts';
import { ApplicationReportSchema } from '../../../../src/gen/marina/broker/v1/applications_pb.ts';
import { ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { escapedInJson, writtenOut } from '../../../../src/kit/printable.ts';
import { fc } from '../../../support/properties.ts';

/** The fields that lead to a text of a message. */
type Way = readonly DescField[];

/** The ways to all texts of a message, at any depth. */
function waysIn(schema: DescMessage): Way[] {
  return schema.fields.flatMap((field): Way[] => {
    if (field.scalar === ScalarType.STRING) return [[field]];
    const { message } = field;
    return message === undefined ? [] : waysIn(message).map((way) => [field, ...way]);
  });
}

/** A message that has one text, at the end of a way. */
function withText(schema: DescMessage, [field, ...more]: Way, text: string): Message {
  assert.ok(field !== undefined);
  const value = field.message === undefined ? text : withText(field.message, more, text);
  return create(schema, { [field.localName]: field.fieldKind === 'list' ? [value] : value });
}

const answers = Object.values(services).flatMap(({ methods }) => methods.map(({ output }) => output));
const ways = answers.flatMap((output) => waysIn(output).map((way) => [output, way] as const));

const never = ['\u001b[2J', 'a\n', 'a\u0000', '\u007f', '\u0085', '\u202eabc', 'a\u200b', '\u2028', '\ud800', '\ue000'];

describe('the texts that a broker states', () => {
  it('are held to printable characters in every field of every answer and report', () => {
    assert.ok(ways.length > 60, `${ways.length}`);
    for (const [output, way] of ways) {
      const field = way.at(-1)?.name ?? '';
      const isName = field === 'name';
      const wrong = (text: string) => wrongText(output, withText(output, way, text));
      for (const text of ['', 'NGX 1-2/3', '~'.repeat(200)]) assert.equal(wrong(text), undefined, `${output}.${field}`);
      for (const text of [...never, 'x'.repeat(201)]) assert.equal(wrong(text), field, `${output}.${field}: ${text}`);
      for (const text of ['Café Ọjọ́ 株式', '😀'.repeat(200)]) {
        assert.equal(wrong(text), isName ? undefined : field, `${output}.${field}: ${text}`);
      }
    }
  });

  it('are left out of a report of the stream if they are not printable, and the id of its object is written out', () => {
    for (const schema of [ReportSchema, ApplicationReportSchema] as const) {
      for (const text of [...never, 'x'.repeat(201)]) {
        const texts = Object.fromEntries(waysIn(schema).map(([field]) => [field?.localName, text]));
        const report = withRightTexts(schema, create(schema, { ...texts, number: 7n } as never)) as Message;
        const values = Object.entries(report).filter(
          ([, value]) => typeof value === 'string' && value !== schema.typeName,
        );
        assert.equal(wrongText(schema, report), undefined);
        for (const [name, value] of values) {
          if (/^client\w+Id$/.test(name)) assert.match(value as string, /^[ -~]{1,64}$/);
          else assert.equal(value, '', name);
        }
        assert.equal((report as unknown as { number: bigint }).number, 7n);
      }
      const good = create(schema, { number: 1n });
      assert.deepEqual(withRightTexts(schema, good as never), good);
    }
  });

  it('are printable once they are written out, and the same JSON once they are escaped in it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const json = escapedInJson(JSON.stringify(text));
        for (const shown of [writtenOut(text), json]) assert.doesNotMatch(shown, /[\p{C}\p{Zl}\p{Zp}]/u);
        assert.equal(JSON.parse(json), text);
      }),
    );
  });
});
