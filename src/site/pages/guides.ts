import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Version } from '../feed.ts';
import { type Html, html } from '../html.ts';
import { inLanguages } from '../languages.ts';
import { operationHref } from '../links.ts';
import { headings, markdown } from '../markdown.ts';
import type { GatewayAddresses, Reference } from '../reference.ts';
import { titleOf } from '../samples/names.ts';
import { contactLink } from '../support.ts';
import { feedPath, methodMark, type NavigationLink, type PageParts } from './layout.ts';
import { hasWorkbench } from './workbench.ts';

interface Guide {
  readonly path: string;
  readonly title: string;
  readonly lead: string;
  /** Next to this file's folder. */
  readonly file: string;
}

/** The guides, in the order in which they are read. */
export const guides: readonly Guide[] = [
  {
    path: '/docs',
    title: 'Getting started',
    lead: 'Open accounts, fund them, and trade on the Nigerian market, with orders that are sent once and never guessed about.',
    file: '../guides/start.md',
  },
  {
    path: '/docs/idempotency',
    title: 'Idempotency and uncertainty',
    lead: 'How to send a request again safely, and what to do while nobody knows whether an order arrived.',
    file: '../guides/idempotency.md',
  },
  {
    path: '/docs/webhooks',
    title: 'Webhooks',
    lead: 'Every event, sent to your endpoint within seconds and signed so that you can tell it is ours.',
    file: '../guides/webhooks.md',
  },
  {
    path: '/docs/clients',
    title: 'Client libraries',
    lead: 'TypeScript and Python: types, retries that keep the key, lists, events, webhooks, and webhooks on your own machine.',
    file: '../guides/clients.md',
  },
  {
    path: '/docs/grpc',
    title: 'gRPC',
    lead: 'The same operations over gRPC: address, messages, deadlines, statuses, and what a library may repeat by itself.',
    file: '../guides/grpc.md',
  },
  {
    path: '/docs/prices',
    title: 'Prices',
    lead: 'What a limit price must be, where to read the band and the tick of the day, and when an order can trade.',
    file: '../guides/prices.md',
  },
  {
    path: '/docs/limits',
    title: 'Limits',
    lead: 'What you may use, how it is counted, and what happens above a limit.',
    file: '../guides/limits.md',
  },
  {
    path: '/docs/sandbox',
    title: 'The sandbox',
    lead: 'A broker and an exchange to learn on, where you can cause every outcome.',
    file: '../../../docs/SANDBOX.md',
  },
  {
    path: '/docs/go-live',
    title: 'Go live',
    lead: 'What to check before you trade with real money, what the operator needs from you, and what to do on the day.',
    file: '../guides/go-live.md',
  },
];

const changelog: Guide = {
  path: '/docs/changelog',
  title: 'Changelog',
  lead: 'What partners notice of each version, newest first.',
  file: '../../../CHANGELOG.md',
};

/** The page of a guide. */
export function guidePage(guide: Guide, addresses: GatewayAddresses): PageParts {
  return textPage(guide, guideText(guide), addresses);
}

function textPage(
  { path, title, lead }: Guide,
  text: string,
  { baseUrl, grpcAddress, support }: GatewayAddresses,
): PageParts {
  const hasTls = baseUrl.startsWith('https:');
  const parts = text
    .replaceAll(/\{base_url\}|http:\/\/127\.0\.0\.1:8080/g, baseUrl)
    .replaceAll('{grpc_address}', grpcAddress)
    .replaceAll('{plaintext}', hasTls ? '' : '-plaintext ')
    .replaceAll('{tls_off}', hasTls ? '' : ' MARINA_TLS=off')
    .split(/^\{(verification|grpcClients|support)\}$/m);
  const content = parts.map((part) =>
    part === 'support' ? supportNote(support) : (samples[part]?.() ?? markdown(part)),
  );
  return { path, title, lead, content: html`${path === '/docs' && cards()}<div class="prose">${content}</div>` };
}

/** The page on the sandbox, with the calls that steer it, where it has any. */
export function sandboxPage(guide: Guide, addresses: GatewayAddresses, { operations }: Reference): PageParts {
  const page = guidePage(guide, addresses);
  const steering = operations.filter(({ http }) => http?.segments[1] === 'sandbox');
  if (steering.length === 0) return page;
  const items = steering.map(
    ({ method, http }) =>
      html`<li><a href="${operationHref(method)}">${methodMark(http?.method ?? '')}${titleOf(method.name)}</a></li>`,
  );
  const calls = html`<section class="where"><h2 id="steering"><a class="anchor" href="#steering">Steering by calls</a></h2>
<p>These calls cause what the magic values cannot. They need a key of the sandbox:</p><ul>${items}</ul></section>`;
  const bench = html`<div class="prose"><p>The <a href="/docs/workbench">workbench</a> shows in the browser what your programs do here, as they do it: orders, events, requests with their answers, and deliveries.</p></div>`;
  return { ...page, content: html`${hasWorkbench({ operations }) && bench}${page.content}${calls}` };
}

/** The page of what changed. */
export function changelogPage(addresses: GatewayAddresses): PageParts {
  return textPage(changelog, `It is also [an Atom feed](${feedPath}).\n\n${changelogText()}`, addresses);
}

/** Whom to ask. */
function supportNote(contact: string | undefined): Html {
  return html`<p>Ask ${contactLink(contact)}.</p>`;
}

/** The links to the versions. */
export function changelogLinks(): NavigationLink[] {
  return partLinks(changelog.path, changelogText());
}

/** Each version with what partners notice of it. Changes for other readers are in the file only. */
export function changelogVersions(): Version[] {
  const versions = guideText(changelog)
    .split(/^(?=## )/m)
    .slice(1);
  return versions.map((version) => {
    const [heading = '', ...parts] = version.split(/^### /m);
    const title = 'For partners\n';
    const text = parts.find((part) => part.startsWith(title))?.slice(title.length) ?? 'Nothing.';
    return { heading: heading.trim().replace(/^## /, ''), text: text.trim() };
  });
}

function changelogText(): string {
  return changelogVersions()
    .map(({ heading, text }) => `## ${heading}\n\n${text}\n`)
    .join('\n');
}

/** The links to the parts of a guide. */
export function guideLinks(guide: Guide): NavigationLink[] {
  return partLinks(guide.path, guideText(guide));
}

function partLinks(path: string, text: string): NavigationLink[] {
  return headings(text)
    .filter(({ depth }) => depth === 2)
    .map(({ id, title }) => ({ title, href: `${path}#${id}` }));
}

/** A guide without its title, which the page has already. */
export function guideText({ file }: Guide): string {
  return readFileSync(join(import.meta.dirname, file), 'utf8').replace(/^# .*\n/, '');
}

/** Where most readers go first. */
function cards(): Html {
  const chosen = [
    ['/docs/reference/orders#createOrder', 'Place an order', 'One request, stored before it is sent, and sent once.'],
    ['/docs/idempotency', 'Never buy twice', 'Keys, replays, and what to do while an order is uncertain.'],
    ['/docs/webhooks', 'Follow every change', 'Signed events, in order and without a gap.'],
    ['/docs/clients', 'Use a library', 'TypeScript or Python, made from the contract, with retries that keep the key.'],
    ['/docs/sandbox', 'Try every outcome', 'Symbols that fill, reject, hang or lose the answer.'],
  ];
  const items = chosen.map(
    ([href, title, text]) => html`<li><a href="${href}"><strong>${title}</strong>${text}</a></li>`,
  );
  return html`<ul class="cards">${items}</ul>`;
}

/** The parts that replace their name in braces in a guide. */
const samples: Readonly<Record<string, () => Html>> = { verification, grpcClients };

interface Language {
  readonly name: string;
  readonly file: string;
  readonly highlighted: string;
}

/** How a signature is verified. */
function verification(): Html {
  return programs(
    [
      { name: 'JavaScript', file: 'verify.mjs', highlighted: 'js' },
      { name: 'Python', file: 'verify.py', highlighted: 'python' },
      { name: 'Go', file: 'verify.go', highlighted: 'go' },
      { name: 'PHP', file: 'verify.php', highlighted: 'php' },
      { name: 'Java', file: 'Verify.java', highlighted: 'java' },
      { name: 'C#', file: 'Verify.cs', highlighted: 'csharp' },
    ],
    'How a signature is verified',
  );
}

/** How an order is placed over gRPC. */
function grpcClients(): Html {
  return programs(
    [
      { name: 'Node', file: 'grpc.mjs', highlighted: 'js' },
      { name: 'Python', file: 'grpc.py', highlighted: 'python' },
      { name: 'Go', file: 'grpc.go', highlighted: 'go' },
    ],
    'An order over gRPC',
  );
}

function programs(languages: readonly Language[], label: string): Html {
  const samples = languages.map(({ name, file, highlighted }) => ({ name, code: snippet(file), highlighted }));
  return inLanguages(samples, label);
}

function snippet(file: string): string {
  return readFileSync(join(import.meta.dirname, '../snippets', file), 'utf8').trim();
}
