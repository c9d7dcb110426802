import { highlight } from './highlight.ts';
import { type Html, html } from './html.ts';

/** Code in a frame, with its title when it has one. It can be scrolled with the keyboard. */
export function codeBlock(code: string, language: string, title?: string): Html {
  const bar = title !== undefined && html`<figcaption>${title}</figcaption>`;
  return html`<figure class="code">${bar}<pre tabindex="0"><code>${highlight(code, language)}</code></pre></figure>`;
}
