import { html } from './html.ts';
import type { PageParts } from './pages/layout.ts';

/** Under this name the page for unknown paths is kept. No request has such a path, because it has no slash. */
export const missingPath = 'missing';

/** Makes the page for an address without a page. */
export function missingPage(): PageParts {
  return {
    path: missingPath,
    title: 'No such page',
    lead: 'There is no page at this address. It may be mistyped, or belong to another version of the gateway.',
    content: html`<div class="prose"><p>Search at the top of this page (press <kbd>/</kbd>), or go on with one of these:</p>
<ul>
<li><a href="/docs">Getting started</a></li>
<li><a href="/docs/reference">Every operation and object</a></li>
<li><a href="/docs/errors">Every error</a></li>
<li><a href="/docs/sandbox">The sandbox</a></li>
</ul></div>`,
  };
}
