/**
 * How the pages are searched: an entry is found by its title, its text, what others call it, and forms of one word
 * (`canceled`, `cancelled`, `cancellation`). It needs no browser, so that tests search as readers do.
 */

/** What others call things: a word finds what any word of its line does. */
const synonyms = [
  ['pagination', 'paginate', 'paging', 'cursor', 'next_cursor'],
  ['retry', 'retries', 'again', 'repeat', 'replay'],
  ['timeout', 'timeouts', 'deadline', 'in time', 'retry-after'],
  ['throttle', 'throttled', 'throttling', 'ratelimit', 'rate-limit', 'rate_limited', '429'],
  ['deposit', 'fund', 'funding', 'transfer', 'allocation'],
  ['payout', 'payouts', 'pay out', 'cash out', 'withdraw', 'withdrawal'],
  ['kyc', 'onboarding', 'signup', 'application'],
  ['callback', 'callbacks', 'hook', 'webhook', 'ngrok', 'tunnel', 'localhost'],
  ['signature', 'hmac', 'verify', 'signed'],
  ['token', 'apikey', 'authentication', 'auth', 'bearer', 'key'],
  ['stock', 'ticker', 'instrument', 'security', 'symbol'],
  ['quote', 'preview', 'fee', 'fees', 'commission', 'estimate'],
  ['execution', 'executions', 'trade', 'fill'],
  ['holding', 'holdings', 'portfolio', 'position'],
  ['cash', 'buying power', 'balance'],
  ['sdk', 'library', 'libraries', 'client', 'typescript', 'python'],
  ['simulate', 'simulator', 'test', 'magic', 'sandbox'],
  ['stream', 'streaming', 'websocket', 'sse', 'watch', 'feed'],
];

/** Words of a question that say nothing about what is looked for. */
const fillers = new Set(
  (
    'a an and any anywhere are as at be can could do does for from get has have how i if in into is it me my no of on or our ' +
    'please should show so such that the there thing things this to us use using want we what when where which who why will with ' +
    'without would you your marina'
  ).split(' '),
);

/** The words of a text in one form each, those within a name such as `order.cancelled` too. */
function wordsOf(text) {
  const whole = text.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}_.+/:-]*/gu) ?? [];
  return whole.flatMap((word) => {
    const name = word.replace(/[.:/-]+$/, '');
    const parts = name.split(/[_./:-]+/).filter((part) => part !== '');
    return parts.length > 1 ? [stem(name), ...parts.map(stem)] : [stem(name)];
  });
}

/** The form that the forms of a word share. It need not be a word. */
function stem(word) {
  if (word.length < 4 || /[^a-z]/.test(word)) return word;
  const bare = word.replace(/(?<=...)(?:ations?|ings?|ed|als?|es|s)$/, '');
  const single = bare.replace(/([^aeiou])\1$/, '$1');
  return single.length < 4 ? single : single.replace(/e$/, '').replace(/y$/, 'i');
}

/** The index, made ready to be searched: `[title, href, kind, text, aliases]` for each entry. */
export function prepare(index) {
  return index.map((entry) => {
    const [title, , kind, text, aliases = ''] = entry;
    const phrases = aliases.split(',').map(phraseOf).filter(Boolean);
    return {
      entry,
      title: new Set(wordsOf(title)),
      phrase: phraseOf(title),
      phrases,
      aliases: new Set(phrases.flatMap((phrase) => phrase.split(' '))),
      kind: new Set(wordsOf(kind)),
      text: new Set(wordsOf(text)),
    };
  });
}

function phraseOf(text) {
  return wholeWords(text).join(' ');
}

/** The words that are typed, in one form each. */
function wholeWords(text) {
  const words = text.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}_.+/:-]*/gu) ?? [];
  return words.map((word) => stem(word.replace(/[.:/-]+$/, '')));
}

/** The words of a query that count. A query of fillers alone is taken as it is. */
function asked(query) {
  const words = query.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}_.+/:-]*/gu) ?? [];
  const telling = words.filter((word) => !fillers.has(word));
  return [...new Set((telling.length > 0 ? telling : words).map((word) => stem(word.replace(/[.:/-]+$/, ''))))];
}

function isFillersOnly(query) {
  const words = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.every((word) => fillers.has(word));
}

/** A word, and what others call the same. */
function alternatives(word) {
  const lines = synonyms.map((line) => line.map((each) => phraseOf(each)));
  return lines
    .filter((line) => line.some((each) => each === word || (word.length > 3 && each.startsWith(word))))
    .flat()
    .filter((each) => each !== word);
}

/**
 * The entries that are found, best first. Entries with every word come alone; if there is none, those with most of the words.
 * Fillers alone find only what is named by them.
 */
export function search(prepared, query) {
  const words = asked(query);
  if (words.length === 0) return [];
  if (isFillersOnly(query)) return named(prepared, words);
  const others = words.map(alternatives);
  const phrase = words.join(' ');
  const scored = prepared.map((part) => {
    const scores = words.map((word, at) => scoreOf(part, word, others[at]));
    const count = scores.filter((score) => score > 0).length;
    return { entry: part.entry, count, score: scores.reduce((sum, each) => sum + each, 0) + bonus(part, phrase) };
  });
  const most = Math.max(0, ...scored.map(({ count }) => count));
  if (most === 0) return [];
  return scored
    .filter(({ count }) => count === most)
    .sort((one, other) => other.score - one.score)
    .map(({ entry }) => entry);
}

/** The entries whose title or aliases have every word. */
function named(prepared, words) {
  return prepared
    .filter(({ title, aliases }) => words.every((word) => title.has(word) || aliases.has(word)))
    .map(({ entry }) => entry);
}

function scoreOf(part, word, others) {
  const begins = (words) => word.length > 1 && [...words].some((each) => each.startsWith(word));
  if (part.title.has(word)) return 10;
  if (part.aliases.has(word)) return 9;
  if (begins(part.title)) return 7;
  if (begins(part.aliases)) return 5;
  if (others.some((other) => part.title.has(other))) return 4;
  if (part.text.has(word)) return 3;
  if (begins(part.text) || part.kind.has(word)) return 2;
  return others.some((other) => part.text.has(other)) ? 1 : 0;
}

/** A title or an alias that is just what was asked comes first. */
function bonus({ phrase, phrases }, asked) {
  if (phrases.includes(asked)) return 20;
  if (phrase === asked) return 15;
  return phrase.startsWith(`${asked} `) ? 3 : 0;
}

/** Some 120 letters of a text around the first word that was asked for: `[before, match, after]`. */
export function excerpt(text, query) {
  const words = asked(query);
  const all = [...text.matchAll(/[\p{L}\p{N}][\p{L}\p{N}_.+/:-]*/gu)];
  const match = all.find(([word]) => wordsOf(word).some((each) => words.some((wanted) => each.startsWith(wanted))));
  const at = match?.index ?? 0;
  const length = match?.[0].length ?? 0;
  const from = at < 50 ? 0 : text.indexOf(' ', at - 50) + 1;
  const to = from + 120 >= text.length ? text.length : Math.max(text.lastIndexOf(' ', from + 120), at + length);
  const before = `${from > 0 ? '… ' : ''}${text.slice(from, at)}`;
  return [before, text.slice(at, at + length), `${text.slice(at + length, to)}${to < text.length ? ' …' : ''}`];
}
