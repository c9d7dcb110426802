import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { Orders } from '../../src/gen/marina/gateway/v1/orders_pb.ts';
import { siteContents } from '../../src/site/contents.ts';
import { gatewayOperations } from '../../src/site/gateway-contract.ts';
import { servicePath } from '../../src/site/links.ts';
import { browserOrReason } from '../support/browser.ts';
import { barriers, openReader, type Reader } from '../support/docs-reader.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../support/gateway.ts';

/** Every page there is. docs-workbench.test.ts has the workbench with a key. */
const paths = [
  ...siteContents({
    operations: gatewayOperations,
    environment: 'sandbox',
    baseUrl: () => 'http://127.0.0.1',
    grpcAddress: () => '127.0.0.1',
  }).keys(),
]
  .filter((path) => path.startsWith('/docs') && !path.includes('.'))
  .map((path) => path.replace('/docs', ''));
const widths = [1400, 768, 390];

let browser: Browser | string;
let gateway: TestGateway;
let partner: TestPartner;
let baseUrl: string;

before(async () => {
  [browser, gateway] = await Promise.all([browserOrReason(), startGateway()]);
  partner = await gateway.newPartner();
  baseUrl = `http://127.0.0.1:${gateway.app.restPort}`;
});

after(async () => {
  if (typeof browser === 'object') await browser.close();
  await gateway?.stop();
});

async function openPage(path: string, width: number, colorScheme: 'light' | 'dark' = 'light'): Promise<Reader> {
  if (typeof browser === 'string') throw new Error(browser);
  return openReader(browser, `${baseUrl}/docs${path}`, { width, colorScheme });
}

/** A test that needs a browser, and is passed over where none can be had. */
function inBrowser(name: string, test: () => Promise<void>): void {
  it(name, async (context: TestContext) => {
    if (typeof browser === 'string') context.skip(browser);
    else await test();
  });
}

/** Fails unless something stands in the upper half of what is seen, once the page has moved there. */
function assertInView(page: Page, id: string): Promise<void> {
  return eventually(async () => {
    const box = await page.locator(`[id="${id}"]`).boundingBox();
    const { height } = page.viewportSize() ?? { height: 0 };
    assert.ok(box !== null && box.y > -2 && box.y < height / 2, `${id} is in view: ${box?.y}`);
  });
}

describe('the pages for partners in a browser', () => {
  it('are all looked at', () => {
    assert.ok(paths.length >= 13 && paths.includes('/workbench'), paths.join(' '));
  });

  for (const width of widths) {
    for (const path of paths) {
      inBrowser(
        `/docs${path} at ${width} pixels: no error, nothing from elsewhere, no barrier, nothing cut off`,
        async () => {
          const { context, page, problems } = await openPage(path, width);
          assert.ok(await page.locator('h1').isVisible(), 'there is a title');
          const overflow = await page.evaluate(
            'document.documentElement.scrollWidth - document.documentElement.clientWidth',
          );
          assert.equal(overflow, 0, 'nothing is wider than the page');
          assert.deepEqual(await barriers(page), []);
          assert.deepEqual(problems, []);
          await context.close();
        },
      );
    }
  }

  inBrowser(
    'tables are read at 390 pixels without scrolling sideways, each cell with the title of its column',
    async () => {
      for (const path of ['', '/prices', '/sandbox', '/webhooks', '/limits', '/grpc']) {
        const { context, page } = await openPage(path, 390);
        const tables = page.locator('.table');
        assert.ok((await tables.count()) > 0, path);
        const wider =
          'Array.from(document.querySelectorAll(".table")).filter((t) => t.scrollWidth > t.clientWidth).length';
        assert.equal(await page.evaluate(wider), 0, path);
        const shown = await page.evaluate(`(() => {
        const cell = document.querySelector('.table td[data-title]:not([data-title=""])');
        return [cell.dataset.title, JSON.parse(getComputedStyle(cell, '::before').content)];
      })()`);
        const [title, before] = shown as [string, string];
        assert.equal(before, title, path);
        assert.ok((await page.getByRole('columnheader').count()) > 0, 'it is still a table for those who hear it');
        await context.close();
      }
    },
  );

  inBrowser('a long page has an index on a narrow screen, which leads to its parts', async () => {
    for (const [path, id] of [
      ['/sandbox', 'the-simulated-exchange'],
      ['/errors', 'orders'],
      ['/prices', 'choose-a-limit-price'],
    ] as const) {
      const { context, page } = await openPage(path, 390);
      await page.locator('.index summary').click();
      await page.locator(`.index a[href$="#${id}"]`).click();
      await assertInView(page, id);
      await context.close();
    }
  });

  for (const path of ['', '/reference', '/reference/orders', '/errors']) {
    inBrowser(`/docs${path} can be read in the dark`, async () => {
      const { context, page } = await openPage(path, 1440, 'dark');
      const [red = 255] =
        String(await page.evaluate('getComputedStyle(document.body).backgroundColor')).match(/\d+/g) ?? [];
      assert.ok(Number(red) < 60, 'it is dark');
      assert.deepEqual(await barriers(page), []);
      await context.close();
    });
  }

  inBrowser('every operation is shown, each with its answer and a call to try where REST has it', async () => {
    const { context, page } = await openPage('/reference', 1440);
    for (const { method, http } of gatewayOperations) {
      const path = servicePath(method.parent);
      if (!page.url().endsWith(path)) await page.goto(`${baseUrl}${path}`);
      const section = page.locator(`[id="${method.localName}"]`);
      assert.ok(await section.locator('h3').isVisible(), method.name);
      if (http === undefined) continue;
      assert.ok(await section.locator('pre').first().isVisible(), `${method.name} has an example`);
      assert.ok(await section.locator('.try').isVisible(), `${method.name} can be tried`);
    }
    await context.close();
  });

  inBrowser(
    'the code of each operation is in five languages: one is chosen for all, by mouse or keys, and kept',
    async () => {
      const { context, page } = await openPage('/reference/orders', 1440);
      const groups = page.locator('.samples');
      const count = gatewayOperations.filter(({ method }) => method.parent === Orders).length;
      assert.equal(await groups.count(), count);
      assert.equal(await page.getByRole('tab', { selected: true, name: 'curl', exact: true }).count(), count);
      const own = page.locator('[id="cancelOrder"]');
      const tab = own.getByRole('tab', { name: 'Python' });
      await tab.scrollIntoViewIfNeeded();
      const before = await tab.boundingBox();
      await tab.click();
      const after = await tab.boundingBox();
      assert.ok(Math.abs((before?.y ?? 0) - (after?.y ?? 999)) < 2, 'what was clicked stays where it is');
      assert.match((await own.getByRole('tabpanel').innerText()) ?? '', /marina\.cancel_order\(/);
      assert.match(await page.locator('[id="getOrder"]').getByRole('tabpanel').innerText(), /marina\.get_order\(/);
      await page.keyboard.press('ArrowRight');
      assert.match(await own.getByRole('tabpanel').innerText(), /http\.NewRequest\("DELETE"/);
      assert.equal(await page.evaluate('document.activeElement.textContent'), 'Go');
      await page.keyboard.press('End');
      assert.match(await own.getByRole('tabpanel').innerText(), /marina\.gateway\.v1\.Orders\/CancelOrder/);
      assert.deepEqual(await barriers(page), []);
      await page.reload();
      assert.match(await own.getByRole('tabpanel').innerText(), /Orders\/CancelOrder/, 'it is kept');
      await context.close();
    },
  );

  inBrowser('without its script a page has the code in every language, each opened by itself', async () => {
    if (typeof browser === 'string') throw new Error(browser);
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(`${baseUrl}/docs/reference/orders`);
    const own = page.locator('[id="createOrder"] .samples');
    assert.match(await own.innerText(), /curl[\s\S]*TypeScript[\s\S]*Python[\s\S]*Go[\s\S]*grpcurl/);
    await own.locator('summary', { hasText: 'TypeScript' }).click();
    assert.match(await own.innerText(), /marina\.createOrder\(/);
    await context.close();
  });

  inBrowser('words that other APIs use, and those of the text, find the place', async () => {
    const { context, page } = await openPage('', 1440);
    const places = {
      429: '/docs/errors#rate_limited',
      retry: '/docs/idempotency',
      pagination: '/docs#lists',
      timeout: '/docs/grpc#deadlines',
      'sim-hang': '/docs/sandbox',
      portfolio: '/docs/reference/accounts#listPositions',
      hmac: '/docs/webhooks',
      sdk: '/docs/clients',
    };
    for (const [word, place] of Object.entries(places)) {
      await page.locator('#search').fill(word);
      await page.locator(`#found a[href^="${place}"]`).first().waitFor({ timeout: 5_000 });
    }
    await context.close();
  });

  for (const width of widths) {
    inBrowser(`what is looked for is found at ${width} pixels, and a link leads right to it`, async () => {
      const { context, page, problems } = await openPage('', width);
      await page.keyboard.press('/');
      await page.keyboard.type('cancel order');
      await page.locator('#found a').first().waitFor();
      await page.keyboard.press('Enter');
      await page.waitForURL(`${baseUrl}/docs/reference/orders#cancelOrder`);
      await assertInView(page, 'cancelOrder');
      await page.goto(`${baseUrl}/docs/errors#wallet_too_low`);
      await assertInView(page, 'wallet_too_low');
      // A mail program may have cut the link.
      await page.goto(`${baseUrl}/docs/errors#%`);
      await page.locator('#search').fill('no such thing anywhere');
      await page.getByText('Nothing was found.').waitFor();
      assert.deepEqual(problems, []);
      await context.close();
    });

    inBrowser(`a call is tried at ${width} pixels with a key that stays in the tab's memory`, async () => {
      const { context, page, problems } = await openPage('/reference/orders', width);
      const panel = page.locator('#createOrder .try');
      await panel.locator('summary').click();
      await panel.getByRole('button', { name: 'Send' }).click();
      await panel.getByText('Enter a sandbox key').waitFor();
      await page.locator('#key').fill(partner.key);
      await page.locator('#key').press('Tab');
      await eventually(async () => {
        const body = await panel.locator('textarea').inputValue();
        assert.ok(body.includes(`"${partner.account}"`), 'the body names an account of the key');
      });
      await panel.getByRole('button', { name: 'Send' }).click();
      await panel.locator('.status.good', { hasText: '201' }).waitFor();
      const answer = JSON.parse((await panel.locator('.result code').textContent()) ?? '');
      assert.deepEqual([answer.object, answer.account], ['order', partner.account]);
      assert.equal(await page.evaluate('localStorage.length + sessionStorage.length'), 0);
      assert.deepEqual(await context.cookies(), []);
      assert.ok(!(await page.content()).includes(partner.key), 'the key is not in the page');
      assert.ok(!page.url().includes(partner.key), 'the key is not in the address');
      await page.reload();
      assert.equal(await page.locator('#key').inputValue(), '');
      assert.deepEqual(problems, []);
      await context.close();
    });
  }
});
