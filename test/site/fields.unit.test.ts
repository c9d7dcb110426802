import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getOption } from '@bufbuild/protobuf';
import { field as fieldOption } from '../../src/gen/marina/options/v1/options_pb.ts';
import { readComments } from '../../src/site/comments.ts';
import { answerMembers, isObject, objectLink, requestFields } from '../../src/site/fields.ts';
import { gatewayOperations } from '../../src/site/gateway-contract.ts';

const comments = readComments();

function operationOf(name: string) {
  const operation = gatewayOperations.find(({ method }) => method.localName === name);
  assert.ok(operation, name);
  return operation;
}

const inputOf = (name: string) => operationOf(name).input.fields;
/** The entries of a list of fields, by their names. */
function entries(text: string): Map<string, string> {
  const found = text.split('<li><div class="field"><code>').slice(1);
  return new Map(found.map((each) => [/^(\w+)</.exec(each)?.[1] ?? '', each]));
}

describe('the fields of the reference', () => {
  it('each field of a request says whether it is required, by its rules', () => {
    const words = new Set<string>();
    for (const { input, file } of gatewayOperations) {
      // The bytes of a file are no field of JSON.
      if (file !== undefined) continue;
      const shown = entries(requestFields(input.fields, comments).text);
      for (const field of input.fields) {
        const { required, onlyWith, defaultValue } = getOption(field, fieldOption);
        const word = required ? 'required' : onlyWith !== '' ? 'sometimes-required' : 'optional';
        words.add(word);
        const text = shown.get(field.name)?.split('</div>')[0] ?? '';
        assert.ok(text.includes(`<span class="${word}">`), `${input.name}.${field.name}`);
        assert.equal(text.includes('class="default"'), defaultValue !== undefined, `${input.name}.${field.name}`);
      }
    }
    assert.deepEqual([...words].sort(), ['optional', 'required', 'sometimes-required']);
  });

  it('a field has its type, its few words, or how many words there are', () => {
    const order = entries(requestFields(inputOf('createOrder'), comments).text);
    assert.match(order.get('account') ?? '', /<span class="type">text<\/span>/);
    assert.match(order.get('quantity') ?? '', /<span class="type">integer<\/span>/);
    assert.match(order.get('side') ?? '', /<span class="type"><code>buy<\/code> or <code>sell<\/code><\/span>/);
    assert.match(order.get('side') ?? '', /<summary>2 values<\/summary><ul class="values"><li><code>buy<\/code> /);
    const key = entries(requestFields(inputOf('createKey'), comments).text);
    assert.match(key.get('scopes') ?? '', /<span class="type">list of one of \d+<\/span>/);
    assert.match(key.get('addresses') ?? '', /<span class="type">list of text<\/span>/);
  });

  it('an answer says what its object is, which members may be null, and links to the objects in it', () => {
    const output = operationOf('getOrder').output;
    const text = answerMembers(output, comments).text;
    assert.match(
      text,
      /^<ul class="fields"><li><div class="field"><code>object<\/code><span class="type">text<\/span><\/div><p>Always <code>order<\/code>\.<\/p>/,
    );
    const order = entries(text);
    assert.match(order.get('price_kobo') ?? '', /or null/);
    assert.doesNotMatch(order.get('id') ?? '', /or null/);
    assert.match(order.get('created_at') ?? '', /<span class="type">timestamp<\/span>/);
    const page = answerMembers(operationOf('listOrders').output, comments).text;
    assert.match(page, new RegExp(`list of <a href="/docs/reference/orders#object-${output.name}">${output.name}</a>`));
    assert.equal(objectLink(output).text, `<a href="/docs/reference/orders#object-${output.name}">${output.name}</a>`);
  });

  it('a message is described by itself if it is an object, and not as a list or a part', () => {
    assert.deepEqual(
      [isObject(operationOf('getOrder').output), isObject(operationOf('listOrders').output)],
      [true, false],
    );
    assert.equal(isObject(operationOf('createOrder').input), false);
  });

  it('the parts of an answer that are no objects are described inside it', () => {
    const all = gatewayOperations.map(({ output }) => answerMembers(output, comments).text).join('');
    assert.match(all, /<details><summary>Members of <code>\w+<\/code><\/summary><ul class="fields">/);
    assert.match(all, /<span class="type">decimal text<\/span>/);
    assert.match(all, /<span class="type">date<\/span>/);
  });
});
