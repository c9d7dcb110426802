import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A page of a reader, and what went wrong on it: what the console was told, and requests to anywhere else. */
export interface Reader {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly problems: string[];
}

/** Opens a page of the site as a reader does. */
export async function openReader(
  browser: Browser,
  url: string,
  { width, colorScheme = 'light' }: { readonly width: number; readonly colorScheme?: 'light' | 'dark' },
): Promise<Reader> {
  const { origin } = new URL(url);
  const context = await browser.newContext({ viewport: { width, height: width < 500 ? 780 : 900 }, colorScheme });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const problems: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(`${origin}/`)) problems.push(`asked for ${request.url()}`);
  });
  const response = await page.goto(url);
  assert.equal(response?.status(), 200);
  return { context, page, problems };
}

/** Finds the barriers of a page for a reader who cannot see well, or uses no mouse. */
export async function barriers(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const { violations } = await page.evaluate<AxeResults>('axe.run({ resultTypes: ["violations"] })');
  return violations.map(
    ({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160))}`,
  );
}
