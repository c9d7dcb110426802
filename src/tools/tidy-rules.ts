import ts from 'typescript';

/** A file of the tree. */
export interface SourceText {
  readonly path: string;
  readonly text: string;
}

/** The places that break one rule: `file:line text`, or a commit's subject. */
export interface Broken {
  readonly rule: string;
  readonly advice: string;
  readonly places: readonly string[];
}

interface Rule {
  readonly rule: string;
  readonly advice: string;
  find(file: SourceText): readonly string[];
}

const isCode = ({ path }: SourceText) => /\.m?ts$/.test(path);
const isPage = ({ path }: SourceText) => path.endsWith('.md');
const isTest = ({ path }: SourceText) => path.startsWith('test/') && path.endsWith('.test.ts');

const longestFunction = 60;
const longestSubject = 72;

/** Words of our own for which the field has others. */
const privateWords = /\b(?:kept requests?|headless|takes a place|strangers?)\b/gi;
/** Words that tell how it was before. */
const historyWords = /\b(?:no longer|by now|until now|used to be|any more)\b/gi;
/** A sentence that begins with "What" and is no question. */
const headless = /(?:^|[.:;] |\| |- )What (?![^.|]*\?)[^.|]+[.|]/g;
/** The first words of a test's name that cannot begin a sentence. */
const fragment = /^(?:of|that|with|without|in|from|to|for|and|or|which|whose|by|at|as|under|than|on|nor|but|also)\b/;

const rules: readonly Rule[] = [
  {
    rule: 'headless sentences in pages',
    advice: 'Begin with the noun.',
    find: (file) => (isPage(file) ? matchesIn(file, headless) : []),
  },
  {
    rule: 'headless sentences in comments',
    advice: 'Begin with the noun.',
    find: (file) => (isCode(file) ? commentsOf(file).flatMap((each) => matchesIn(each, headless)) : []),
  },
  {
    rule: 'history in pages',
    advice: 'Say what is. Only the CHANGELOG says what was.',
    find: (file) => (isPage(file) ? matchesIn(file, historyWords) : []),
  },
  {
    rule: 'private words',
    advice: "Use the field's word.",
    find: (file) => (isPage(file) || isCode(file) ? matchesIn(file, privateWords) : []),
  },
  {
    rule: 'constants named most…',
    advice: 'Name a bound max….',
    find: (file) => (isCode(file) ? matchesIn(file, /\bconst most[A-Z]\w*/g) : []),
  },
  {
    rule: 'test names that are fragments',
    advice: 'A test has a sentence for its name that can stand alone in a log.',
    find: (file) =>
      isTest(file) ? matchesIn(file, /\bit\((['"`])(.+?)\1/g, ([, , name = '']) => fragment.test(name)) : [],
  },
  {
    rule: `functions longer than ${longestFunction} lines`,
    advice: 'Part it.',
    find: (file) => (isCode(file) && file.path.startsWith('src/') ? longFunctions(file) : []),
  },
];

/** Counts what breaks each rule in files and in the subjects of commits. */
export function brokenRules(files: readonly SourceText[], subjects: readonly string[]): Broken[] {
  return [
    ...rules.map(({ rule, advice, find }) => ({ rule, advice, places: files.flatMap(find) })),
    { rule: 'type names that occur twice in src', advice: 'One name, one thing.', places: typesTwice(files) },
    {
      rule: `commit subjects longer than ${longestSubject} characters`,
      advice: 'A verb and a thing.',
      places: subjects.filter((subject) => subject.length > longestSubject),
    },
  ];
}

function matchesIn(
  { path, text }: SourceText,
  pattern: RegExp,
  counts: (match: RegExpExecArray) => boolean = () => true,
): string[] {
  return text
    .split('\n')
    .flatMap((line, at) =>
      [...line.matchAll(pattern)].filter(counts).map(([found]) => `${path}:${at + 1} ${found.trim().slice(0, 80)}`),
    );
}

/** Each comment as a text of its own, so that a line of it begins like a line of prose. */
function commentsOf({ path, text }: SourceText): SourceText[] {
  return [...text.matchAll(/\/\*\*?[\s\S]*?\*\/|\/\/.*/g)].map(([comment]) => ({
    path,
    text: comment.replace(/^\s*(?:\/\*\*?|\*\/|\*|\/\/) ?/gm, ''),
  }));
}

function longFunctions({ path, text }: SourceText): string[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const lineOf = (at: number) => file.getLineAndCharacterOfPosition(at).line;
  const visit = (node: ts.Node) => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const first = lineOf(node.getStart(file));
      const lines = lineOf(node.getEnd()) - first + 1;
      if (lines > longestFunction) found.push(`${path}:${first + 1} ${lines} lines`);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** Exported types and classes of `src` whose name another one has too. */
function typesTwice(files: readonly SourceText[]): string[] {
  const placesOf = new Map<string, string[]>();
  for (const { path, text } of files) {
    if (!path.startsWith('src/') || !/\.ts$/.test(path)) continue;
    for (const [, name = ''] of text.matchAll(/^export (?:abstract )?(?:interface|class|type) (\w+)/gm)) {
      placesOf.set(name, [...(placesOf.get(name) ?? []), `${path} ${name}`]);
    }
  }
  return [...placesOf.values()].filter((places) => places.length > 1).flat();
}
