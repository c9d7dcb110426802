import { Marked, type Token, type Tokens } from 'marked';
import { catalogue } from '../gateway/edge/errors.ts';
import { codeBlock } from './code-block.ts';
import { escapeHtml, Html } from './html.ts';
import { inLanguages, type LanguageSample } from './languages.ts';

/** A heading of a text, as it can be linked to. */
export interface Heading {
  readonly id: string;
  readonly title: string;
  readonly depth: number;
}

const marked = new Marked({
  renderer: {
    heading({ tokens, depth }: Tokens.Heading) {
      const title = this.parser.parseInline(tokens);
      const id = slug(plainText(title));
      return `<h${depth} id="${id}"><a class="anchor" href="#${id}">${title}</a></h${depth}>\n`;
    },
    code({ text, lang }: Tokens.Code) {
      // A second word says what the block is, such as no answer.
      return codeBlock(text, lang?.split(' ', 1)[0] ?? '').text;
    },
    codespan({ text }: Tokens.Codespan) {
      const code = `<code>${escapeHtml(text)}</code>`;
      return text in catalogue ? `<a href="/docs/errors#${text}">${code}</a>` : code;
    },
    // On a narrow screen a row is shown as a block: its cells below each other, each with the title of its column. The roles
    // keep it a table for those who hear it.
    table({ header, rows }: Tokens.Table) {
      const titles = header.map(({ tokens }) => this.parser.parseInline(tokens));
      const head = titles.map((title) => `<th role="columnheader">${title}</th>`).join('');
      const cell = ({ tokens }: Tokens.TableCell, column: number) => {
        const title = escapeHtml(plainText(titles[column] ?? '').trim());
        return `<td role="cell" data-title="${title}">${this.parser.parseInline(tokens)}</td>`;
      };
      const body = rows.map((row) => `<tr role="row">${row.map(cell).join('')}</tr>`).join('\n');
      return `<div class="table" tabindex="0"><table role="table"><thead role="rowgroup"><tr role="row">${head}</tr></thead><tbody role="rowgroup">${body}</tbody></table></div>`;
    },
    // Our own texts have none; what looks like it is text.
    html({ text }: Tokens.HTML | Tokens.Tag) {
      return escapeHtml(text);
    },
  },
});

/** The languages of programs that stand right after each other to show the same. */
const programLanguages: Readonly<Record<string, string>> = { js: 'TypeScript', python: 'Python', go: 'Go' };

/** Our own texts (comments of protos, guides, the list of changes) as HTML. Programs in several languages become tabs. */
export function markdown(text: string): Html {
  const tokens = marked.lexer(text);
  const parts: string[] = [];
  let plain: Token[] = [];
  for (let at = 0; at < tokens.length; ) {
    const { samples, end } = programsFrom(tokens, at);
    if (samples.length > 1) {
      parts.push(marked.parser(plain), inLanguages(samples, 'The program').text);
      plain = [];
    } else plain.push(...tokens.slice(at, end));
    at = end;
  }
  return new Html([...parts, marked.parser(plain)].join(''));
}

/** The programs from a token on, each in another language, and where they end. At least one token is passed. */
function programsFrom(tokens: readonly Token[], start: number): { samples: LanguageSample[]; end: number } {
  const samples: LanguageSample[] = [];
  let end = start + 1;
  for (let at = start; at < tokens.length; at += 1) {
    const token = tokens[at];
    if (token?.type === 'space' && samples.length > 0) continue;
    if (token?.type !== 'code') break;
    const { lang = '', text: code } = token as Tokens.Code;
    const name = programLanguages[lang];
    if (name === undefined || samples.some((sample) => sample.name === name)) break;
    samples.push({ name, code, highlighted: lang });
    end = at + 1;
  }
  return { samples, end };
}

/** The same for a text that stands within a line. */
export function inlineMarkdown(text: string): Html {
  return new Html(marked.parseInline(text, { async: false }));
}

/** The headings of a text. */
export function headings(text: string): Heading[] {
  return marked.lexer(text).flatMap((token) => {
    if (token.type !== 'heading') return [];
    const { text: written, depth } = token as Tokens.Heading;
    const title = written.replaceAll('`', '');
    return [{ id: slug(title), title, depth }];
  });
}

/** The text without its marks, by the anchor of the part it stands in. That before the first part has none. */
export function textByPart(text: string, depth: number): ReadonlyMap<string, string> {
  const parts = new Map<string, string>();
  let id = '';
  for (const token of marked.lexer(text)) {
    if (token.type === 'heading' && (token as Tokens.Heading).depth === depth) id = headings(token.raw)[0]?.id ?? '';
    else parts.set(id, `${parts.get(id) ?? ''} ${bareText(token.raw)}`.trim());
  }
  return parts;
}

/** A text without marks of Markdown, on one line. */
export function bareText(text: string): string {
  return text
    .replace(/^```.*$/gm, '')
    .replace(/^\|(?:[ :]*-+[ :]*\|)+$/gm, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/<a id="[^"]*"><\/a>|\{\w+\}/g, '')
    .replace(/[`|]|\*\*|^#+ |^- /gm, ' ')
    .replace(/\s+/g, ' ')
    .replace(/ (?=[.,;:)](?: |$))/g, '')
    .trim();
}

/** A title as an anchor. */
export function slug(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
}

function plainText(text: string): string {
  return text.replace(/<[^>]*>/g, '').replace(/&#?\w+;/g, ' ');
}
