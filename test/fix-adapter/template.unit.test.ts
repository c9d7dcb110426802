/** The template of fields that a broker asks for. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { readFixConfig } from '../../src/fix-adapter/config.ts';
import { cancelRequest, newOrder, statusRequest } from '../../src/fix-adapter/orders/requests.ts';
import { LookupFile } from '../../src/fix-adapter/template/lookup-file.ts';
import { noLookups, parseLookups } from '../../src/fix-adapter/template/lookups.ts';
import { parseFieldList, parseTemplate } from '../../src/fix-adapter/template/parse.ts';
import { MissingValue, personalTags, renderer } from '../../src/fix-adapter/template/render.ts';
import { Framing } from '../../src/fix-adapter/wire/framing.ts';
import { encode } from '../../src/fix-adapter/wire/message.ts';
import { createLogger } from '../../src/kit/log.ts';
import { fixOrder } from '../support/fix-order.ts';
import { fc } from '../support/properties.ts';

const whole = `# what the broker asks for
453=2
448={account.cscs}
447=D
452=24
448={partner}-{partner.desk}
447=D
452=12

[order]
528={partner.capacity}
581=1
63=3
386=1
336={symbol.session}
[order cancel]
5001={side}{symbol}
[status]
5002={order}
`;
const lookupText = `# accounts
account=NG-1|cscs=C 0123|type=1
partner=par_a|capacity=A|desk=7
symbol=MTNN|session=MAIN
`;
const symbolOf = (symbol: string) => `${symbol}.NG`;
const order = fixOrder({ partner: 'par_a' });

function render(template: string, lookups = lookupText) {
  return renderer(parseTemplate(template), () => parseLookups(lookups), symbolOf);
}

describe('the template of order fields', () => {
  const folder = mkdtempSync(join(tmpdir(), 'marina-fix-template-'));
  after(() => rmSync(folder, { recursive: true }));

  it('fills in literal values, facts of the order and values of its account, partner and symbol', () => {
    const more = render(whole);
    const text = (use: 'order' | 'cancel' | 'status') =>
      more(use, order)
        .map((field) => field.join('='))
        .join('|');
    const parties = '453=2|448=C 0123|447=D|452=24|448=par_a-7|447=D|452=12';
    assert.equal(text('order'), `${parties}|528=A|581=1|63=3|386=1|336=MAIN|5001=1MTNN.NG`);
    assert.equal(text('cancel'), `${parties}|5001=1MTNN.NG`);
    assert.equal(text('status'), `${parties}|5002=ord_a`);
  });

  const wrong: readonly [what: string, template: string, expected: RegExp][] = [
    ['an unknown placeholder', '5001={price}', /line 1 must not have the placeholder \{price\}/],
    ['a lookup by something else', '5001={broker.id}', /placeholder \{broker\.id\}/],
    ['a brace without its other one', '5001={account', /only around a placeholder/],
    ['a tag of the header', '5001=x\n50=DESK', /line 2 must not have tag 50/],
    ['a tag of the trailer', '10=000', /must not have tag 10/],
    ['a tag that the adapter writes', '38=5', /must not have tag 38, which the adapter writes/],
    ['a stop price', '99=1.00', /another order/],
    ['a field of bytes', '354=3', /field of bytes/],
    ['a group with fewer entries than its count', '453=2\n448=A\n447=D\n452=1', /2 entries in NoPartyIDs/],
    ['a group with more entries than its count', '453=1\n448=A\n447=D\n452=1\n448=B', /as its count says, 1/],
    ['a group whose count is not literal', '386={account}\n336=A', /count of 1 to 99/],
    ['members in another order', '453=1\n448=A\n452=1\n447=D', /in the order 448, 447, 452, 802/],
    ['a member twice in an entry', '453=1\n448=A\n447=D\n447=D', /each once/],
    ['an entry that begins with another field', '453=1\n447=D\n448=A', /entry 1 does not begin with tag 448/],
    ['a member without its group', '448=A', /tag 448 in its repeating group/],
    ['a group inside a group with a wrong count', '453=1\n448=A\n802=2\n523=x', /2 entries in NoPartySubIDs/],
    ['a tag twice', '528=A\n[order]\n528=P', /tag 528 twice.*\[order\]/],
    ['an empty value', '528=', /tag=value/],
    ['a value that is not printable', '528=A\x01', /printable/],
    ['a value outside ASCII', '528=é', /printable/],
    ['a message that there is not', '[replace]\n528=A', /must name messages/],
    ['too many fields', Array.from({ length: 101 }, (_, at) => `${5000 + at}=x`).join('\n'), /at most 100/],
  ];
  for (const [what, template, expected] of wrong) {
    it(`refuses ${what}`, () => assert.throws(() => parseTemplate(template), expected));
  }

  it('keeps the spaces at the end of a value, and leaves out those before a field', () => {
    const { order: fields } = parseTemplate('  5001=desk 7  \r\n');
    assert.deepEqual(fields, [{ tag: 5001, parts: [{ kind: 'text', text: 'desk 7  ' }] }]);
  });

  it('reads the fields of MARINA_FIX_ORDER_FIELDS as a template of all messages', () => {
    const template = parseFieldList('453=1|448=FIRM|447=D|452=1');
    assert.deepEqual(template.order, template.cancel);
    assert.deepEqual(template.order, template.status);
    assert.throws(() => parseFieldList('453=2|448=FIRM|447=D|452=1'), /2 entries/);
  });

  it('makes no message without a value for each placeholder, and names the placeholder alone', () => {
    const more = render(whole);
    const missing = (changed: Partial<typeof order>, placeholder: string) =>
      assert.throws(
        () => more('order', { ...order, ...changed }),
        (error) => error instanceof MissingValue && error.placeholder === placeholder && !/NG-9/.test(error.message),
      );
    missing({ account: 'NG-9' }, '{account.cscs}');
    missing({ partner: '' }, '{partner}');
    missing({ partner: 'par_b' }, '{partner.desk}');
    missing({ symbol: 'ZZZ' }, '{symbol.session}');
  });

  it('always makes well-formed messages, and no order with a placeholder that was not filled in', () => {
    const part = fc.oneof(
      fc.stringMatching(/^[ -z|~]{1,12}$/),
      fc.constantFrom('{account}', '{partner}', '{symbol}', '{side}', '{order}', '{account.cscs}', '{partner.desk}'),
    );
    const value = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(''));
    const lines = fc.uniqueArray(fc.tuple(fc.integer({ min: 5000, max: 9999 }), value), {
      selector: ([tag]) => tag,
      maxLength: 8,
    });
    const looked = fc.option(fc.stringMatching(/^[!-z]([ -z]{0,20}[!-z])?$/), { nil: undefined });
    fc.assert(
      fc.property(lines, looked, looked, fc.boolean(), (fields, cscs, desk, hasPartner) => {
        const parties = '453=1\n448={account.cscs}\n447=D\n452=24\n';
        const template = `${parties}${fields.map((field) => field.join('=')).join('\n')}`;
        const lookups = [
          ...(cscs === undefined ? [] : [`account=NG-1|cscs=${cscs}`]),
          ...(desk === undefined ? [] : [`partner=par_a|desk=${desk}`]),
        ].filter((line) => line.split('|').length === 2);
        let known = noLookups;
        try {
          known = parseLookups(lookups.join('\n'));
        } catch {
          return;
        }
        const more = renderer(parseTemplate(template), () => known, symbolOf);
        const style = { symbols: new Map(), more, nameLength: 70, toPrice: String };
        const one = { ...order, partner: hasPartner ? 'par_a' : '' };
        const messages = [
          () => newOrder(one, style, 0),
          () => cancelRequest({ id: 'ord_a.c1' }, one, style, 0),
          () => statusRequest('q', one, style),
        ];
        for (const make of messages) {
          let made: ReturnType<typeof make>;
          try {
            made = make();
          } catch (error) {
            assert.ok(error instanceof MissingValue);
            continue;
          }
          const header = [
            [35, 'D'],
            [34, '1'],
          ] as const;
          const [framed] = new Framing().push(encode('FIXT.1.1', [...header, ...made]));
          assert.ok(framed !== undefined && 'message' in framed && framed.message.isWhole);
          const read = framed.message.fields.filter(([tag]) => ![8, 9, 10, 34, 35].includes(tag));
          assert.deepEqual(read, made);
          assert.ok(!made.some(([, text]) => /\{[^}]*\}/.test(text)), 'a placeholder was not filled in');
          assert.ok(known.valueOf('account', 'NG-1', 'cscs') !== undefined, 'an order went out without its investor');
        }
      }),
    );
  });

  it('has the message log mask what is looked up by account, but for fields that say nothing of a person', () => {
    assert.deepEqual(
      personalTags(parseTemplate('5001={account.cscs}\n581={account.type}\n528={partner.capacity}')),
      [5001],
    );
    assert.deepEqual(personalTags(parseTemplate('453=1\n448={account.cscs}\n447=D\n452=24')), []);
    assert.deepEqual(personalTags(parseTemplate('453=1\n448={account.cscs}\n447=D\n452=4')), [448]);
    assert.deepEqual(personalTags(parseTemplate('453=1\n448={account.cscs}\n447=D\n452={account.role}')), [448]);
  });

  it('refuses a wrong lookup file by the number of its line, and shows nothing of the line', () => {
    const texts = ['account=NG-1', 'account=NG-1|cscs=', 'broker=x|cscs=secret', 'account=NG-1|cscs=a|cscs=secret'];
    for (const text of [...texts, 'account=NG-1|cscs=secret{x}', 'account=NG-1|cscs=a\naccount=NG-1|cscs=secret']) {
      assert.throws(
        () => parseLookups(text),
        (error: Error) => /^line \d /.test(error.message) && !/NG-1|secret/.test(error.message),
      );
    }
  });

  const needed = {
    MARINA_FIX_ADDRESS: 'exchange:9000',
    MARINA_FIX_SENDER_COMP_ID: 'MARINA',
    MARINA_FIX_TARGET_COMP_ID: 'EXCHANGE',
    MARINA_FIX_DATABASE_URL: 'mysql://fix:secret@database/marina_fix',
    MARINA_FIX_BACK_OFFICE_ADDRESS: 'office:50061',
  };
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };

  it('is checked together with its lookup file when the settings are read', () => {
    const template = { ...needed, MARINA_FIX_ORDER_TEMPLATE_FILE: file('template', whole) };
    const lookups = { MARINA_FIX_ORDER_LOOKUP_FILE: file('lookups', lookupText) };
    assert.equal(readFixConfig({ ...template, ...lookups }).orderTemplate.order.length, 13);
    assert.throws(() => readFixConfig(template), /MARINA_FIX_ORDER_LOOKUP_FILE must have a value of \{account\.cscs\}/);
    const less = { MARINA_FIX_ORDER_LOOKUP_FILE: file('less', 'account=NG-1|cscs=x\n') };
    assert.throws(
      () => readFixConfig({ ...template, ...less }),
      /a value of \{partner\.desk\} for at least one partner/,
    );
    const both = { ...template, ...lookups, MARINA_FIX_ORDER_FIELDS: '528=A' };
    assert.throws(() => readFixConfig(both), /must not both be set/);
    const wrong = { ...needed, MARINA_FIX_ORDER_TEMPLATE_FILE: file('wrong', '11=x') };
    assert.throws(() => readFixConfig(wrong), /MARINA_FIX_ORDER_TEMPLATE_FILE line 1 must not have tag 11/);
    const nowhere = { ...needed, MARINA_FIX_ORDER_TEMPLATE_FILE: join(folder, 'nowhere') };
    assert.throws(() => readFixConfig(nowhere), /MARINA_FIX_ORDER_TEMPLATE_FILE ENOENT/);
  });

  it('uses a changed lookup file once it has stopped changing, and keeps the former values of one that is wrong', async () => {
    const logged: string[] = [];
    const write = (line: string) => void logged.push(line);
    const log = createLogger({ name: 'fix', level: 'info', destination: { write } });
    const path = file('changing', 'account=NG-1|cscs=first\n');
    const looked = await LookupFile.open(path, parseTemplate('5001={account.cscs}'), log);
    const value = () => looked.current.valueOf('account', 'NG-1', 'cscs');
    file('changing', 'account=NG-1|cscs=second-one\n');
    await looked.check();
    assert.equal(value(), 'first');
    await looked.check();
    assert.equal(value(), 'second-one');
    file('changing', 'account=NG-1|another-secret\n');
    for (let count = 0; count < 3; count += 1) await looked.check();
    assert.equal(value(), 'second-one');
    const refusals = logged.filter((line) => line.includes('is refused'));
    assert.equal(refusals.length, 1);
    assert.ok(!refusals[0]?.includes('another-secret'));
    rmSync(path);
    for (let count = 0; count < 3; count += 1) await looked.check();
    assert.equal(value(), 'second-one');
    file('changing', 'account=NG-1|cscs=third\n');
    for (let count = 0; count < 2; count += 1) await looked.check();
    assert.equal(value(), 'third');
  });
});
