import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import type { Browser, Locator, Page, Route } from 'playwright-core';
import { Scope } from '../../src/gen/marina/options/v1/options_pb.ts';
import { adminClient } from '../support/admin.ts';
import { browserOrReason } from '../support/browser.ts';
import { barriers, openReader, type Reader } from '../support/docs-reader.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../support/gateway.ts';
import { createKey } from '../support/keys.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

const widths = [1400, 768, 390];
const resting = { symbol: 'SIM-REST', quantity: 300, price_kobo: 1_000 };
const panes = ['orders', 'events', 'requests', 'webhooks', 'try'] as const;

let browser: Browser | string;
let gateway: TestGateway;
let receiver: WebhookReceiver;
let admin: ReturnType<typeof adminClient>;
let url: string;

before(async () => {
  receiver = await WebhookReceiver.start();
  [browser, gateway] = await Promise.all([browserOrReason(), startGateway(receiver.variables)]);
  admin = adminClient(gateway.app.adminPort);
  url = `http://127.0.0.1:${gateway.app.restPort}/docs/workbench`;
});

after(async () => {
  if (typeof browser === 'object') await browser.close();
  admin?.close();
  await gateway?.stop();
  await receiver?.close();
});

/** A test that needs a browser, and is passed over where none can be had. */
function inBrowser(name: string, test: (browser: Browser) => Promise<void>): void {
  it(name, async (context: TestContext) => {
    if (typeof browser === 'string') context.skip(browser);
    else await test(browser);
  });
}

async function withEndpoint(path: string): Promise<TestPartner> {
  const partner = await gateway.newPartner();
  await admin.webhooks.registerEndpoint({ partnerId: partner.id, url: receiver.url(path) }, admin.options);
  return partner;
}

async function enter(page: Page, key: string): Promise<void> {
  await page.getByLabel('Your sandbox key').fill(key);
  await page.getByRole('button', { name: 'Open' }).click();
}

/** Opens the workbench with a partner's key, and waits until its events are live. */
async function openBench(browser: Browser, { key }: TestPartner, width = 1400): Promise<Reader> {
  const reader = await openReader(browser, url, { width });
  await enter(reader.page, key);
  await reader.page.locator('#live', { hasText: 'live' }).waitFor();
  return reader;
}

async function choose(page: Page, tab: string | RegExp): Promise<void> {
  await page.getByRole('tab', { name: tab }).click();
}

const rowsOf = (page: Page, name: string): Locator => page.locator(`#${name} li button`);

async function assertNothingWider(page: Page): Promise<void> {
  const wider = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
  assert.equal(wider, 0, 'nothing is wider than the page');
}

describe('the workbench in a browser', () => {
  inBrowser(
    'an order placed there appears live, is steered to filled, and its webhook is answered',
    async (browser) => {
      const partner = await withEndpoint('/whole');
      const { context, page, problems } = await openBench(browser, partner);
      await page.getByText('There is no order yet').waitFor();

      await choose(page, 'Try a call');
      await eventually(async () => {
        const body = await page.locator('#call-createOrder textarea').inputValue();
        assert.ok(body.includes(partner.account), 'the body names an account of the key');
      });
      await page.locator('#call-createOrder').getByRole('button', { name: 'Send' }).click();
      await page.locator('#call-createOrder .status.good', { hasText: '201' }).waitFor();
      await page.getByRole('tab', { name: 'Events 1 new' }).waitFor();

      await choose(page, 'Orders');
      await rowsOf(page, 'orders').first().click();
      const detail = page.locator('#orders-detail');
      await detail.locator('.timeline').getByText('order.pending').waitFor();
      assert.ok(await detail.locator('.timeline').getByText('stored', { exact: true }).isVisible());

      await detail.getByLabel('Shares').fill('100');
      await detail.getByRole('button', { name: 'Fill', exact: true }).click();
      await detail.getByText('The exchange reported a trade of 100 at ₦10.00.').waitFor();
      await detail.locator('.timeline').getByText('order.partially_filled').waitFor();
      await detail.getByLabel('Shares').fill('');
      await detail.getByRole('button', { name: 'Fill', exact: true }).click();
      await detail.locator('.name .chip', { hasText: /^filled$/ }).waitFor();
      await rowsOf(page, 'orders')
        .first()
        .locator('.chip', { hasText: /^filled$/ })
        .waitFor();
      assert.ok(await detail.getByRole('button', { name: 'Cancel' }).isDisabled(), 'what is over cannot be cancelled');
      // News are told some seconds apart, so that a screen reader is not interrupted all the time.
      await page.locator('#news', { hasText: /new events?/i }).waitFor({ state: 'attached', timeout: 15_000 });

      await detail.getByRole('button', { name: 'order.filled' }).click();
      const event = page.locator('#events-detail');
      await event.locator('code', { hasText: '"type": "order.filled"' }).waitFor();
      assert.equal(await rowsOf(page, 'events').count(), 3);

      await choose(page, 'Webhooks');
      receiver.reply('/whole', ({ version }) => (version === undefined ? 418 : 200));
      await page.getByRole('button', { name: 'Send a test event' }).click();
      await page.getByText('Your endpoint answered 418').waitFor();
      await eventually(async () => {
        const told = await rowsOf(page, 'deliveries').allTextContents();
        assert.equal(told.filter((text) => text.includes('answered 200')).length, 3);
      });
      await rowsOf(page, 'deliveries').first().click();
      await page.locator('#deliveries-detail .attempts').getByText('answered 200').waitFor();

      await choose(page, 'Requests');
      await rowsOf(page, 'requests').last().click();
      const request = page.locator('#requests-detail');
      await request.locator('code', { hasText: '"symbol": "SIM-REST"' }).first().waitFor();
      const paths = (await rowsOf(page, 'requests').locator('strong').allTextContents()).map((path) =>
        path.replace(/ord_\w+/, '{id}'),
      );
      assert.deepEqual(paths, [
        '/v1/sandbox/webhook/test',
        '/v1/sandbox/orders/{id}/fill',
        '/v1/sandbox/orders/{id}/fill',
        '/v1/orders',
      ]);
      assert.deepEqual(problems, []);
      await context.close();
    },
  );

  inBrowser(
    'a program’s orders appear without a reload, and a program’s failed request with its reason',
    async (browser) => {
      const partner = await gateway.newPartner();
      const { context, page, problems } = await openBench(browser, partner);
      const { body: placed } = await gateway.place(partner, { ...resting, client_reference: 'seen at once' });
      await rowsOf(page, 'orders').filter({ hasText: 'seen at once' }).waitFor();
      await gateway.place(partner, { ...resting, price_kobo: 0 });
      await choose(page, 'Requests');
      await rowsOf(page, 'requests').filter({ hasText: 'invalid_request' }).click();
      await page.locator('#requests-detail code', { hasText: '"param": "price_kobo"' }).waitFor();
      const link = page.locator('#requests-detail').getByRole('link', { name: 'invalid_request' });
      assert.equal(await link.getAttribute('href'), '/docs/errors#invalid_request');
      await gateway.rest('DELETE', `/v1/orders/${placed.id}`, { key: partner.key });
      await choose(page, 'Orders');
      await rowsOf(page, 'orders').filter({ hasText: 'cancelled' }).waitFor();
      assert.deepEqual(problems, []);
      await context.close();
    },
  );

  inBrowser('the key is in the memory of the tab only, and with it goes all that it showed', async (browser) => {
    const [one, two] = [await gateway.newPartner(), await gateway.newPartner()];
    const { body: ofOne } = await gateway.place(one, resting);
    const { body: ofTwo } = await gateway.place(two, resting);
    const { context, page, problems } = await openBench(browser, one);
    await rowsOf(page, 'orders').first().click();
    await page.locator('#orders-detail').getByText(ofOne.id).first().waitFor();
    await choose(page, 'Requests');
    await rowsOf(page, 'requests').first().waitFor();
    assert.equal(await page.evaluate('localStorage.length + sessionStorage.length'), 0);
    assert.deepEqual(await context.cookies(), []);
    assert.ok(!(await page.content()).includes(one.key), 'the key is not in the page');
    assert.ok(!page.url().includes(one.key), 'the key is not in the address');
    assert.ok(!gateway.logged.some((line) => line.includes(one.key)), 'the key is not in the log');

    await page.getByRole('button', { name: 'Forget the key' }).click();
    assert.equal(await page.locator('#key').inputValue(), '');
    const left = await page.content();
    for (const own of [ofOne.id, one.account, one.keyId]) assert.ok(!left.includes(own), `${own} is gone`);

    await enter(page, two.key);
    await page.locator('#live', { hasText: 'live' }).waitFor();
    await rowsOf(page, 'orders').first().waitFor();
    await gateway.place(one, resting);
    await gateway.place(two, resting);
    await eventually(async () => assert.equal(await rowsOf(page, 'orders').count(), 2));
    for (const tab of ['Events', 'Requests']) {
      await choose(page, new RegExp(tab));
      await eventually(async () => assert.equal(await rowsOf(page, tab.toLowerCase()).count(), 2));
    }
    const shown = await page.content();
    assert.ok(shown.includes(ofTwo.id));
    for (const others of [ofOne.id, one.account, one.keyId])
      assert.ok(!shown.includes(others), `${others} is not shown`);
    await page.reload();
    assert.equal(await page.locator('#key').inputValue(), '');
    assert.ok(await page.locator('#bench').isHidden());
    assert.deepEqual(problems, []);
    await context.close();
  });

  inBrowser('the answer to a call that was under way when the key was forgotten is not shown', async (browser) => {
    const { context, page, problems } = await openBench(browser, await gateway.newPartner());
    await choose(page, 'Try a call');
    const call = page.locator('#call-createOrder');
    await eventually(async () => assert.match(await call.locator('textarea').inputValue(), /"account"/));
    let answered = () => {};
    let forgotten = () => {};
    const untilAnswered = new Promise<void>((resolve) => {
      answered = resolve;
    });
    const untilForgotten = new Promise<void>((resolve) => {
      forgotten = resolve;
    });
    const untilDelivered = new Promise<void>((resolve, reject) => {
      const holdAnswer = async (route: Route) => {
        const response = await route.fetch();
        answered();
        await untilForgotten;
        await route.fulfill({ response });
      };
      page.route('**/v1/orders', (route) => holdAnswer(route).then(resolve, reject)).catch(reject);
    });
    await call.getByRole('button', { name: 'Send' }).click();
    await untilAnswered;
    await page.getByRole('button', { name: 'Forget the key' }).click();
    forgotten();
    await untilDelivered;
    await call.locator('button[type=submit]:enabled').waitFor({ state: 'attached' });
    assert.equal(await call.locator('.result').textContent(), '');
    assert.deepEqual(problems, []);
    await context.close();
  });

  inBrowser(
    'the order that was chosen last is shown, also if the answer about the one before comes later',
    async (browser) => {
      const partner = await gateway.newPartner();
      const { context, page, problems } = await openBench(browser, partner);
      const ids: string[] = [];
      for (const quantity of [100, 200]) {
        const placed = await gateway.place(partner, { ...resting, quantity });
        ids.push(String((placed.body as { id: string }).id));
      }
      await eventually(async () => assert.equal(await rowsOf(page, 'orders').count(), 2));
      let release = () => {};
      const untilChosen = new Promise<void>((resolve) => {
        release = resolve;
      });
      await page.route(`**/v1/orders/${ids[0]}/history*`, async (route) => {
        const response = await route.fetch();
        await untilChosen;
        await route.fulfill({ response });
      });
      const late = page.waitForResponse((response) => response.url().includes(`${ids[0]}/history`));
      const detail = page.locator('#orders-detail');
      const shown = (id = '') => detail.getByText(id, { exact: true });
      await rowsOf(page, 'orders').filter({ hasText: '100' }).click();
      await rowsOf(page, 'orders').filter({ hasText: '200' }).click();
      await shown(ids[1]).waitFor();
      release();
      await (await late).finished();
      await page.evaluate('new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)))');
      assert.equal(await shown(ids[0]).count(), 0, 'its buttons would move the wrong order');
      assert.deepEqual(problems, []);
      await context.close();
    },
  );

  inBrowser('a wrong key, one without the scope, and one that is revoked later are told apart', async (browser) => {
    const partner = await gateway.newPartner();
    const { context, page } = await openReader(browser, url, { width: 1400 });
    const problem = page.getByRole('alert');
    await enter(page, 'sk_live_something');
    await problem.getByText('begins with marina_test_').waitFor();
    await enter(page, `${partner.key.slice(0, -1)}${partner.key.endsWith('a') ? 'b' : 'a'}`);
    await problem.getByText('The gateway does not take this key').waitFor();
    assert.equal(await page.evaluate('document.activeElement.id'), 'key', 'the key can be corrected at once');
    const trader = await createKey(gateway.database, { partnerId: partner.id, scopes: [Scope.TRADE] });
    await enter(page, trader.key);
    await problem.getByText('needs a key with the scope read').waitFor();
    const reader = await createKey(gateway.database, { partnerId: partner.id, scopes: [Scope.READ] });
    await gateway.place(partner, resting);
    await enter(page, reader.key);
    await page.locator('#live', { hasText: 'live' }).waitFor();
    await rowsOf(page, 'orders').first().click();
    await page.locator('#orders-detail').getByRole('button', { name: 'Expire' }).click();
    await page.locator('.said.problem', { hasText: 'lacks the scope' }).waitFor();
    await gateway.rest('DELETE', `/v1/keys/${reader.id}`, { key: partner.key });
    await problem.getByText('The gateway does not take this key').waitFor();
    assert.ok(await page.locator('#bench').isHidden());
    await context.close();
  });

  inBrowser('a partner without an endpoint is told who registers one, and how the clock is moved', async (browser) => {
    const { context, page } = await openBench(browser, await gateway.newPartner());
    await choose(page, 'Webhooks');
    await page.locator('#deliveries-empty', { hasText: 'The operator registers its URL' }).waitFor();
    await page.getByRole('button', { name: 'Send a test event' }).click();
    await page.locator('#test-result.problem', { hasText: 'No webhook endpoint is registered' }).waitFor();
    await page.getByText('Move the clock').click();
    await page.locator('.clock code', { hasText: 'marina.admin.v1.Clock/AdvanceClock' }).waitFor();
    assert.match((await page.locator('#time').textContent()) ?? '', /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/);
    await context.close();
  });

  inBrowser('tabs and rows are used with the keyboard alone', async (browser) => {
    const partner = await gateway.newPartner();
    await gateway.place(partner, resting);
    const { context, page } = await openBench(browser, partner);
    const focused = () => page.evaluate<string>('document.activeElement.id');
    assert.equal(await focused(), 'tab-orders');
    await page.keyboard.press('ArrowRight');
    assert.equal(await focused(), 'tab-events');
    await page.keyboard.press('End');
    assert.equal(await focused(), 'tab-try');
    await page.keyboard.press('ArrowRight');
    assert.equal(await focused(), 'tab-orders');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.locator('#orders-detail .timeline li').first().waitFor();
    await gateway.place(partner, resting);
    await eventually(async () => assert.equal(await rowsOf(page, 'orders').count(), 2));
    assert.equal(await page.evaluate('document.activeElement.getAttribute("aria-current")'), 'true', 'the focus stays');
    await context.close();
  });

  for (const width of widths) {
    for (const colorScheme of ['light', 'dark'] as const) {
      inBrowser(`at ${width} pixels, ${colorScheme}: no barrier and nothing cut off, in any pane`, async (browser) => {
        const partner = await withEndpoint(`/${width}-${colorScheme}`);
        await gateway.place(partner, { symbol: 'SIM-PARTS', quantity: 300 });
        await gateway.place(partner, { symbol: 'SIM-FUNDS', quantity: 300 });
        const { context, page, problems } = await openReader(browser, url, { width, colorScheme });
        assert.deepEqual(await barriers(page), []);
        await enter(page, partner.key);
        await page.locator('#live', { hasText: 'live' }).waitFor();
        for (const pane of panes) {
          await page.locator(`#tab-${pane}`).click();
          if (pane !== 'try') {
            await page.locator(`#pane-${pane} .rows button`).last().click();
            await page.locator(`#pane-${pane} .detail .name`).waitFor();
          }
          assert.deepEqual(await barriers(page), [], pane);
          await assertNothingWider(page);
        }
        assert.deepEqual(problems, []);
        await context.close();
      });
    }
  }
});
