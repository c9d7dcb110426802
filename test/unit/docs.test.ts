import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { ApiError, catalogue, type ErrorCode } from '../../src/lib/errors.ts';
import { Metrics } from '../../src/lib/metrics.ts';
import { magicAmounts, magicFirstNames, magicLastNames } from '../../src/simulator/back-office/magic.ts';
import { magicSymbols } from '../../src/simulator/magic.ts';
import { docUrl } from '../../src/transport/doc-url.ts';
import { rpcStatus } from '../../src/transport/rpc-errors.ts';

const root = join(import.meta.dirname, '../..');
const codes = Object.keys(catalogue) as ErrorCode[];

/** The cells of every table row of a page whose first cell matches. */
function rowsOf(page: string, first: RegExp): string[][] {
  return readFileSync(join(root, page), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    )
    .filter(([cell = '']) => first.test(cell));
}

describe('docs/ERRORS.md', () => {
  const rows = rowsOf('docs/ERRORS.md', /^<a id=/);

  it('has every code of the catalogue once, with the statuses, type and delay the doors answer with', () => {
    const told = rows.map(([first = '', http, grpc, type, retryAfter]) => ({
      code: /`(.+)`$/.exec(first)?.[1],
      http,
      grpc,
      type,
      retryAfter,
    }));
    const expected = codes.map((code) => {
      const error = new ApiError(code);
      return {
        code,
        http: String(error.status),
        grpc: status[rpcStatus(error)],
        type: `\`${error.type}\``,
        retryAfter: String(error.retryAfterSeconds ?? ''),
      };
    });
    const byCode = (one: { code?: string }, other: { code?: string }) =>
      (one.code ?? '').localeCompare(other.code ?? '');
    assert.deepEqual(told.sort(byCode), expected.sort(byCode));
  });

  it('has an anchor where the `doc_url` of each code points, and says what to do', () => {
    const page = new Map(rows.map(([first = '', ...rest]) => [/^<a id="(.+)"><\/a>/.exec(first)?.[1], rest.at(-1)]));
    for (const code of codes) {
      assert.ok((page.get(new URL(docUrl('http://localhost', code)).hash.slice(1)) ?? '').length > 10, code);
    }
  });
});

describe('docs/OPERATIONS.md', () => {
  it('lists every metric with its labels', () => {
    const told = rowsOf('docs/OPERATIONS.md', /^`marina_/).map(([name = '', labels]) => [
      /`(.+?)`/.exec(name)?.[1],
      labels,
    ]);
    const expected = new Metrics().registry.getMetricsAsArray().flatMap((metric) => {
      const { name, labelNames = [] } = metric as unknown as { name: string; labelNames?: string[] };
      return name.startsWith('marina_') ? [[name, labelNames.join(', ')]] : [];
    });
    assert.deepEqual(told.sort(), expected.sort());
  });

  it('has a line to call for each alarm', () => {
    const page = readFileSync(join(root, 'docs/OPERATIONS.md'), 'utf8');
    const [, alarms = ''] = page.split('\n## Alarms\n');
    const sections = (alarms.split('\n## ')[0] ?? '').split('\n### ').slice(1);
    assert.ok(sections.length >= 9, `${sections.length} alarms`);
    for (const section of sections) {
      assert.match(section, /`marina_\w+`/, 'what it sees');
      assert.match(section, /^grpcurl /m, 'what answers it');
    }
  });

  it('has no link to a section there is not', () => {
    const page = readFileSync(join(root, 'docs/OPERATIONS.md'), 'utf8');
    const anchors = [...page.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title.toLowerCase().replaceAll(' ', '-'));
    for (const [, anchor = ''] of page.matchAll(/\]\(#([^)]+)\)/g)) assert.ok(anchors.includes(anchor), anchor);
  });
});

describe('docs/SANDBOX.md', () => {
  it('has every magic symbol, name and amount with what it does', () => {
    const told = rowsOf('docs/SANDBOX.md', /^`(SIM-|…999)/);
    const row = (value: string, does: string) => [`\`${value}\``, does];
    assert.deepEqual(told, [
      ...magicSymbols.map(({ symbol, does }) => row(symbol, does)),
      ...magicLastNames.map(({ lastName, does }) => row(lastName, does)),
      ...magicFirstNames.map(({ firstName, does }) => row(firstName, does)),
      ...magicAmounts.map(({ endsIn, does }) => row(`…${endsIn}`, does)),
    ]);
  });
});

describe('README.md and the pages for those who work on Marina', () => {
  const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/MAKE-RUN.md', 'docs/ARCHITECTURE.md'];

  it('name only files and folders there are', () => {
    const places = /((?:src|test|docs|proto|migrations|\.ci)\/[\w./-]*[\w/]|[\w-]+\.md)\b/g;
    for (const page of pages) {
      const text = readFileSync(join(root, page), 'utf8').replaceAll(/https?:\S+/g, '');
      // What is made is there only when something made it.
      const named = [...text.matchAll(places)]
        .map(([, place = '']) => place)
        .filter((place) => !place.startsWith('src/gen/'));
      assert.ok(named.length > 1, page);
      assert.deepEqual(
        named.filter((place) => !existsSync(join(root, place)) && !existsSync(join(root, 'docs', place))),
        [],
        page,
      );
    }
  });

  it('name only targets of make there are', () => {
    const targets = new Set(
      [...readFileSync(join(root, 'Makefile'), 'utf8').matchAll(/^([a-z-]+):/gm)].map(([, name]) => name),
    );
    for (const page of pages) {
      for (const [line, target] of readFileSync(join(root, page), 'utf8').matchAll(
        /^make ([a-z-]+)|`make ([a-z-]+)`/gm,
      )) {
        assert.ok(targets.has(target ?? line.slice('`make '.length, -1)), `${page}: ${line}`);
      }
    }
  });
});

describe('docs/ARCHITECTURE.md', () => {
  const page = readFileSync(join(root, 'docs/ARCHITECTURE.md'), 'utf8');
  const folders = readdirSync(join(root, 'src'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);

  it('says of every folder of src what it holds', () => {
    const rows = rowsOf('docs/ARCHITECTURE.md', /^`src\//).map(([first = '']) => first);
    assert.deepEqual(
      folders.filter((name) => !rows.some((row) => row.includes(`\`src/${name}/`))),
      [],
    );
  });

  it('names no file by its folder that is not there', () => {
    // `docs/` is the folder of the pages.
    const named = [...page.matchAll(/`(\w+)\/([\w/-]+)(?:\.\w+)?`/g)].filter(
      ([, folder = '']) => folder !== 'docs' && folders.includes(folder),
    );
    assert.ok(named.length > 20, `${named.length} places`);
    for (const [, folder = '', rest = ''] of named) {
      const place = join(root, 'src', folder, rest);
      assert.ok(existsSync(place) || existsSync(`${place}.ts`), `${folder}/${rest}`);
    }
  });
});
