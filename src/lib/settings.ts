import { readFileSync } from 'node:fs';

/** What the text of a setting may be, for people, and how it is read. */
export interface Form<T> {
  readonly allowed: string;
  /** Throws an Error that says what it must be, and never what it was. */
  readonly read: (text: string) => T;
}

/** One setting that comes from an environment variable. */
export interface Setting<T> {
  readonly variable: string;
  readonly meaning: string;
  /** What is used where the variable is not set; undefined: it must be set. */
  readonly fallback: string | undefined;
  readonly form: Form<T>;
}

/** Settings by name, in the order in which they are listed. */
type Settings = Readonly<Record<string, Setting<unknown>>>;

/** The values of settings, by the same names. */
export type ValuesOf<Some extends Settings> = {
  readonly [Name in keyof Some]: Some[Name] extends Setting<infer T> ? T : never;
};

export function setting<T>(variable: string, meaning: string, fallback: string | undefined, form: Form<T>): Setting<T> {
  return { variable, meaning, fallback, form };
}

/** Thrown with one line for each setting that is wrong. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Reads settings from variables, an empty one counting as not set. What is wrong is added to `problems`, a line each; the
 * values that are meant by it are undefined then.
 */
export function readSettings<Some extends Settings>(
  settings: Some,
  variables: NodeJS.ProcessEnv,
  problems: string[],
): ValuesOf<Some> {
  const values = Object.entries(settings).map(([name, each]) => [name, readSetting(each, variables, problems)]);
  return Object.fromEntries(values);
}

/** Reads one setting, in the same way. */
export function readSetting<T>(setting: Setting<T>, variables: NodeJS.ProcessEnv, problems: string[]): T | undefined {
  const given = variables[setting.variable] || setting.fallback;
  try {
    if (given === undefined) throw new Error('must be set');
    return setting.form.read(given);
  } catch (error) {
    problems.push(`${setting.variable} ${(error as Error).message}: ${setting.meaning}`);
    return undefined;
  }
}

/** A line for each variable that looks like a setting and is none: in a misspelt one, what was meant would be lost. */
export function unknownVariables(prefix: string, settings: Settings, variables: NodeJS.ProcessEnv): string[] {
  const known = new Set(Object.values(settings).map(({ variable }) => variable));
  return Object.entries(variables)
    .filter(([name, value]) => name.toUpperCase().startsWith(prefix) && value && !known.has(name))
    .map(([name]) => {
      const meant = nearest(name, known);
      return `${name} is no setting${meant === undefined ? '' : `; ${meant} is`}`;
    })
    .sort();
}

/** Every setting with its default, what it may be, and its meaning, for people. */
export function describeSettings(settings: Settings): string {
  return Object.values(settings)
    .map(({ variable, fallback, form, meaning }) => {
      const standard = fallback === undefined ? 'must be set' : `default: ${fallback === '' ? 'none' : fallback}`;
      return `${variable}\n  ${meaning}\n  ${standard}; may be: ${form.allowed}`;
    })
    .join('\n\n');
}

/** One of some words. */
export function oneOf<const T extends string>(...words: T[]): Form<T> {
  const allowed = words.join(', ');
  return {
    allowed,
    read: (value) => {
      const found = words.find((word) => word === value);
      if (found === undefined) throw new Error(`must be one of ${allowed}`);
      return found;
    },
  };
}

/** True or false. */
export function yesOrNo(): Form<boolean> {
  const { allowed, read } = oneOf('true', 'false');
  return { allowed, read: (value) => read(value) === 'true' };
}

/** A text that matches a pattern, which `what` puts into words. */
export function text(pattern: RegExp, what: string): Form<string> {
  return {
    allowed: what,
    read: (value) => {
      if (!pattern.test(value)) throw new Error(`must be ${what}`);
      return value;
    },
  };
}

/** A whole number in a range, its ends included. */
export function wholeNumber(least: number, most: number): Form<number> {
  const allowed = `a whole number from ${least} to ${most}`;
  return {
    allowed,
    read: (value) => {
      const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
      if (!(number >= least && number <= most)) throw new Error(`must be ${allowed}`);
      return number;
    },
  };
}

/** The text of a file of certificates, by its path. */
export function certificateFile(): Form<string> {
  return {
    allowed: 'the path of a PEM file',
    read: (path) => {
      let pem: string;
      try {
        pem = readFileSync(path, 'utf8');
      } catch (error) {
        throw new Error(`cannot be read (${(error as NodeJS.ErrnoException).code})`);
      }
      if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw new Error('must hold certificates in PEM');
      return pem;
    },
  };
}

/** The same as another form, or nothing: of a setting that is empty where it is not set. */
export function orNone<T>({ allowed, read }: Form<T>): Form<T | undefined> {
  return { allowed, read: (value) => (value === '' ? undefined : read(value)) };
}

/** A form by how its text is read on. */
export function reading<T>(allowed: string, read: (text: string) => T): Form<T> {
  return { allowed, read };
}

/** The word most like another, for a message about one that was misspelt; undefined when none is much like it. */
export function nearest(word: string, words: Iterable<string>): string | undefined {
  let best: string | undefined;
  let least = Math.floor(word.length / 3) + 1;
  for (const candidate of words) {
    const distance = editDistance(word.toUpperCase(), candidate.toUpperCase());
    if (distance < least) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

/** How many letters must be put in, left out or changed to make one text of another. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [above, letter] of [...from].entries()) {
    const next = [above + 1];
    for (let at = 1; at <= to.length; at += 1) {
      const changed = (row[at - 1] ?? 0) + (letter === to[at - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[at] ?? 0) + 1, (next[at - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
