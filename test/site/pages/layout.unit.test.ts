import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gatewayOperations } from '../../../src/site/gateway-contract.ts';
import { html } from '../../../src/site/html.ts';
import {
  methodMark,
  type NavigationLink,
  type PageFrame,
  type PageParts,
  wholePage,
} from '../../../src/site/pages/layout.ts';
import { tryPanel } from '../../../src/site/pages/try.ts';

const page: PageParts = {
  path: '/docs/a',
  title: 'A <b>',
  lead: 'What "a" is',
  content: html`<p><a href="/docs/b">b</a></p>`,
};

function frame(inside: readonly NavigationLink[] = [], changes: Partial<PageFrame> = {}): PageFrame {
  const links = [
    { title: 'A', href: '/docs/a', inside },
    { title: 'B', href: '/docs/b', inside: [{ title: 'Hidden', href: '/docs/b#x' }] },
  ];
  return { environment: 'sandbox', navigation: [{ title: 'Guides', links }], basePath: '', ...changes };
}

const parts = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ title: `Part ${at}`, href: `/docs/a#${at}` }));

describe('a page of the site', () => {
  it('a page has its title and lead, escaped, and its environment', () => {
    const text = wholePage(page, frame());
    assert.match(text, /<title>A &#60;b&#62; · Marina<\/title>/);
    assert.match(text, /<meta name="description" content="What &#34;a&#34; is">/);
    assert.match(text, /data-environment="sandbox" data-base=""/);
    assert.match(text, /<span class="environment">sandbox<\/span>/);
    assert.match(text, /<body class="narrow">/);
    assert.match(wholePage({ ...page, isWide: true }, frame()), /<body class="wide">/);
  });

  it('a page that has a script and a style of its own has them, and no other page does', () => {
    assert.doesNotMatch(wholePage(page, frame()), /workbench/);
    const text = wholePage({ ...page, assets: 'workbench' }, frame());
    assert.match(text, /href="\/docs\/workbench\.css"[\s\S]*src="\/docs\/workbench\.js"/);
  });

  it('the open page is marked and shows the links to its parts, and no other page does', () => {
    const method = { title: 'Cancel', href: '/docs/a#c', method: 'DELETE' };
    const text = wholePage(page, frame([method]));
    assert.match(
      text,
      /<li><a href="\/docs\/a" aria-current="page">A<\/a><ul><li><a href="\/docs\/a#c"><span class="method delete">DEL<\/span>Cancel<\/a>/,
    );
    assert.match(text, /<a href="\/docs\/b">B<\/a><\/li>/);
    assert.doesNotMatch(text, /Hidden/);
    const nested = wholePage(
      page,
      frame([{ title: 'Outer', href: '/docs/a#o', inside: [{ title: 'Inner', href: '/docs/a#i' }] }]),
    );
    assert.match(nested, /Outer<\/a><ul><li><a href="\/docs\/a#i">Inner/);
  });

  it('a page of three parts or more has an index of them', () => {
    assert.doesNotMatch(wholePage(page, frame(parts(2))), /On this page/);
    const text = wholePage(page, frame(parts(3)));
    assert.match(text, /<nav class="index"[\s\S]*<a href="\/docs\/a#2">Part 2<\/a>/);
    assert.doesNotMatch(wholePage({ ...page, path: '/docs/none' }, frame(parts(3))), /On this page/);
  });

  it('every link begins with the path below which the gateway is reached, and links to elsewhere do not', () => {
    const content = html`<a href="/docs/b">b</a><a href="#x">x</a><a href="https://else.example/">e</a>`;
    const text = wholePage({ ...page, content }, frame([], { basePath: '/marina' }));
    const links = [...text.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, link = '']) => link);
    assert.deepEqual(
      links.filter((link) => !link.startsWith('/marina/')),
      ['#content', '#x', 'https://else.example/'],
    );
    assert.ok(!links.some((link) => link.startsWith('/marina/marina')));
    assert.match(text, /data-base="\/marina"/);
  });

  it('a method has its colour, and a short name where it is long', () => {
    assert.equal(methodMark('GET').text, '<span class="method get">GET</span>');
    assert.equal(methodMark('DELETE').text, '<span class="method delete">DEL</span>');
  });
});

describe('the form that makes a call', () => {
  const formOf = (name: string, request?: object) => {
    const operation = gatewayOperations.find(({ method }) => method.localName === name);
    assert.ok(operation);
    return tryPanel(operation, request === undefined ? undefined : ({ request } as never)).text;
  };

  it('a form has a field for each parameter, with the value of the recorded query', () => {
    const text = formOf('listOrders', { path: '/v1/orders?limit=2', headers: {}, method: 'GET' });
    assert.match(text, /data-method="GET" data-path="\/v1\/orders"/);
    assert.match(text, /<input id="try-listOrders-limit" name="limit" data-place="query" value="2"/);
    assert.match(text, /<select name="\w+" data-place="query"><option value="">any<\/option><option>/);
    assert.doesNotMatch(text, /Idempotency-Key|<textarea|type="file"/);
    assert.match(formOf('listOrders'), /name="limit" data-place="query" value=""/);
    const path = formOf('getOrder', { path: '/v1/orders/ord_1?id=5', headers: {}, method: 'GET' });
    assert.match(path, /data-path="\/v1\/orders\/\{\w+\}"/);
    assert.match(path, /data-place="path" value=""/);
  });

  it('a form with a body has that of the recorded request, in as many rows as it has, up to 18', () => {
    const body = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, at]));
    const rows = (count: number) =>
      /rows="(\d+)"/.exec(formOf('createOrder', { body: body(count), headers: {}, path: '/', method: 'POST' }))?.[1];
    assert.deepEqual([rows(3), rows(16), rows(17)], ['5', '18', '18']);
    const text = formOf('createOrder');
    assert.match(text, /<textarea data-place="body" rows="1"[^>]*>\{\}<\/textarea>/);
    assert.match(text, /name="Idempotency-Key" data-place="header" data-fresh="uuid"/);
  });

  it('a form that sends a file takes the files of the operation', () => {
    assert.match(formOf('sendDocument'), /<input type="file" data-place="file" accept="image\/jpeg,image\/png">/);
  });
});
