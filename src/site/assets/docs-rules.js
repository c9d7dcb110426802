/** The rules of docs.js. They need no browser, so that tests run them as they are. */

export function isSandboxKey(text) {
  return /^marina_test_[\w-]+$/.test(text);
}

/** The name that a link leads to. A `%` may be in it that encodes nothing. */
export function nameIn(hash) {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return hash.slice(1);
  }
}

/** The tab to which a key moves from the one at `at`, around the ends; undefined for every other key. */
export function stepTo(key, at, count) {
  const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: count - 1 }[key];
  return next === undefined ? undefined : (next + count) % count;
}

/** Who reads JavaScript reads TypeScript. A group without the chosen language stays as it is. */
export function nearestLanguage(names, language) {
  const family = ['TypeScript', 'JavaScript', 'Node'];
  if (names.includes(language)) return language;
  return family.includes(language) ? names.find((name) => family.includes(name)) : undefined;
}

/** An example's body about an account of the reader's. */
export function withAccount(body, account) {
  return body.replace(/("account": )"[^"]*"/, `$1"${account}"`);
}

/** The request that the fields of a form make. A query without a value is left out. */
export function requestOf({ method, path, fields }, secret) {
  let url = path;
  const query = new URLSearchParams();
  const made = { method, headers: { Authorization: `Bearer ${secret}` } };
  for (const { place, name, value, file } of fields) {
    if (place === 'path') url = url.replace(`{${name}}`, encodeURIComponent(value));
    else if (place === 'query' && value !== '') query.set(name, value);
    else if (place === 'header') made.headers[name] = value;
    else if (place === 'body') {
      made.headers['Content-Type'] = 'application/json';
      made.body = value;
    } else if (place === 'file') {
      made.body = file;
      // A file of a kind that the browser does not know has an empty type.
      made.headers['Content-Type'] = file?.type || 'image/jpeg';
    }
  }
  return { ...made, url: query.size === 0 ? url : `${url}?${query}` };
}

/** The headers of an answer that its reader needs. */
export function headersShown(headers) {
  return ['x-request-id', 'location', 'retry-after', 'idempotent-replayed']
    .filter((name) => headers.has(name))
    .map((name) => `${name}: ${headers.get(name)}`)
    .join(', ');
}

/** JSON with line breaks. The text's own digits are kept: numbers here can be longer than JavaScript's. */
export function indented(text) {
  let depth = 0;
  const parts = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^"{}[\],:\s]+/g) ?? [];
  let out = '';
  for (const [at, part] of parts.entries()) {
    const isOpening = part === '{' || part === '[';
    const isClosing = part === '}' || part === ']';
    const isEmpty = isClosing && ['{', '['].includes(parts[at - 1]);
    if (isClosing) depth -= 1;
    if (isClosing && !isEmpty) out += `\n${'  '.repeat(depth)}`;
    out += part === ':' ? ': ' : part;
    if (isOpening) depth += 1;
    const isNextClosing = ['}', ']'].includes(parts[at + 1]);
    if (part === ',' || (isOpening && !isNextClosing)) out += `\n${'  '.repeat(depth)}`;
  }
  return out;
}
