/** The beginning of a JSON object: the members that are whole, as an object of their own, and the name of the one that is cut. */
export interface JsonStart {
  readonly whole: Buffer;
  /** Undefined: the object ends before the cut, or the cut is in a name. */
  readonly cut: string | undefined;
}

const cutMember = /^\s*("(?:[^"\\]|\\.)*")\s*:/;

/** Splits the first bytes of a JSON object behind its last whole member. It judges nothing: what it returns may be no JSON. */
export function splitStart(bytes: Buffer): JsonStart {
  // Each byte is one character, and JSON's own ones are never part of another one in UTF-8.
  const text = bytes.toString('latin1');
  const begin = text.indexOf('{');
  let depth = 0;
  let isValue = false;
  /** Where the whole members end, and where the next one begins. */
  let [end, next] = [begin + 1, begin + 1];
  for (let at = begin; at >= 0 && at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') {
      at = endOfText(text, at);
      if (depth === 1 && isValue && at < text.length) end = at + 1;
    } else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') {
      depth -= 1;
      if (depth === 0) return { whole: bytes.subarray(0, at + 1), cut: undefined };
      if (depth === 1) end = at + 1;
    } else if (depth === 1 && character === ':') isValue = true;
    else if (depth === 1 && character === ',') {
      isValue = false;
      [end, next] = [at, at + 1];
    }
  }
  const whole = Buffer.concat([bytes.subarray(0, Math.max(end, 0)), Buffer.from(begin < 0 ? '{}' : '}')]);
  const [, name] = end > next ? [] : (cutMember.exec(text.slice(next)) ?? []);
  return { whole, cut: name === undefined ? undefined : readName(name) };
}

/** The position of a text's last quotation mark, or the end if it is cut. */
function endOfText(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"') return at;
  }
  return text.length;
}

function readName(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted);
  } catch {
    return undefined;
  }
}
