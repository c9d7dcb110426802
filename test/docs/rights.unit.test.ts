import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import ts from 'typescript';

const root = join(import.meta.dirname, '../..');
const words = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'] as const;
type Right = (typeof words)[number];

/** The tables of statements whose table is in a variable, by file. A new one is added here. */
const tablesInVariables: Record<string, readonly string[]> = {
  'operators/secret-keys/table.ts': ['secret_keys'],
  'trading/submission/key-retention.ts': ['orders', 'applications', 'allocations', 'withdrawals'],
  'edge/auth/store.ts': ['key_uses'],
  'trading/submission/positions.ts': ['positions'],
  'delivery/events/outbox.ts': ['outbox'],
  // A module that makes the statements of others has none of its own.
  'store/statement.ts': [],
  'store/table.ts': [],
};
/** The tables that code reaches by these words where it knows only that there is one. */
const tablesOf: Record<string, readonly string[]> = {
  'kind.table': ['orders', 'applications', 'allocations', 'withdrawals'],
  table: ['order_steps', 'object_steps'],
  attemptsTable: ['webhook_attempts'],
};
/** The rights that a table's methods need. */
const rightsOfMethods: Record<string, readonly Right[]> = {
  insert: ['INSERT'],
  insertIfMissing: ['INSERT'],
  put: ['INSERT', 'UPDATE'],
  addTo: ['INSERT', 'UPDATE'],
  set: ['UPDATE'],
  update: ['UPDATE'],
  remove: ['DELETE'],
};

describe("the rights of the gateway's database account", () => {
  const granted = readGrants();
  const used = readStatements();

  it('are exactly what its statements use, table by table', () => {
    const grants = Object.fromEntries([...granted].sort());
    const uses = Object.fromEntries([...used].map(([table, rights]) => [table, inOrder(rights)] as const).sort());
    assert.deepEqual(grants, uses);
  });

  it('name every table that is made by a migration', () => {
    const own = filesIn('migrations').filter((path) => !path.includes('/migrations/fix/'));
    const tables = own.flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(/CREATE TABLE (?:IF NOT EXISTS )?(\w+)/g)].map(
        ([, table]) => table ?? '',
      ),
    );
    assert.ok(tables.length > 20, 'the tables were found');
    assert.deepEqual(
      tables.filter((table) => !granted.has(table)),
      [],
    );
  });

  it('let nobody remove an order, an allocation, a wallet, a key or a partner', () => {
    for (const table of [
      'orders',
      'applications',
      'allocations',
      'withdrawals',
      'wallets',
      'wallet_transfers',
      'api_keys',
      'partners',
    ]) {
      assert.ok(!granted.get(table)?.includes('DELETE'), table);
    }
  });

  it('are what docs/operations/deploy.md says', () => {
    const text = readFileSync(join(root, 'docs/operations/deploy.md'), 'utf8');
    const documented = new Map<string, Right[]>();
    for (const [, tables = '', rights = ''] of text.matchAll(
      /^\| ((?:`\w+`(?:, )?)+) \| (SELECT[A-Z, ]*)(?::[^|]*)? \|$/gm,
    )) {
      for (const [, table = ''] of tables.matchAll(/`(\w+)`/g)) documented.set(table, rights.split(', ') as Right[]);
    }
    assert.deepEqual(Object.fromEntries([...documented].sort()), Object.fromEntries([...granted].sort()));
  });

  it('are given by commands that pass a name with an underscore on as it is', () => {
    const commands = ['deploy', 'backup'].flatMap((page) => {
      const text = readFileSync(join(root, `docs/operations/${page}.md`), 'utf8');
      return [...text.matchAll(/^ *mariadb .*rights\.sql.*$/gm)].map(([line]) => line);
    });
    assert.equal(commands.length, 2, 'the commands were found');
    // The client doubles backslashes without it, and `marina\_restored` has one.
    for (const command of commands) assert.match(command, / --raw /);
  });
});

/** Reads the rights that rights.sql gives, by table. */
function readGrants(): Map<string, readonly Right[]> {
  const text = readFileSync(join(root, 'docs/deploy/rights.sql'), 'utf8');
  const found = new Map<string, readonly Right[]>([['migrations', ['SELECT']]]);
  for (const [, tables = '', rights = ''] of text.matchAll(/table_name IN \(([^)]*)\)\s*THEN '([A-Z,]*)'/g)) {
    for (const [, table = ''] of tables.matchAll(/'(\w+)'/g)) found.set(table, rights.split(',') as Right[]);
  }
  return found;
}

/** The tables that are described, by the names they have in the code. */
function describedTables(): Record<string, readonly string[]> {
  const found = filesIn('src')
    .filter((path) => !path.includes('/src/fix-adapter/'))
    .flatMap((path) => [...readFileSync(path, 'utf8').matchAll(/const (\w+) = defineTable\(\{\s*name: '(\w+)'/g)]);
  assert.ok(found.length > 8, 'the tables were found');
  return Object.fromEntries(found.map(([, name, table]) => [name, [table ?? '']]));
}

/** Reads the rights that the gateway's statements need, by table. Each table is read somewhere. */
function readStatements(): Map<string, Set<Right>> {
  const found = new Map<string, Set<Right>>();
  const folder = join(root, 'src/gateway');
  Object.assign(tablesOf, describedTables());
  for (const [table = ''] of Object.values(tablesOf)) found.set(table, found.get(table) ?? new Set(['SELECT']));
  for (const path of filesIn('src/gateway')) {
    const file = path.slice(folder.length + 1);
    // The archive has an account of its own. An administrator migrates.
    if (/^operators\/archive\/|^store\/migrate\.ts$/.test(file)) continue;
    for (const [table, right] of rightsOf(file, readFileSync(path, 'utf8'))) {
      found.set(table, (found.get(table) ?? new Set<Right>(['SELECT'])).add(right));
    }
  }
  return found;
}

function rightsOf(file: string, source: string): [table: string, right: Right][] {
  const found: [string, Right][] = [];
  const add = (table: string | undefined, right: Right) => {
    if (table !== undefined && /^\w+$/.test(table)) return found.push([table, right]);
    const tables = tablesInVariables[file];
    assert.ok(tables, `${file} has a statement on ${table ?? 'a table that is not named'}: see tablesInVariables`);
    return found.push(...tables.map((each): [string, Right] => [each, right]));
  };
  for (const [, name = '', method = ''] of source.matchAll(
    /((?:\w+\.)?\w+)\.(insert|insertIfMissing|put|addTo|set|update|remove)\(/g,
  )) {
    for (const table of tablesOf[name] ?? []) for (const right of rightsOfMethods[method] ?? []) add(table, right);
  }
  for (const text of textsOf(source)) {
    const inserted = /INSERT (?:IGNORE )?INTO (\S+)/.exec(text)?.[1];
    if (inserted !== undefined) add(inserted, 'INSERT');
    if (text.includes('ON DUPLICATE KEY UPDATE')) add(inserted, 'UPDATE');
    for (const [, table] of text.matchAll(/(?<!FOR |KEY )\bUPDATE (\S+)/g)) add(table, 'UPDATE');
    for (const [, alias, from = ''] of text.matchAll(/\bDELETE (?:(\w+) )?FROM (\S+)/g)) {
      add(from.startsWith('(') ? new RegExp(`JOIN (\\w+) ${alias}\\b`).exec(text)?.[1] : from, 'DELETE');
    }
    for (const [, table] of text.matchAll(/\bREPLACE INTO (\S+)/g)) add(table, 'DELETE');
    if (/\bTRUNCATE\b|\bDROP TABLE\b/.test(text)) assert.fail(`${file}: ${text}`);
    // A lock needs the right to change, too.
    if (/FOR UPDATE/.test(text)) for (const [, table] of text.matchAll(/\bFROM (\w+|\$\{\})/g)) add(table, 'UPDATE');
    // A name that a statement defines itself (WITH) is no table.
    const own = /\bWITH (?:RECURSIVE )?(\w+)/.exec(text)?.[1];
    for (const [, table] of text.matchAll(/\b(?:FROM|JOIN) ([a-z_]+)\b(?!\.)/g)) {
      if (/\bSELECT\b/.test(text) && table !== own) found.push([table as string, 'SELECT']);
    }
  }
  return found;
}

/** The texts in a source that hold a statement; values in them are left as `${}`. */
function textsOf(source: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node) => {
    if (ts.isStringLiteralLike(node)) found.push(node.text);
    else if (ts.isTemplateExpression(node)) {
      found.push(node.head.text + node.templateSpans.map(({ literal }) => `\${}${literal.text}`).join(''));
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('source.ts', source, ts.ScriptTarget.Latest));
  return found.map((text) => text.replace(/\s+/g, ' '));
}

function inOrder(rights: ReadonlySet<Right>): Right[] {
  return words.filter((word) => rights.has(word));
}

function filesIn(folder: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.ts')).map((name) => join(root, folder, name));
}
