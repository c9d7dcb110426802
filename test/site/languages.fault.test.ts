import assert from 'node:assert/strict';
import { after, before, it, type TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { gatewayOperations } from '../../src/site/gateway-contract.ts';
import { Site } from '../../src/site/site.ts';
import { browserOrReason } from '../support/browser.ts';

const origin = 'http://docs.test';
const site = new Site({
  operations: gatewayOperations,
  environment: 'sandbox',
  baseUrl: () => origin,
  grpcAddress: () => 'docs.test:50051',
});
let browser: Browser | string;

before(async () => {
  browser = await browserOrReason();
});

after(async () => {
  if (typeof browser === 'object') await browser.close();
});

/** A page of the site in a browser, without a gateway: no part of it calls one. */
async function openSite(opened: Browser): Promise<Page> {
  const page = await opened.newPage();
  await page.route('**/*', async (route) => {
    const found = await site.find(new URL(route.request().url()).pathname);
    if (found === undefined) await route.fulfill({ status: 404 });
    else await route.fulfill({ contentType: found.contentType, body: found.body });
  });
  return page;
}

/** The language that each group of tabs shows. */
function shown(page: Page): Promise<unknown> {
  return page.evaluate(
    'Array.from(document.querySelectorAll("#content [role=tab][aria-selected=true]"), (tab) => tab.textContent)',
  );
}

it('keeps the language that is chosen in a guide on every page', async (context: TestContext) => {
  if (typeof browser === 'string') return context.skip(browser);
  const page = await openSite(browser);
  await page.goto(`${origin}/docs/clients`);
  assert.deepEqual(await shown(page), ['TypeScript', 'TypeScript', 'TypeScript', 'TypeScript']);
  await page.getByRole('tab', { name: 'Python' }).first().click();
  assert.deepEqual(await shown(page), ['Python', 'Python', 'Python', 'Python']);
  for (const path of ['webhooks', 'grpc', 'reference/orders']) {
    await page.goto(`${origin}/docs/${path}`);
    assert.deepEqual([...new Set((await shown(page)) as string[])], ['Python'], path);
  }
  await page.goto(`${origin}/docs/webhooks`);
  await page.getByRole('tab', { name: 'JavaScript' }).click();
  await page.goto(`${origin}/docs/grpc`);
  assert.deepEqual(await shown(page), ['Node'], 'the language of the same family');
  await page.close();
});

it('prints every part and every language, and folds them again', async (context: TestContext) => {
  if (typeof browser === 'string') return context.skip(browser);
  const page = await openSite(browser);
  await page.goto(`${origin}/docs/reference/orders`);
  const folded = 'document.querySelectorAll("#content details:not([open]):not(.try)").length';
  const hidden =
    'Array.from(document.querySelectorAll(".tabpanel")).filter((panel) => getComputedStyle(panel).display === "none").length';
  const before = await page.evaluate(folded);
  assert.ok(Number(before) > 10, 'there are folded parts');
  await page.emulateMedia({ media: 'print' });
  await page.evaluate('dispatchEvent(new Event("beforeprint"))');
  assert.deepEqual([await page.evaluate(folded), await page.evaluate(hidden)], [0, 0]);
  await page.evaluate('dispatchEvent(new Event("afterprint"))');
  assert.equal(await page.evaluate(folded), before);
  await page.close();
});
