import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError, catalogue } from '../../src/gateway/edge/errors.ts';
import type { HttpRequest } from '../../src/gateway/edge/http/messages.ts';
import { gatewayOperations } from '../../src/site/gateway-contract.ts';
import { highlight } from '../../src/site/highlight.ts';
import { html } from '../../src/site/html.ts';
import { servicePath } from '../../src/site/links.ts';
import { markdown } from '../../src/site/markdown.ts';
import { Site } from '../../src/site/site.ts';

/** A request of the collection, as far as it is looked at. */
interface SentRequest {
  readonly method: string;
  readonly url: { readonly raw: string; readonly variable: readonly { readonly value: string }[] };
  readonly header: readonly { readonly key: string; readonly value: string }[];
  readonly body: { readonly raw: string };
}

const options = {
  operations: gatewayOperations,
  baseUrl: () => 'https://marina.example',
  grpcAddress: () => 'marina.example:50051',
};

/** A request as the HTTP server gives it to the site, as far as the site reads it. */
function requestFor(path: string, accept: string | undefined, method = 'GET'): HttpRequest {
  const headers = accept === undefined ? {} : { accept };
  return { path, method, exchange: { request: { headers } }, passOver: () => undefined } as unknown as HttpRequest;
}

describe('the site', () => {
  it("a live gateway's site says so, and asks for no key", async () => {
    const text = String((await new Site({ ...options, environment: 'live' }).find('/docs/reference/orders'))?.body);
    assert.ok(text.includes('data-environment="live"'), 'it says live');
    assert.ok(!/id="key"|class="try"/.test(text), 'there is nothing to try');
    assert.ok(text.includes('https://marina.example/v1/orders '), 'its examples are for this gateway');
  });

  it('the site of a gateway that is reached below a path has it in every link', async () => {
    const baseUrl = () => 'https://bank.example/marina';
    const site = new Site({ ...options, baseUrl, environment: 'sandbox' });
    const text = String((await site.find('/docs/reference'))?.body);
    const paths = [...text.matchAll(/ (?:href|src)="(\/[^"]*)"/g)].map(([, path = '']) => path);
    assert.ok(paths.length > 100, 'there are links');
    assert.deepEqual(
      paths.filter((path) => !/^\/marina\/(?:docs|openapi\.json)/.test(path)),
      [],
    );
  });

  it('a page that could not be made once is made when it is asked for again', async () => {
    let isAway = false;
    const operations = gatewayOperations.map((operation) => {
      const get = (of: object, name: string | symbol) => {
        if (isAway) throw new Error('no file can be opened');
        return Reflect.get(of, name);
      };
      return new Proxy<typeof operation>(operation, { get });
    });
    const site = new Site({ ...options, operations, environment: 'live' });
    await site.find('/docs');
    isAway = true;
    for (let times = 0; times < 2; times += 1) await assert.rejects(site.find('/docs/reference/orders'), /no file/);
    isAway = false;
    const page = await site.find('/docs/reference/orders');
    assert.ok(String(page?.body).includes('/v1/orders'));
    assert.equal(await site.find('/docs/reference/orders'), page, 'and is kept from then on');
  });

  it('the site of a gateway with TLS shows programs for gRPC how to use it', async () => {
    const text = String((await new Site({ ...options, environment: 'live' }).find('/docs/grpc'))?.body);
    const shown = text.replaceAll(/<[^>]*>/g, '');
    assert.ok(shown.includes('MARINA_GRPC=marina.example:50051'), 'the address is set');
    assert.ok(!/-plaintext|MARINA_TLS=off/.test(shown), 'the switch for plain text is not');
  });

  it('lists the calls that steer a sandbox where there are any', async () => {
    const ofLive = gatewayOperations.filter(({ http }) => http?.segments[1] !== 'sandbox');
    for (const [operations, count] of [
      [ofLive, 0],
      [gatewayOperations, 1],
    ] as const) {
      const site = new Site({ ...options, operations, environment: 'sandbox' });
      const text = String((await site.find('/docs/sandbox'))?.body);
      assert.equal(text.split('id="steering"').length - 1, count);
    }
  });

  it('has what partners notice of each version, and nothing for operators', async () => {
    const text = String((await new Site({ ...options, environment: 'live' }).find('/docs/changelog'))?.body);
    for (const id of ['unreleased', '0-1-0-2026-11-22']) {
      assert.ok(text.includes(`<h2 id="${id}">`), `${id} has an anchor`);
      assert.ok(text.includes(`href="/docs/changelog#${id}"`), `${id} is linked at the side`);
    }
    assert.ok(text.includes('WatchEvents over gRPC'), 'what partners notice is there');
    assert.ok(!/rights\.sql|For operators/.test(text), 'what operators notice is not');
  });

  it('has no link that leads nowhere', async () => {
    const site = new Site({ ...options, environment: 'sandbox' });
    const pages = new Map<string, string>();
    const wanted = ['/docs'];
    const links: URL[] = [];
    for (let path = wanted.pop(); path !== undefined; path = wanted.pop()) {
      if (pages.has(path)) continue;
      const found = await site.find(path);
      assert.ok(found, `there is ${path}`);
      pages.set(path, String(found.body));
      // Readers of the feed need whole addresses.
      const host = path.endsWith('.atom') ? 'marina.example' : 'docs.test';
      for (const [, href = ''] of (pages.get(path) ?? '').matchAll(/ href="([^"]+)"/g)) {
        const to: URL = new URL(href.replaceAll('&#38;', '&'), `http://docs.test${path}`);
        assert.equal(to.host, host, `${path} links to ${href}`);
        links.push(to);
        wanted.push(to.pathname);
      }
    }
    const broken = links.filter(
      ({ pathname, hash }) =>
        hash !== '' && !pages.get(pathname)?.includes(` id="${decodeURIComponent(hash.slice(1))}"`),
    );
    assert.deepEqual(
      broken.map(({ pathname, hash }) => pathname + hash),
      [],
    );
  });

  it('has the operations of one service, and no others, on each page of the reference', async () => {
    const site = new Site({ ...options, environment: 'sandbox' });
    const paths = new Set(gatewayOperations.map(({ method }) => servicePath(method.parent)));
    for (const path of paths) {
      const text = String((await site.find(path))?.body);
      const operations = gatewayOperations.filter(({ method }) => servicePath(method.parent) === path);
      assert.equal(text.split('class="operation split"').length - 1, operations.length, path);
    }
  });

  it('has each version that is out in a feed, with its day and whole addresses', async () => {
    const feed = (await new Site({ ...options, environment: 'live' }).find('/docs/changelog.atom')) ?? assert.fail();
    const text = String(feed.body);
    assert.equal(feed.contentType, 'application/atom+xml; charset=utf-8');
    assert.match(
      text,
      /<title>Marina 0\.1\.0<\/title><id>urn:uuid:[0-9a-f-]{36}<\/id><link href="https:\/\/marina\.example\/docs\/changelog#0-1-0-2026-11-22"\/>/,
    );
    assert.match(text, /<updated>2026-11-22T00:00:00Z<\/updated>/);
    assert.doesNotMatch(text, /Unreleased|href=&#34;\//);
  });

  it('has a collection of every call of REST, which sends a new Idempotency-Key each time', async () => {
    const site = new Site({ ...options, environment: 'sandbox' });
    const { info, variable, item } = JSON.parse(
      String((await site.find('/docs/marina.postman_collection.json'))?.body),
    );
    assert.match(info.schema, /collection\/v2\.1\.0/);
    assert.deepEqual(variable[0], { key: 'base_url', value: 'https://marina.example', type: 'string' });
    const calls = item.flatMap((folder: { item: { name: string; request: SentRequest }[] }) => folder.item);
    const served = gatewayOperations.filter(({ http }) => http !== undefined);
    assert.equal(calls.length, served.length);
    const order = calls.find(({ name }: { name: string }) => name === 'Create order').request as SentRequest;
    assert.deepEqual([order.method, order.url.raw], ['POST', '{{base_url}}/v1/orders']);
    assert.ok(order.header.some(({ key, value }) => key === 'Idempotency-Key' && value === '{{$guid}}'));
    assert.equal(JSON.parse(order.body.raw).account, '{{account}}');
    assert.doesNotMatch(JSON.stringify(item), /marina_(?:test|live)_/, 'it has no key');
    const cancel = calls.find(({ name }: { name: string }) => name === 'Cancel order').request as SentRequest;
    assert.equal(cancel.url.variable[0]?.value, '{{order_id}}', 'it is about the order that was created before');
  });

  for (const [support, href] of [
    ['api@bank.example', 'mailto:api@bank.example'],
    ['https://bank.example/help', 'https://bank.example/help'],
  ] as const) {
    it(`names ${support} as whom to ask, in the pages and the OpenAPI document`, async () => {
      const site = new Site({ ...options, support, environment: 'live' });
      assert.ok(String((await site.find('/docs'))?.body).includes(`Ask <a href="${href}">${support}</a>.`));
      const { contact } = JSON.parse(String((await site.find('/openapi.json'))?.body)).info;
      assert.ok(Object.values(contact).includes(support), JSON.stringify(contact));
    });
  }

  it('describes each message of a stream, with every field and every way in which it ends', async () => {
    const text = String((await new Site({ ...options, environment: 'live' }).find('/docs/reference/events'))?.body);
    const streams = gatewayOperations.filter(({ method }) => method.methodKind === 'server_streaming');
    assert.ok(streams.length > 0, 'there is a stream');
    for (const { method, output, errors } of streams) {
      const from = text.indexOf(`id="${method.localName}"`);
      const section = text.slice(from, text.indexOf('</section>', from));
      assert.ok(section.includes('Each message'), method.name);
      for (const { name } of output.fields) assert.ok(section.includes(`<code>${name}</code>`), name);
      for (const code of errors) assert.ok(section.includes(`/docs/errors#${code}`), code);
      assert.ok(section.includes('the stream is alive'), 'the comment of a field is there');
    }
  });

  it('shows a browser a page where there is none, and leads it from a path with one slash at its end', async () => {
    const site = new Site({ ...options, environment: 'sandbox' });
    for (const path of [
      '/docs/nothing',
      '/docs/a/b',
      '/docs/missing',
      '/docs/nothing/',
      '/docs//',
      `/docs${'/'.repeat(15_000)}x`,
    ]) {
      const { status, contentType, body, headers = [] } = await site.answer(requestFor(path, 'text/html,*/*'));
      assert.deepEqual([status, contentType], [404, 'text/html; charset=utf-8'], path);
      assert.match(String(body), /<h1>No such page<\/h1>[\s\S]*href="\/docs\/reference"/);
      assert.ok(headers.includes('Content-Security-Policy'), path);
    }
    for (const [path, location] of [
      ['/docs/', '/docs'],
      ['/docs/limits/', '/docs/limits'],
    ] as const) {
      const { status, headers } = await site.answer(requestFor(path, 'text/html'));
      assert.deepEqual([status, headers], [302, ['Location', `https://marina.example${location}`]], path);
    }
  });

  it('answers a program with the error not_found where there is no page', async () => {
    const site = new Site({ ...options, environment: 'sandbox' });
    for (const path of ['/docs/', '/docs/nothing']) {
      for (const accept of ['*/*', 'application/json', undefined]) {
        await assert.rejects(site.answer(requestFor(path, accept)), (error) => {
          assert.ok(error instanceof ApiError);
          return error.code === 'not_found';
        });
      }
      await assert.rejects(site.answer(requestFor(path, 'text/html', 'POST')), ApiError);
    }
  });

  it('has the programs of the guides as tabs of languages', async () => {
    const site = new Site({ ...options, environment: 'sandbox' });
    for (const [path, groups, languages] of [
      ['/docs/clients', 4, ['TypeScript', 'Python']],
      ['/docs/webhooks', 1, ['JavaScript', 'Python', 'Go', 'PHP', 'Java', 'C#']],
      ['/docs/grpc', 1, ['Node', 'Python', 'Go']],
    ] as const) {
      const text = String((await site.find(path))?.body);
      const found = text.split('<div class="samples" data-label="').slice(1);
      assert.equal(found.length, groups, path);
      for (const group of found) {
        const named = [...group.matchAll(/<details class="sample language" data-language="([^"]+)"/g)];
        assert.deepEqual(
          named.map(([, language]) => language),
          languages,
          path,
        );
      }
    }
  });

  it('has every error in one table, with a link to what to do about it', async () => {
    const text = String((await new Site({ ...options, environment: 'live' }).find('/docs/errors'))?.body);
    const table = /<h2 id="all">[\s\S]*?<\/table>/.exec(text)?.[0] ?? '';
    for (const code of Object.keys(catalogue)) assert.ok(table.includes(`href="#${code}"`), code);
    assert.match(table, /rate_limited<\/code><\/a><\/td><td[^>]*>429<\/td><td[^>]*>RESOURCE_EXHAUSTED/);
  });

  it('has a list of what to check before going live', async () => {
    const text = String((await new Site({ ...options, environment: 'live' }).find('/docs/go-live'))?.body);
    for (const word of ['Idempotency-Key', 'marina_live_', 'Before you ask for a live key', 'On the day'])
      assert.ok(text.includes(word), word);
  });

  it('makes a page once, however many ask for it at once', async () => {
    const site = new Site({ ...options, environment: 'sandbox' });
    const [one, other] = await Promise.all([site.find('/docs/errors'), site.find('/docs/errors')]);
    assert.equal(one, other);
    assert.equal(one, await site.find('/docs/errors'));
  });

  it('tries again what could not be made', async () => {
    let isReady = false;
    const baseUrl = () => {
      if (!isReady) throw new Error('the port is not open yet');
      return 'https://marina.example';
    };
    const site = new Site({ ...options, baseUrl, environment: 'sandbox' });
    await assert.rejects(site.find('/docs'), /not open yet/);
    isReady = true;
    assert.ok(await site.find('/docs'), 'it is there now');
  });
});

describe('what is written into a page', () => {
  it('is text, whatever it looks like', () => {
    const evil = `<script>"'&`;
    assert.equal(html`<p title="${evil}">${evil}</p>`.text, `<p title="${escaped}">${escaped}</p>`);
    assert.equal(highlight(evil, 'nothing').text, escaped);
    assert.doesNotMatch(markdown('<img src=x onerror=alert(1)> and `<b>`').text, /<(?:img|b)\b/);
  });

  it('is code with its parts marked, and no letter lost', () => {
    const marked = highlight('{"a": [1, "b", null]}', 'json').text;
    assert.match(marked, /<span class="m">&#34;a&#34;<\/span>: \[<span class="n">1<\/span>/);
    assert.equal(marked.replace(/<[^>]*>/g, '').replaceAll('&#34;', '"'), '{"a": [1, "b", null]}');
  });
});

const escaped = '&#60;script&#62;&#34;&#39;&#38;';
