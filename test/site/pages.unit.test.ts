import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { describeConfig } from '../../src/gateway/app/config.ts';
import { ApiError, catalogue, docUrl, type ErrorCode } from '../../src/gateway/edge/errors.ts';
import { Metrics } from '../../src/gateway/edge/metrics.ts';
import { rpcStatus } from '../../src/gateway/edge/rpc.ts';
import { magicAmounts, magicFirstNames, magicLastNames } from '../../src/simulator/back-office/magic.ts';
import { magicWithdrawals } from '../../src/simulator/back-office/withdrawal-magic.ts';
import { magicSymbols } from '../../src/simulator/magic.ts';

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

  it('has every code of the catalogue once, with the statuses, type and delay the protocols answer with', () => {
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

describe('docs/operations/reference.md', () => {
  const page = 'docs/operations/reference.md';

  it('lists every setting with what it means, its default and what it may be', () => {
    const listed = rowsOf(page, /^`MARINA_/);
    const expected = describeConfig()
      .split('\n\n')
      .map((text) => {
        const [variable = '', meaning = '', rest = ''] = text.split('\n').map((line) => line.trim());
        const [, standard = '', allowed = ''] = /^(?:default: )?(.*?); may be: (.*)$/.exec(rest) ?? [];
        return [
          `\`${variable}\``,
          meaning,
          ['must be set', 'none'].includes(standard) ? standard : `\`${standard}\``,
          allowed,
        ];
      });
    assert.deepEqual(listed, expected);
  });

  it('lists every metric with its labels', () => {
    const listed = rowsOf(page, /^`marina_/).map(([name = '', labels]) => [/`(.+?)`/.exec(name)?.[1], labels]);
    const expected = new Metrics().registry.getMetricsAsArray().flatMap((metric) => {
      const { name, labelNames = [] } = metric as unknown as { name: string; labelNames?: string[] };
      return name.startsWith('marina_') ? [[name, labelNames.join(', ')]] : [];
    });
    assert.deepEqual(listed.sort(), expected.sort());
  });
});

describe('every page', () => {
  const pages = ['.', 'docs', 'docs/operations', 'docs/decisions'].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(folder, name)),
  );

  it('links to pages, headings and files that exist', () => {
    assert.ok(pages.length > 15, `${pages.length} pages`);
    const broken = pages.flatMap((page) =>
      linksOf(page)
        .filter((target) => !/^(https?:|\/)/.test(target))
        .filter((target) => {
          const [path = '', anchor] = target.split('#');
          const linked = path === '' ? page : join(dirname(page), path);
          if (!existsSync(join(root, linked))) return true;
          return anchor !== undefined && !anchorsOf(linked).has(anchor);
        })
        .map((target) => `${page}: ${target}`),
    );
    assert.deepEqual(broken, []);
  });
});

describe('CHANGELOG.md', () => {
  const readers = ['For partners', 'For operators', 'For those who connect a broker', 'For those who work on Marina'];
  const [, ...versions] = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split(/^## /m);

  it('has what is unreleased, and below it the releases with their dates', () => {
    const [first, ...released] = versions.map((text) => text.slice(0, text.indexOf('\n')));
    assert.equal(first, 'Unreleased');
    for (const title of released) assert.match(title, /^\d+\.\d+\.\d+ \(\d{4}-\d{2}-\d{2}\)$/);
  });

  it('sorts what is new in a version by reader', () => {
    for (const version of versions) {
      const [heading = '', ...parts] = version.split(/^### /m);
      assert.ok(!/^- /m.test(heading), `every entry of ${heading.trim()} has a reader`);
      const titles = parts.map((part) => part.slice(0, part.indexOf('\n')));
      assert.deepEqual(
        titles,
        readers.filter((reader) => titles.includes(reader)),
      );
    }
  });
});

describe('docs/decisions', () => {
  const folder = join(root, 'docs/decisions');
  const records = readdirSync(folder).filter((name) => /^\d{4}-/.test(name));

  it('has each record in its index, in order', () => {
    const index = readFileSync(join(folder, 'README.md'), 'utf8');
    const listed = [...index.matchAll(/^\| \[\d{4}\]\(([^)]+)\) \|/gm)].map(([, name]) => name);
    assert.deepEqual(listed, records.toSorted());
  });

  it('has records of a page at most, each with its number, context and decision', () => {
    for (const name of records) {
      const text = readFileSync(join(folder, name), 'utf8');
      assert.ok(text.startsWith(`# ${name.slice(0, 4)}: `), name);
      for (const heading of ['Context', 'Decision']) {
        assert.match(text, new RegExp(`^## ${heading}$`, 'm'), name);
      }
      assert.ok(wordsIn(text) <= 700, `${name} has ${wordsIn(text)} words`);
    }
  });
});

function wordsIn(text: string): number {
  return text.split(/\s+/).filter((word) => word !== '').length;
}

/** Where the links of a page lead, as they are written. */
function linksOf(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8').replaceAll(/```[\s\S]*?```/g, '');
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
}

/** The anchors of a page: those of its headings, as Git hosts make them, and its own. */
function anchorsOf(page: string): ReadonlySet<string> {
  const text = readFileSync(join(root, page), 'utf8');
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  );
  const own = [...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id);
  return new Set([...headings, ...own]);
}

describe('docs/SANDBOX.md', () => {
  it('has every magic symbol, name and amount with what it does', () => {
    const told = rowsOf('docs/SANDBOX.md', /^`(SIM-|…99[89])/);
    const row = (value: string, does: string) => [`\`${value}\``, does];
    assert.deepEqual(told, [
      ...magicSymbols.map(({ symbol, does }) => row(symbol, does)),
      ...magicLastNames.map(({ lastName, does }) => row(lastName, does)),
      ...magicFirstNames.map(({ firstName, does }) => row(firstName, does)),
      ...magicAmounts.map(({ endsIn, does }) => row(`…${endsIn}`, does)),
      ...magicWithdrawals.map(({ endsIn, does }) => row(`…${endsIn}`, does)),
    ]);
  });
});

describe('README.md and the pages for those who work on Marina', () => {
  const pages = [
    'README.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    'docs/MAKE-RUN.md',
    'docs/ARCHITECTURE.md',
    'docs/TESTING.md',
  ];

  it('name only files and folders there are', () => {
    const places = /((?:src|test|docs|proto|migrations|clients|\.ci)\/[\w./-]*[\w/]|[\w-]+\.md)\b/g;
    for (const page of pages) {
      // Where links lead is checked for every page above.
      const text = readFileSync(join(root, page), 'utf8').replaceAll(/https?:\S+|\]\([^)]+\)/g, '');
      // A generated file is there only when something made it.
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
  const foldersIn = (folder: string) =>
    readdirSync(join(root, folder), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  const folders = foldersIn('src');
  const wings = foldersIn('src/gateway');

  it('can be read in a quarter of an hour', () => {
    assert.ok(wordsIn(page) < 2_000, `${wordsIn(page)} words`);
  });

  it('says of every folder of src what it holds', () => {
    const rows = rowsOf('docs/ARCHITECTURE.md', /^`src\//).map(([first = '']) => first);
    assert.deepEqual(
      folders.filter((name) => !rows.some((row) => row.includes(`\`src/${name}/`))),
      [],
    );
  });

  it('the other pages about the code name no file by its folder that is not there', () => {
    const decisions = readdirSync(join(root, 'docs/decisions')).map((name) => `docs/decisions/${name}`);
    const pages = ['docs/ARCHITECTURE.md', 'docs/PERFORMANCE.md', 'docs/TESTING.md', 'CONTRIBUTING.md', ...decisions];
    const places = pages.flatMap((name) => {
      const text = readFileSync(join(root, name), 'utf8');
      return [...text.matchAll(/`(\w+)\/([\w/-]+)(?:\.\w+)?`/g)]
        .filter(([, folder = '']) => folders.includes(folder) || (name === pages[0] && wings.includes(folder)))
        .map(([, folder = '', rest = '']) => ({ name, place: `${folder}/${rest}` }));
    });
    assert.ok(places.length > 40, `${places.length} places`);
    const isThere = (place: string) =>
      ['src', 'src/gateway'].some((folder) => ['', '.ts'].some((end) => existsSync(join(root, folder, place + end))));
    assert.deepEqual(
      places.filter(({ place }) => !isThere(place)),
      [],
    );
  });
});
