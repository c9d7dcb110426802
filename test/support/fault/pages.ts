import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { withoutOurs } from '../../../src/sandbox/processes.ts';
import type { Sandbox } from '../../../src/sandbox/sandbox-file.ts';
import { findClient } from '../dump.ts';
import { AuditOfPages } from './audit-of-pages.ts';
import { findGrpcurl } from './grpcurl.ts';
import { type Exceptions, type Own, type PastedBlock, pastePage } from './paste.ts';

/** Every page, in the order in which they are gone through; each in a shell of its own. The README expects a new sandbox. */
function allPages(): string[] {
  const pages = ['.', 'src/site/guides', 'docs', 'docs/operations'].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(folder, name)),
  );
  // A gateway is deployed before it is restored or upgraded.
  const first = ['README.md', 'docs/operations/deploy.md'];
  return [...first, ...pages.filter((page) => !first.includes(page))];
}

const itself = 'this test is part of it';
const runs = 'a sandbox runs already, and this would not end';
const exceptions: Exceptions = {
  notRun: [
    { page: 'README.md', command: 'make run     #', why: runs },
    { page: 'README.md', command: 'make test    #', why: itself },
    { page: 'README.md', command: 'MARINA_NATS_URL=nats://host:4222 make run', why: runs },
    { page: 'src/site/guides/grpc.md', command: 'npm install @grpc/grpc-js', why: 'it is installed here' },
    ...['curl -sO', 'grpcurl -protoset'].map((command) => ({
      page: 'src/site/guides/grpc.md',
      command,
      why: 'it downloads into this checkout, and the stand-in knows no file of descriptors; integration/docs reads both files',
    })),
    ...['cd clients/typescript', 'npm install && npm pack', 'pip install', 'marina-listen'].map((command) => ({
      page: 'src/site/guides/clients.md',
      command,
      why: 'it installs into this checkout, or needs what is installed; unit/clients and the tests of marina-listen do it',
    })),
    { page: 'docs/operations/deploy.md', command: 'npm ci --omit=dev', why: 'it downloads what is here already' },
    ...['useradd', 'chmod 600 /etc/marina', 'marina.service', 'systemctl '].map((command) => ({
      page: 'docs/operations/deploy.md',
      command,
      why: 'it changes this machine; test/docs/unit-file.fault.test.ts starts the unit',
    })),
    ...['docker ', 'kubectl '].map((command) => ({
      page: 'docs/operations/deploy.md',
      command,
      why: 'it needs an engine or a cluster; test/docs/image.fault.test.ts carries out the Dockerfile, deploy-files.unit.test.ts checks the rest',
    })),
    { page: 'docs/operations/deploy.md', command: 'sed -i -E', why: 'it writes into this checkout' },
    { page: 'src/site/guides/start.md', command: 'read -rs MARINA_KEY', why: 'it waits for the key that is pasted' },
    {
      page: 'docs/operations/deploy.md',
      command: ' secrets',
      why: 'test/docs/deploy-files.unit.test.ts makes them in its own folder',
    },
    ...['/srv/marina-archive', 'CREATE USER', 'archive-rights.sql', 'zcat '].map((command) => ({
      page: 'docs/operations/archive.md',
      command,
      why: 'a new sandbox has no month to archive; test/gateway/operators/archive does it all',
    })),
    ...['CREATE USER', 'reporting.sql'].map((command) => ({
      page: 'docs/operations/reports.md',
      command,
      why: 'it changes the accounts of the server; test/docs/reporting.integration.test.ts does it',
    })),
    {
      page: 'docs/operations/stops.md',
      command: '"ends_at"',
      why: 'the page ends one stop; test/gateway/trading/stops does it',
    },
    {
      page: 'docs/operations/stops.md',
      command: 'Trading/StopBulkCancel',
      why: 'the job of one order has ended by then; test/gateway/trading/orders/bulk-cancels does it',
    },
    {
      page: 'docs/operations/on-call.md',
      command: 'Diagnostics/AcknowledgeUnsettled',
      why: 'the order of the page is settled by then; docs/operations/settling.md has the same command',
    },
    {
      page: 'docs/operations/on-call.md',
      command: 'Trading/ListBulkCancelOrders',
      why: 'no job runs; test/gateway/trading/orders/bulk-cancels does it',
    },
    {
      page: 'docs/operations/on-call.md',
      command: 'nats.internal:8222',
      why: 'the NATS of a sandbox has no monitoring port',
    },
    { page: 'CONTRIBUTING.md', command: 'make check', why: 'other tests read meanwhile what it makes' },
    { page: 'CONTRIBUTING.md', command: 'make test ', why: itself },
    { page: 'CONTRIBUTING.md', command: 'test/run.ts', why: 'it starts servers again, as this run did' },
    { page: 'docs/TESTING.md', command: 'test/run.ts', why: 'it starts servers again, as this run did' },
  ],
  interrupted: ['on-call', 'roles'].map((name) => ({
    page: `docs/operations/${name}.md`,
    command: 'Diagnostics/WatchEvents',
    why: 'it goes on until Ctrl-C',
  })),
};

/**
 * Pastes what the pages tell readers to paste, with a sandbox running. What REST answers with an error is a failure too;
 * the README's order is one order through every protocol.
 */
export async function pastePages(sandbox: Sandbox, dataDir: string, folder: string): Promise<void> {
  const grpcurl = await findGrpcurl(folder);
  const tools = join(folder, 'clients');
  mkdirSync(tools);
  for (const name of ['mariadb', 'mariadb-dump'] as const) {
    const { path, env } = await findClient(name);
    writeFileSync(join(tools, name), `#!/bin/sh\nLD_LIBRARY_PATH='${env.LD_LIBRARY_PATH ?? ''}' exec '${path}' "$@"\n`);
    chmodSync(join(tools, name), 0o700);
  }
  writeFileSync(join(folder, '.curlrc'), 'fail-with-body\nmax-time = 30\n');
  const path = [tools, grpcurl.path].join(delimiter);
  const env = { ...withoutOurs(process.env), PATH: path, CURL_HOME: folder };
  // Guides take a partner's key from a variable of the partner's program, which a gateway would refuse as no setting.
  const partnersEnv = { ...env, MARINA_KEY: sandbox.partners[0]?.key };
  const own = ownOf(sandbox, dataDir, folder);
  const pages = allPages();
  const all = pages.map((page) => readFileSync(page, 'utf8')).join('\n');
  for (const [text] of own) assert.ok(all.includes(text), `no page has ${text}`);
  for (const { page } of [...exceptions.notRun, ...exceptions.interrupted]) assert.ok(pages.includes(page), page);
  const audit = await AuditOfPages.start(sandbox, folder, env);
  try {
    for (const page of pages) {
      const isGuide = page.startsWith('src/site/guides/');
      const afterBlock = page.startsWith('docs/operations/') ? audit.command : '';
      const blocks = await pastePage(page, { own, exceptions, folder, env: isGuide ? partnersEnv : env, afterBlock });
      if (page === 'README.md') checkOneOrder(blocks);
      if (afterBlock !== '') audit.check(page, blocks);
    }
  } finally {
    grpcurl.close();
  }
  await checkHealth(sandbox);
}

/** Pastes a page while a drill is on, when a status that says so is an answer too. */
export async function pasteWhilePractising(
  page: string,
  sandbox: Sandbox,
  dataDir: string,
  folder: string,
): Promise<void> {
  const grpcurl = await findGrpcurl(folder);
  const env = { ...withoutOurs(process.env), PATH: grpcurl.path };
  const own: Own = [
    ['http://127.0.0.1:8080', sandbox.rest_url],
    ['127.0.0.1:50052', sandbox.admin_address],
    ['http://127.0.0.1:9464', sandbox.ops_url],
    ['./.local/sandbox.json', join(dataDir, 'sandbox.json')],
    ['journalctl -u marina -o cat --since -1h', `cat '${join(dataDir, 'gateway.log')}'`],
  ];
  try {
    await pastePage(page, { own, exceptions: { notRun: [], interrupted: [] }, folder, env });
  } finally {
    grpcurl.close();
  }
}

/**
 * The values that readers fill in or have beside the pages: addresses, keys, and for operators an account and the
 * settings.
 */
function ownOf(sandbox: Sandbox, dataDir: string, folder: string): Own {
  const settings = settingsOf(sandbox);
  const gatewayUrl = new URL(settings.get('MARINA_DATABASE_URL') ?? '');
  const server = join(dataDir, 'mariadb');
  const { hostname: host, port } = gatewayUrl;
  const account = (user: string, file: string) => [user, readFileSync(join(server, file), 'utf8').trim()] as const;
  const [root, rootPassword] = account('root', 'root-password');
  const [owner, ownerPassword] = account('marina_owner', 'owner-password');
  writeFileSync(
    join(folder, 'admin.cnf'),
    `[client]\nhost=${host}\nport=${port}\nuser=${root}\npassword=${rootPassword}\n`,
    { mode: 0o600 },
  );
  settings.set('MARINA_DATABASE_URL', `${gatewayUrl.href}_restored`);
  const lines = [...settings].map(([name, value]) => `${name}='${value}'\n`);
  writeFileSync(join(folder, 'marina.env'), lines.join(''), { mode: 0o600 });
  const [partner] = sandbox.partners;
  const log = join(dataDir, 'gateway.log');
  return [
    ['{base_url}', sandbox.rest_url],
    ['{grpc_address}', sandbox.grpc_address],
    ['{plaintext}', '-plaintext '],
    ['{tls_off}', ' MARINA_TLS=off'],
    ['http://127.0.0.1:8080', sandbox.rest_url],
    ['127.0.0.1:50051', sandbox.grpc_address],
    ['127.0.0.1:50052', sandbox.admin_address],
    ['http://127.0.0.1:9464', sandbox.ops_url],
    ['./.local/sandbox.json', join(dataDir, 'sandbox.json')],
    ['./.local/operator-tokens', join(dataDir, 'operator-tokens')],
    ['marina_test_…', partner?.key ?? ''],
    // Nobody outside is called.
    ['https://example.com/hooks', partner?.receiver_url ?? ''],
    ['mysql://owner:…@host:3306/marina', `mysql://${owner}:${ownerPassword}@${host}:${port}/marina`],
    ['admin.cnf', join(folder, 'admin.cnf')],
    ["@host = '%'", `@host = '${host}'`],
    ["'owner'@'%'", `'${owner}'@'${host}'`],
    ['marina.sql.gz', join(folder, 'marina.sql.gz')],
    ['journalctl -u marina -o cat -n 20', `tail -n 20 '${log}'`],
    ['journalctl -u marina -o cat --since -1h', `cat '${log}'`],
    // Figures of a minute are as good of a moment here.
    ['sleep 60', 'sleep 2'],
    ['/opt/marina', resolve('dist')],
    ['/etc/marina/marina.env', join(folder, 'marina.env')],
  ];
}

/** The settings the sandbox's gateway was started with. */
function settingsOf({ pids }: Sandbox): Map<string, string> {
  const variables = readFileSync(`/proc/${pids.gateway}/environ`, 'utf8').split('\0');
  return new Map(
    variables
      .filter((variable) => variable.startsWith('MARINA_'))
      .map((variable) => [variable.slice(0, variable.indexOf('=')), variable.slice(variable.indexOf('=') + 1)]),
  );
}

function checkOneOrder(blocks: readonly PastedBlock[]): void {
  const answers = blocks.map(({ commands }) => commands.map(({ output }) => output).join('\n')).filter(Boolean);
  const [, id] = /"id":"(ord_[a-z2-7]{20})"/.exec(answers[0] ?? '') ?? [];
  assert.ok(id !== undefined, answers[0]);
  assert.equal(answers.length, 4, 'REST, gRPC by two programs, Connect');
  for (const answer of answers) assert.ok(answer.includes(id), answer);
}

/** The Dockerfile's own look at a gateway. */
async function checkHealth({ ops_url: opsUrl }: Sandbox): Promise<void> {
  const [, line = ''] = /^HEALTHCHECK [^[]*CMD (\[.*\])$/m.exec(readFileSync('docs/deploy/Dockerfile', 'utf8')) ?? [];
  const [, ...args] = JSON.parse(line) as string[];
  const run = (port: string) => promisify(execFile)(process.execPath, args, { env: { MARINA_OPS_PORT: port } });
  await run(new URL(opsUrl).port);
  await assert.rejects(run('1'), { code: 1 });
}
