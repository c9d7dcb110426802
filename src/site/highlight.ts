import { escapeHtml, Html } from './html.ts';

/** The classes of highlighted code: comment, string, number, word of the language, name of a member. */
type Kind = 'c' | 's' | 'n' | 'k' | 'm';

interface Language {
  readonly expression: RegExp;
}

const strings = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/;
const numbers = /\b\d[\d_]*(?:\.\d+)?\b/;

/** An expression with a group for each kind, tried in this order. */
function language(comment: RegExp, words: string, members?: RegExp): Language {
  const groups = [
    members && `(?<m>${members.source})`,
    `(?<c>${comment.source})`,
    `(?<s>${strings.source})`,
    `(?<n>${numbers.source})`,
    words !== '' && `(?<k>\\b(?:${words})\\b)`,
  ];
  return { expression: new RegExp(groups.filter(Boolean).join('|'), 'gm') };
}

const cWords =
  'import|from|export|const|let|function|return|if|else|for|of|in|new|throw|true|false|null|async|await|package|func|var|range|type|struct|nil|err|error|string|bool|byte';
const ofClasses =
  'import|using|public|static|final|class|void|throws|throw|new|return|if|for|foreach|in|var|null|true|false|byte|long|string';
const languages: Readonly<Record<string, Language>> = {
  json: language(/(?!)/, 'true|false|null', /"(?:[^"\\]|\\.)*"(?=\s*:)/),
  sh: language(/(?:^|(?<=\s))#.*$/, 'curl|grpcurl|npx|make|export|git|cd', /(?<=\s)--?[A-Za-z][\w-]*/),
  js: language(/\/\/.*$/, cWords),
  go: language(/\/\/.*$/, cWords),
  python: language(
    /#.*$/,
    'import|from|def|return|if|else|elif|for|in|not|and|or|raise|True|False|None|with|as|try|except',
  ),
  java: language(/\/\/.*$/, ofClasses),
  csharp: language(/\/\/.*$/, ofClasses),
  php: language(/\/\/.*$/, 'function|return|if|else|foreach|as|true|false|null|throw|new|string|bool|array|use'),
};

/** Code with its parts marked; in a language nobody knows here, the plain code. */
export function highlight(code: string, name: string): Html {
  const known = languages[name];
  if (known === undefined) return new Html(escapeHtml(code));
  let text = '';
  let from = 0;
  for (const match of code.matchAll(known.expression)) {
    const kind = Object.entries(match.groups ?? {}).find(([, found]) => found !== undefined)?.[0] as Kind;
    text += `${escapeHtml(code.slice(from, match.index))}<span class="${kind}">${escapeHtml(match[0])}</span>`;
    from = match.index + match[0].length;
  }
  return new Html(text + escapeHtml(code.slice(from)));
}
