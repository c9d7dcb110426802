import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { PartnersNamed } from './partners-named.ts';
import { shapesOf } from './statement-shapes.ts';

/**
 * Notes every statement that a gateway sends from this process, by its shape, and those that name several partners.
 * `test/run.ts` loads this into every test process, before the gateway's own code, and compares what was noted with
 * `test/support/scale/statements.txt` and `statements-of-several-partners.txt`. A gateway is told from the test by its pool and
 * its account, which `createTestDatabase` names like the database.
 */
const folder = process.env.MARINA_TEST_STATEMENTS;
if (folder !== undefined) record(folder);

interface Sent {
  readonly constructor: { readonly name: string };
  readonly config: { readonly user?: string; readonly database?: string };
}

interface Driver {
  format(sql: string, ...rest: unknown[]): string;
  readonly Connection: { readonly prototype: object };
}

function record(into: string): void {
  // The driver is a CommonJS module: what is changed in it here is what the gateway's code imports later.
  const driver = createRequire(import.meta.url)('mysql2') as Driver;
  const shapes = new Set<string>();
  const partners = new PartnersNamed();
  const known = new Set<string>();
  const note = (sql: string) => {
    if (known.has(sql)) return;
    known.add(sql);
    for (const shape of shapesOf(sql)) shapes.add(shape);
  };

  // A batch is one text. Which parts of it are values is known only while it is put together.
  let written: { text: string; sql: string }[] = [];
  const format = driver.format;
  driver.format = (sql, ...rest) => {
    const text = format(sql, ...rest);
    written.push({ text, sql });
    return text;
  };
  const statementsOf = (batch: string) => {
    let rest = batch;
    const statements: { text: string; sql: string }[] = [];
    const add = (texts: string) => {
      for (const text of texts.split(';\n')) if (text.trim() !== '') statements.push({ text, sql: text });
    };
    for (const one of written) {
      const at = rest.indexOf(one.text);
      if (at < 0) continue;
      add(rest.slice(0, at));
      statements.push(one);
      rest = rest.slice(at + one.text.length);
    }
    written = [];
    add(rest);
    return statements;
  };

  let prototype = driver.Connection.prototype;
  while (!Object.hasOwn(prototype, 'execute')) prototype = Object.getPrototypeOf(prototype);
  const methods = prototype as Record<'query' | 'execute', (this: Sent, sql: unknown, ...rest: unknown[]) => unknown>;
  for (const name of ['query', 'execute'] as const) {
    const send = methods[name];
    methods[name] = function (sql, ...rest) {
      const text = typeof sql === 'string' ? sql : String((sql as { sql: unknown }).sql);
      const statements = name === 'query' ? statementsOf(text) : [{ text, sql: text }];
      const isGateway = this.constructor.name === 'PoolConnection' && this.config.user === this.config.database;
      if (isGateway) {
        for (const { sql } of statements) note(sql);
        partners.sent(this, statements, rest[0]);
      }
      return send.call(this, sql, ...rest);
    };
  }
  process.once('exit', () => {
    if (shapes.size === 0) return;
    mkdirSync(into, { recursive: true });
    writeFileSync(
      join(into, `${process.pid}.json`),
      JSON.stringify({ shapes: [...shapes], several: [...partners.several] }),
    );
  });
}
