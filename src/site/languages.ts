import { codeBlock } from './code-block.ts';
import { type Html, html } from './html.ts';

/** One program of several that do the same. */
export interface LanguageSample {
  /** The language as a tab names it. */
  readonly name: string;
  readonly code: string;
  readonly highlighted: string;
}

/** The same program in several languages. The script makes tabs of them; without it each is opened by itself. */
export function inLanguages(samples: readonly LanguageSample[], label: string): Html {
  const blocks = samples.map(
    ({ name, code, highlighted }) =>
      html`<details class="sample language" data-language="${name}" open><summary>${name}</summary>${codeBlock(code, highlighted)}</details>`,
  );
  return html`<div class="samples" data-label="${label}">${blocks}</div>`;
}
