import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { gatewayOperations } from '../../src/site/gateway-contract.ts';
import { aliases } from '../../src/site/pages/search.ts';
import { Site } from '../../src/site/site.ts';

type Entry = readonly [title: string, href: string, kind: string, text: string, aliases?: string];

/** The functions that the browser loads to search. */
interface SearchScript {
  prepare(index: readonly Entry[]): readonly object[];
  search(prepared: readonly object[], query: string): readonly Entry[];
  excerpt(text: string, query: string): [before: string, match: string, after: string];
}

const site = new Site({
  operations: gatewayOperations,
  environment: 'sandbox',
  baseUrl: () => 'https://marina.example',
  grpcAddress: () => 'marina.example:50051',
});
let script: SearchScript;
let index: readonly Entry[];
let find: (query: string) => readonly Entry[];

before(async () => {
  const source = String((await site.find('/docs/search.js'))?.body);
  script = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  index = JSON.parse(String((await site.find('/docs/search.json'))?.body)) as Entry[];
  const prepared = script.prepare(index);
  find = (query) => script.search(prepared, query);
});

/** Words that newcomers type, and the title of the place that comes first. */
const queries: Readonly<Record<string, string>> = {
  'how do I cancel': 'Cancel order',
  'How do I cancel an order?': 'Cancel order',
  canceled: 'Cancel order',
  cancelled: 'Cancel order',
  cancellation: 'Cancel order',
  retry: 'What to send again',
  retries: 'What to send again',
  'can I retry?': 'What to send again',
  'api key': 'Keys and scopes',
  'API keys': 'Keys and scopes',
  'where is my api key': 'Keys and scopes',
  python: 'Client libraries',
  'node sdk': 'Client libraries',
  'T+1': 'When it settles',
  settlement: 'When it settles',
  naira: 'Money and numbers',
  php: 'Verify before you read',
  java: 'Verify before you read',
  postman: 'Postman, Bruno and other tools',
  withdraw: 'Money in and out',
  'how can I withdraw money': 'Money in and out',
  'go live': 'Go live',
  'going live': 'Go live',
  production: 'Go live',
  pagination: 'Lists',
  'rate limit': 'Limits',
  'buy shares': 'Create order',
  portfolio: 'List positions',
  webhooks: 'Webhooks',
  order_not_found: 'order_not_found',
  changelog: 'Changelog',
  'list all errors': 'All errors',
  '401': 'unauthorized',
  'insufficient funds': 'The order object',
  'bvn format': 'Forms of numbers',
  'document size limit': 'Send document',
  jpeg: 'Send document',
  'how do I get a test key': 'A first call',
  'whitelist ip': 'Keys and scopes',
  'amend order': 'Cancel order',
  'how can I modify an order': 'Cancel order',
  deprecation: 'What can grow',
  ruby: 'Code from the descriptors',
};

describe('the search of the pages', () => {
  for (const [query, title] of Object.entries(queries)) {
    it(`answers "${query}" with ${title} first`, () => {
      assert.equal(
        find(query)[0]?.[0],
        title,
        JSON.stringify(
          find(query)
            .slice(0, 4)
            .map(([each]) => each),
        ),
      );
    });
  }

  it('finds every place by its own title among the first twelve', () => {
    for (const entry of index) {
      assert.ok(
        find(entry[0])
          .slice(0, 12)
          .some(([title]) => title === entry[0]),
        entry[0],
      );
    }
  });

  it('finds what most words of a question name, and nothing for fillers or unknown words', () => {
    assert.equal(find('withdraw to my zzbank')[0]?.[0], 'Create withdrawal');
    for (const query of ['no such thing anywhere', 'zzxyq', '  ', '?']) assert.deepEqual(find(query), [], query);
  });

  it('shows the text around the word that was asked for', () => {
    for (const [query, word] of [
      ['naira', 'naira'],
      ['postman', 'Postman'],
      ['withdraw', 'withdrawal'],
      ['429', '429'],
    ] as const) {
      const shown = find(query)
        .slice(0, 5)
        .map(([, , , text]) => script.excerpt(text, query));
      assert.ok(
        shown.some(([, match]) => match.includes(word)),
        `${query}: ${JSON.stringify(shown)}`,
      );
    }
    const long = `${'before '.repeat(40)}naira${' after'.repeat(40)}`;
    const [start, match, end] = script.excerpt(long, 'naira');
    assert.equal(match, 'naira');
    assert.match(start, /^… before/);
    assert.match(end, /after …$/);
    assert.ok(`${start}${match}${end}`.length < 140);
    assert.deepEqual(script.excerpt('short text', 'other'), ['', '', 'short text']);
  });

  it('has a text for each place, without marks of Markdown', () => {
    for (const [title, , , text] of index) {
      assert.ok(text.length > 0, `${title} has a text`);
      assert.doesNotMatch(text, /\]\(\/|\*\*|\n|`/, title);
    }
  });

  it('names in its aliases only places that there are', () => {
    const known = new Set(index.map(([, href]) => href));
    assert.deepEqual(
      Object.keys(aliases).filter((href) => !known.has(href)),
      [],
    );
  });
});
