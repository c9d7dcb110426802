import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { maxLookupBytes } from '../../../src/fix-adapter/template/lookup-file.ts';
import {
  noTemplate,
  type OrderTemplate,
  parseFieldList,
  parseTemplate,
} from '../../../src/fix-adapter/template/parse.ts';
import { readTemplate } from '../../../src/fix-adapter/template/settings.ts';
import { temporaryFolder } from '../../support/folders.ts';

const party = '453=1|448=FIRM|447=D|452=1';

/** Reads a template from files with these texts, and its faults. */
function read({
  fields = '',
  template,
  lookups,
}: {
  fields?: string;
  template?: string | undefined;
  lookups?: string | undefined;
}) {
  const folder = temporaryFolder();
  const fileOf = (name: string, text: string | undefined) => {
    if (text === undefined) return undefined;
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const problems: string[] = [];
  const files = {
    orderFields: fields === '' ? noTemplate : parseFieldList(fields),
    orderTemplateFile: fileOf('template', template),
    orderLookupFile: fileOf('lookups', lookups),
  };
  return { found: readTemplate(files, problems), problems };
}

describe('the template that is set', () => {
  it('the template is that of the fields or of the file, and none if neither is set', () => {
    assert.deepEqual(read({}), { found: noTemplate, problems: [] });
    assert.deepEqual(read({ fields: party }), { found: parseFieldList(party), problems: [] });
    const text = party.replaceAll('|', '\n');
    const { found, problems } = read({ template: text });
    assert.deepEqual([found, problems], [parseTemplate(text), []]);
    assert.equal(found.order.length, 4);
  });

  it('a template without fields of its own is none, also if it is not set at all', () => {
    const problems: string[] = [];
    const files = {
      orderFields: undefined as unknown as OrderTemplate,
      orderTemplateFile: undefined,
      orderLookupFile: undefined,
    };
    assert.deepEqual([readTemplate(files, problems), problems], [noTemplate, []]);
  });

  it('both kinds of a template at once are a fault', () => {
    const { problems } = read({ fields: party, template: party.replaceAll('|', '\n') });
    assert.deepEqual(problems, ['MARINA_FIX_ORDER_FIELDS and MARINA_FIX_ORDER_TEMPLATE_FILE must not both be set']);
  });

  it('a file that makes no sense is a fault under the name of its setting, and leaves no template', () => {
    const wrong = read({ template: 'nonsense' });
    assert.deepEqual([wrong.found, wrong.problems.length], [noTemplate, 1]);
    assert.match(wrong.problems[0] ?? '', /^MARINA_FIX_ORDER_TEMPLATE_FILE /);
    const problems: string[] = [];
    readTemplate({ orderFields: noTemplate, orderTemplateFile: '/nowhere', orderLookupFile: undefined }, problems);
    assert.match(problems[0] ?? '', /^MARINA_FIX_ORDER_TEMPLATE_FILE .*ENOENT/);
    const folder: string[] = [];
    readTemplate({ orderFields: noTemplate, orderTemplateFile: temporaryFolder(), orderLookupFile: undefined }, folder);
    assert.match(folder[0] ?? '', /must name a regular file/);
  });

  it('a file is as large as it may be, and no byte larger', () => {
    const comment = `${party.replaceAll('|', '\n')}\n`;
    const filled = (bytes: number) => `${comment}#${' '.repeat(bytes - comment.length - 1)}`;
    assert.doesNotMatch(read({ template: filled(maxLookupBytes) }).problems.join(), /regular file/);
    assert.match(read({ template: filled(maxLookupBytes + 1) }).problems.join(), /regular file of at most/);
  });

  it('placeholders of a lookup need its file, and a file needs placeholders', () => {
    const { problems, found } = read({ fields: '581={account.type}' });
    assert.equal(problems.length, 1);
    assert.match(problems[0] ?? '', /^MARINA_FIX_ORDER_LOOKUP_FILE /);
    assert.equal(found.order.length, 1);
    const nonsense = read({ fields: party, lookups: 'nonsense' });
    assert.equal(nonsense.problems.length, 1);
    assert.match(nonsense.problems[0] ?? '', /^MARINA_FIX_ORDER_LOOKUP_FILE /);
  });
});
