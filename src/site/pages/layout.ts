import { escapeHtml, type Html, html } from '../html.ts';

/** The changelog as a feed. */
export const feedPath = '/docs/changelog.atom';

/** A group of links at the side of every page. */
export interface NavigationGroup {
  readonly title: string;
  readonly links: readonly NavigationLink[];
}

export interface NavigationLink {
  readonly title: string;
  readonly href: string;
  /** An operation's method. */
  readonly method?: string;
  /** The links to the parts of that page, shown while it is open. */
  readonly inside?: readonly NavigationLink[];
}

/** A page with fewer parts needs no index. */
const leastInIndex = 3;

export interface PageParts {
  readonly path: string;
  readonly title: string;
  /** The subject of the page, in a sentence. */
  readonly lead: string;
  readonly content: Html;
  readonly isWide?: boolean;
  /** The name of a script and a style sheet that only this page has. */
  readonly assets?: string;
}

/** The values that are the same on every page. */
export interface PageFrame {
  readonly environment: 'sandbox' | 'live';
  readonly navigation: readonly NavigationGroup[];
  /** The path before every path, if the gateway is reached below one, as in `/marina`; else empty. */
  readonly basePath: string;
}

/** A whole page. */
export function wholePage(page: PageParts, { environment, navigation, basePath }: PageFrame): string {
  const text = html`<!doctype html>
<html lang="en" data-environment="${environment}" data-base="${basePath}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${page.lead}">
<title>${page.title} · Marina</title>
<link rel="icon" href="/docs/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/docs.css">
<link rel="alternate" href="${feedPath}" type="application/atom+xml" title="Changes">
<script src="/docs/docs.js" type="module"></script>
${
  page.assets !== undefined &&
  html`<link rel="stylesheet" href="/docs/${page.assets}.css">
<script src="/docs/${page.assets}.js" type="module"></script>
`
}</head>
<body class="${page.isWide === true ? 'wide' : 'narrow'}">
<a class="skip" href="#content">Skip to the content</a>
<header class="top">
<a class="brand" href="/docs"><svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true"><path d="M4 21c4 0 4-3 8-3s4 3 8 3 4-3 8-3"/><path d="M16 4v11M16 5l8 10H9z"/></svg>Marina</a>
<span class="environment">${environment}</span>
<div class="search" role="search" hidden>
<input id="search" type="search" placeholder="Search" aria-label="Search the documentation" autocomplete="off" spellcheck="false" role="combobox" aria-expanded="false" aria-controls="found" aria-autocomplete="list">
<kbd aria-hidden="true">/</kbd>
<ul id="found" role="listbox" aria-label="What was found" hidden></ul>
</div>
<a class="spec" href="/openapi.json">OpenAPI</a>
</header>
<div class="columns">
<nav class="side" aria-label="Documentation">
<details class="menu"><summary>Menu</summary>
${navigation.map((group) => navigationGroup(group, page.path))}
</details>
</nav>
<main id="content" tabindex="-1">
<h1>${page.title}</h1>
<p class="lead">${page.lead}</p>
${pageIndex(page.path, navigation)}
${page.content}
</main>
</div>
</body>
</html>
`.text;
  return basePath === '' ? text : text.replaceAll(/ (href|src)="(?=\/)/g, ` $1="${escapeHtml(basePath)}`);
}

function navigationGroup({ title, links }: NavigationGroup, path: string): Html {
  return html`<p class="group">${title}</p>
<ul>${links.map((link) => navigationLink(link, path))}</ul>
`;
}

function navigationLink(link: NavigationLink, path: string): Html {
  const isHere = link.href === path;
  return html`<li><a href="${link.href}"${isHere && html` aria-current="page"`}>${link.title}</a>${isHere && nestedLinks(link)}</li>
`;
}

/** The contents of a long page, for narrow screens: on wide ones they stand at the side. */
function pageIndex(path: string, navigation: readonly NavigationGroup[]): Html | false {
  const inside = navigation.flatMap(({ links }) => links).find(({ href }) => href === path)?.inside ?? [];
  if (inside.length < leastInIndex) return false;
  const items = inside.map(
    ({ href, title }) => html`<li><a href="${href}">${title}</a></li>
`,
  );
  return html`<nav class="index" aria-label="On this page"><details><summary>On this page</summary><ul>${items}</ul></details></nav>`;
}

/** The links to the parts of the open page. */
function nestedLinks({ inside = [] }: NavigationLink): Html | false {
  if (inside.length === 0) return false;
  const items = inside.map(
    (link) =>
      html`<li><a href="${link.href}">${link.method !== undefined && methodMark(link.method)}${link.title}</a>${nestedLinks(link)}</li>
`,
  );
  return html`<ul>${items}</ul>`;
}

/** An operation's method, in its colour. */
export function methodMark(method: string): Html {
  return html`<span class="method ${method.toLowerCase()}">${method === 'DELETE' ? 'DEL' : method}</span>`;
}
