import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { repeated } from '../statement-shapes.ts';

/** The statements and transactions that reach rows of several partners, each with its reason. */
const file = join(import.meta.dirname, './statements-of-several-partners.txt');

/** Statements that reach several partners for the same reason. */
export interface Group {
  readonly name: string;
  /** Why they name no single partner. */
  readonly why: string;
  /** Their behaviour if partners are on several clusters. */
  readonly clusters: string;
  readonly statements: readonly string[];
}

export function groups(): Group[] {
  const [, ...parts] = readFileSync(file, 'utf8').split(/^## /m);
  return parts.map((part) => {
    const [name = '', ...lines] = part.trim().split('\n');
    const after = (word: string) => lines.find((line) => line.startsWith(word))?.slice(word.length) ?? '';
    const statements = lines.filter((line) => line !== '' && !/^(?:Why|Clusters): /.test(line));
    return { name, why: after('Why: '), clusters: after('Clusters: '), statements };
  });
}

/**
 * A shape without the columns that it reads or inserts, without constants in lists, and with a repeated part as it stands
 * once: so a new column or state changes no line of the list, and chance neither.
 */
export function brief(shape: string): string {
  return shape
    .replaceAll(`)${repeated}`, ')')
    .replaceAll(/\bSELECT [\w., `*]+? FROM\b/g, 'SELECT … FROM')
    .replace(/^(INSERT (?:IGNORE )?INTO \w+) \([\w, ]+\)/, '$1 (…)')
    .replaceAll(/\('[^']*'(?:, '[^']*')*\)/g, '(…)');
}

const listed = new Set(groups().flatMap(({ statements }) => statements));

export function isListed(shape: string): boolean {
  return listed.has(brief(shape));
}

/** Says what to do with statements that reach several partners and are not in the list. */
export function explainUnlisted(shapes: readonly string[]): string {
  return [
    'These reach the rows of several partners. Name one partner in each (`partner_id = ?`), so that partners can be moved to',
    'several clusters (docs/SCALING.md). If it must reach several, add its line to',
    `${relative(process.cwd(), file)}, under the reason that holds for it. A transaction is named by its first statement:`,
    ...shapes.map((shape) => `  ${brief(shape)}`),
  ].join('\n');
}
