import { readFileSync } from 'node:fs';

/** The allowed text of a setting, for people, and its parser. */
export interface Form<T> {
  readonly allowed: string;
  /** Throws an Error that says what is allowed, and never the value. `file`: where the text is, if it is in a file. */
  readonly read: (text: string, file?: string) => T;
  /** Whether the text may be in a file, which another variable names. */
  readonly isSecret?: boolean;
}

/** A secret's value at the start, and where a later one may be. */
export interface Secret<T> {
  readonly first: T;
  /** The file that has it; undefined: it cannot change. */
  readonly file: string | undefined;
  /** Reads the file's text. Throws as the form does. */
  readonly read: (text: string) => T;
}

/** One setting from an environment variable. */
export interface Setting<T> {
  readonly variable: string;
  /** Its name in the release before, which is still read. */
  readonly formerly?: string;
  readonly meaning: string;
  /** The default; undefined: the variable must be set. */
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

/** A setting that had another name in the release before. That name is read until the next release. */
export function renamed<T>(formerly: string, setting: Setting<T>): Setting<T> {
  return { ...setting, formerly };
}

/** Has one line for each wrong setting. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Reads settings; an empty variable counts as not set. Each error adds a line to `problems` and gives undefined. */
export function readSettings<Some extends Settings>(
  settings: Some,
  variables: NodeJS.ProcessEnv,
  problems: string[],
): ValuesOf<Some> {
  const values = Object.entries(settings).map(([name, each]) => [name, readSetting(each, variables, problems)]);
  return Object.fromEntries(values);
}

/** Reads one setting in the same way. */
function readSetting<T>(setting: Setting<T>, variables: NodeJS.ProcessEnv, problems: string[]): T | undefined {
  const { formerly = setting.variable, meaning, fallback, form } = setting;
  const variable = variables[formerly] || variables[fileVariable(formerly)] ? formerly : setting.variable;
  const file = form.isSecret ? variables[fileVariable(variable)] || undefined : undefined;
  const name = file === undefined ? variable : fileVariable(variable);
  try {
    if (variable !== setting.variable && variables[setting.variable]) {
      throw new Error(`and ${setting.variable}, which is its name now, must not both be set`);
    }
    if (file !== undefined && variables[variable]) throw new Error(`and ${variable} must not both be set`);
    const given = file === undefined ? variables[variable] || fallback : textOf(file);
    if (given === undefined) throw new Error('must be set');
    return form.read(given, file);
  } catch (error) {
    problems.push(`${name} ${(error as Error).message}: ${meaning}`);
    return undefined;
  }
}

/** The variable that names the file with a secret. */
function fileVariable(variable: string): string {
  return `${variable}_FILE`;
}

function textOf(file: string): string {
  const text = contentOf(file).trim();
  if (text === '') throw new Error('must name a file that is not empty');
  return text;
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** A line for each unknown variable with the prefix, because a misspelt setting would have no effect. */
export function unknownVariables(prefix: string, settings: Settings, variables: NodeJS.ProcessEnv): string[] {
  const known = new Set(
    Object.values(settings).flatMap(({ variable, formerly = variable, form }) =>
      form.isSecret ? [variable, formerly, fileVariable(variable), fileVariable(formerly)] : [variable, formerly],
    ),
  );
  return Object.entries(variables)
    .filter(([name, value]) => name.toUpperCase().startsWith(prefix) && value && !known.has(name))
    .map(([name]) => {
      const meant = nearest(name, known);
      return `${name} is no setting${meant === undefined ? '' : `; ${meant} is`}`;
    })
    .sort();
}

/** Every setting with its default, its allowed values and its meaning, for people. */
export function describeSettings(settings: Settings): string {
  return Object.values(settings)
    .map(({ variable, formerly, fallback, form, meaning }) => {
      const standard = fallback === undefined ? 'must be set' : `default: ${fallback === '' ? 'none' : fallback}`;
      const inFile = form.isSecret ? `; or in the file that ${fileVariable(variable)} names` : '';
      const before = formerly === undefined ? '' : `; formerly ${formerly}, which is read until the next release`;
      return `${variable}\n  ${meaning}\n  ${standard}; may be: ${form.allowed}${inFile}${before}`;
    })
    .join('\n\n');
}

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

export function yesOrNo(): Form<boolean> {
  const { allowed, read } = oneOf('true', 'false');
  return { allowed, read: (value) => read(value) === 'true' };
}

/** A text that matches a pattern. `what` describes the pattern. */
export function text(pattern: RegExp, what: string): Form<string> {
  return {
    allowed: what,
    read: (value) => {
      if (!pattern.test(value)) throw new Error(`must be ${what}`);
      return value;
    },
  };
}

/** A whole number from `least` to `most`. */
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
      const pem = contentOf(path);
      if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw new Error('must hold certificates in PEM');
      return pem;
    },
  };
}

/** The same form, or nothing: for a setting whose default is empty. */
export function orNone<T>({ allowed, read }: Form<T>): Form<T | undefined> {
  return { allowed, read: (value, file) => (value === '' ? undefined : read(value, file)) };
}

/** The same form for a secret, which may be in a file. */
export function secret<T>(form: Form<T>): Form<T> {
  return { ...form, isSecret: true };
}

/** The same form for a secret that is read again when its file changes. */
export function changingSecret<T>({ allowed, read }: Form<T>): Form<Secret<T>> {
  return secret({ allowed, read: (value, file) => ({ first: read(value), file, read }) });
}

/** The paths of PEM files, as a setting that may be empty. */
export function pemPath(variable: string, meaning: string): Setting<string | undefined> {
  return setting(variable, meaning, '', orNone(text(/./, 'the path of a PEM file')));
}

/** A form with the given parser. */
export function reading<T>(allowed: string, read: (text: string) => T): Form<T> {
  return { allowed, read };
}

/** The most similar word, for a message about a misspelt one; undefined if none is similar. */
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

/** The Levenshtein distance. */
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
