import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ConfigError, readConfig, readDatabaseConfig } from '../../../src/gateway/app/config.ts';
import { warnOfPlainLinks } from '../../../src/gateway/app/links.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { temporaryFolder } from '../../support/folders.ts';

const url = 'mysql://marina:database-canary@db/marina';
const enough = {
  MARINA_DATABASE_URL: url,
  MARINA_NATS_URL: 'nats://marina:nats-canary@nats:4222',
  MARINA_BROKER_ADDRESS: 'broker:50060',
  MARINA_SECRET_KEY: '42'.repeat(32),
};

function problemsOf(variables: Record<string, string>, read: (given: NodeJS.ProcessEnv) => unknown = readConfig) {
  try {
    read({ ...enough, ...variables });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    assert.doesNotMatch(error.message, /canary/, 'no secret is ever told');
    return error.message.split('\n');
  }
}

describe('secrets in files', () => {
  const folder = temporaryFolder();
  const put = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };

  it('are read from the file that their variable with _FILE names, without the space around them', () => {
    const config = readConfig({
      MARINA_BROKER_ADDRESS: 'broker:50060',
      MARINA_DATABASE_URL_FILE: put('database', `${url}\n`),
      MARINA_NATS_URL_FILE: put('nats', '\n nats://token@nats \r\n'),
      MARINA_SECRET_KEY_FILE: put('key', `${'42'.repeat(32)}\n`),
      MARINA_OPERATOR_TOKENS_FILE: put('operators', 'ada:operator-token-of-24-letters\n'),
      MARINA_OPS_TOKEN_FILE: put('operations', 'operations-token-of-24-letters\n'),
    });
    assert.equal(config.databaseUrl.first, url);
    assert.equal(config.natsUrl.first, 'nats://token@nats');
    assert.deepEqual(
      config.secretKey.first.map(({ key }) => key),
      [Buffer.alloc(32, 0x42)],
    );
    const hash = createHash('sha256').update('operator-token-of-24-letters').digest();
    assert.deepEqual(config.operators.first, [
      { name: 'ada', hash, expiresAt: undefined, roles: ['admin'], namesRoles: false },
    ]);
    assert.equal(config.opsToken.first, 'operations-token-of-24-letters');
  });

  it('are refused if they are given twice, cannot be read, are empty or wrong, without a word of them', () => {
    const { MARINA_SECRET_KEY: _, ...rest } = enough;
    const alone = (path: string) =>
      problemsOf({ ...rest, MARINA_SECRET_KEY: '', MARINA_SECRET_KEY_FILE: path }).join('\n');
    assert.match(alone(join(folder, 'nowhere')), /^MARINA_SECRET_KEY_FILE cannot be read \(ENOENT\): /);
    assert.match(alone(put('empty', '\n')), /^MARINA_SECRET_KEY_FILE must name a file that is not empty: /);
    assert.match(alone(put('wrong', 'canary')), /^MARINA_SECRET_KEY_FILE must be 64 hex characters: /);
    const twice = problemsOf({ MARINA_SECRET_KEY_FILE: put('key', '42'.repeat(32)) });
    assert.match(twice.join('\n'), /^MARINA_SECRET_KEY_FILE and MARINA_SECRET_KEY must not both be set: /);
  });

  it('exist for secrets alone', () => {
    assert.match(
      problemsOf({ MARINA_BROKER_ADDRESS_FILE: '/x' }).join('\n'),
      /^MARINA_BROKER_ADDRESS_FILE is no setting/,
    );
  });
});

describe('the URLs of links', () => {
  const refused: readonly [variable: string, value: string, problem: RegExp][] = [
    ['MARINA_DATABASE_URL', `${url}?ssl=true`, /has an unknown parameter ssl:/],
    ['MARINA_DATABASE_URL', `${url}?foo=1`, /has an unknown parameter foo:/],
    ['MARINA_DATABASE_URL', `${url}#part`, /has an unknown part after #/],
    ['MARINA_DATABASE_URL', `${url}/more`, /must name one database/],
    ['MARINA_DATABASE_URL', 'mysql://marina:canary@db', /must name a database after the host/],
    ['MARINA_DATABASE_URL', 'mysql://marina:canary@db,/marina', /must be mysql:\/\/ and one host/],
    ['MARINA_DATABASE_URL', 'mysql://marina:canary@db:1,db:1/marina', /must name each host once/],
    ['MARINA_DATABASE_URL', 'mysql://marina:1?canary@db/marina', /has an unknown parameter; in a name or password/],
    ['MARINA_DATABASE_URL', 'mysql://marina:canary%@db/marina', /has a % that begins no code/],
    ['MARINA_NATS_URL', 'nats://a:canary@nats?tls=1', /has an unknown parameter tls:/],
    ['MARINA_NATS_URL', 'nats://nats:4222?tls=1', /has an unknown parameter tls:/],
    [
      'MARINA_DATABASE_URL',
      'mysql://marina:one@two?canary=3@db/marina',
      /has an unknown parameter; in a name or password/,
    ],
    ['MARINA_NATS_URL', 'nats://nats/stream', /has an unknown part after the host/],
    ['MARINA_NATS_URL', 'ws://nats', /must be nats:\/\/ or tls:\/\/ and one host/],
    ['MARINA_NATS_URL', 'nats://a:canary@one,nats://b:canary@two', /must have the same user and password/],
    ['MARINA_OTLP_URL', 'https://collector/?key=canary', /has an unknown parameter key:/],
    ['MARINA_OTLP_URL', 'https://user:canary@collector', /must have no user or password: use MARINA_OTLP_HEADERS/],
  ];
  for (const [variable, value, problem] of refused) {
    it(`${variable}: ${problem.source} is refused by name`, () => {
      const [found = '', ...others] = problemsOf({ [variable]: value });
      assert.match(found, new RegExp(`^${variable} ${problem.source}`));
      assert.deepEqual(others, []);
    });
  }

  it('may have several NATS servers, with a scheme or without', () => {
    assert.deepEqual(problemsOf({ MARINA_NATS_URL: 'one:4222, nats://two, tls://[::1]:4223' }), []);
  });
});

describe('the certificates of links', () => {
  it('have no effect without TLS, which is said, and come with their keys', () => {
    assert.match(
      problemsOf({ MARINA_BROKER_TLS_CA_FILE: '/ca.pem' }).join('\n'),
      /^MARINA_BROKER_TLS_CA_FILE has no effect without MARINA_BROKER_TLS=required$/,
    );
    assert.match(
      problemsOf({ MARINA_OTLP_URL: 'http://127.0.0.1', MARINA_OTLP_TLS_CA_FILE: '/ca.pem' }).join('\n'),
      /^MARINA_OTLP_TLS_CA_FILE has no effect without an https:\/\/ MARINA_OTLP_URL$/,
    );
    assert.match(
      problemsOf({ MARINA_NATS_TLS: 'required', MARINA_NATS_TLS_CERT_FILE: '/cert.pem' }).join('\n'),
      /^MARINA_NATS_TLS_CERT_FILE and MARINA_NATS_TLS_KEY_FILE must be set together$/,
    );
  });

  it("need a name to check if the database's URL has an address", () => {
    const variables = { MARINA_DATABASE_URL: 'mysql://marina@10.0.0.7/marina', MARINA_DATABASE_TLS: 'required' };
    assert.match(problemsOf(variables).join('\n'), /^MARINA_DATABASE_TLS_SERVER_NAME must be set/);
    assert.deepEqual(problemsOf({ ...variables, MARINA_DATABASE_TLS_SERVER_NAME: 'db.internal' }), []);
  });
});

describe('plain text in live', () => {
  const live = { MARINA_ENVIRONMENT: 'live' };
  const here = {
    MARINA_DATABASE_URL: 'mysql://marina@127.0.0.1/marina',
    MARINA_NATS_URL: 'nats://[::1]:4222,localhost',
    MARINA_BROKER_ADDRESS: '[::1]:50060',
    MARINA_OTLP_URL: 'http://localhost:4318',
  };
  const names = (problems: readonly string[]) =>
    problems.map((problem) => /^the link to (\w+) would/.exec(problem)?.[1]);

  it('is refused to hosts that are not this machine, link by link, unless the network is said to protect it', () => {
    const collector = { MARINA_OTLP_URL: 'http://collector:4318' };
    assert.deepEqual(names(problemsOf({ ...live, ...collector })), ['database', 'nats', 'broker', 'otlp']);
    assert.deepEqual(names(problemsOf({ ...live, MARINA_PLAINTEXT_LINKS: 'database,broker' })), ['nats']);
    assert.deepEqual(names(problemsOf({ ...live, MARINA_PLAINTEXT_LINKS: 'nats,broker' }, readDatabaseConfig)), [
      'database',
    ]);
    assert.deepEqual(problemsOf({ ...live, ...collector, MARINA_PLAINTEXT_LINKS: 'database,nats,broker,otlp' }), []);
    assert.deepEqual(problemsOf(collector), [], 'a sandbox may');
  });

  it('plain text is refused for each address of a link alone, though all others are of this machine', () => {
    const office = { MARINA_BACK_OFFICE_ADDRESS: 'localhost:50061' };
    assert.deepEqual(problemsOf({ ...live, ...here, ...office }), []);
    for (const [link, elsewhere] of [
      ['database', { MARINA_DATABASE_URL: 'mysql://marina@10.0.0.7/marina' }],
      ['nats', { MARINA_NATS_URL: 'nats://nats:4222,localhost' }],
      ['nats', { MARINA_NATS_URL: 'nats://localhost:4222,nats' }],
      ['broker', { MARINA_BROKER_ADDRESS: 'broker:50060' }],
      ['broker', { MARINA_BACK_OFFICE_ADDRESS: 'office:50061' }],
      ['broker', { MARINA_BACK_OFFICE_ADDRESS: '[2001:db8::1]:50061' }],
      ['otlp', { MARINA_OTLP_URL: 'http://collector:4318' }],
    ] as const) {
      const said = `${link} ${JSON.stringify(elsewhere)}`;
      const variables = { ...live, ...here, ...office, ...elsewhere };
      assert.deepEqual(names(problemsOf(variables)), [link], said);
      assert.deepEqual(problemsOf({ ...variables, MARINA_PLAINTEXT_LINKS: link }), [], said);
    }
  });

  it('is said once at the start, with the links that speak it', () => {
    const lines: string[] = [];
    const log = createLogger({ name: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } });
    warnOfPlainLinks(readConfig({ ...enough, MARINA_DATABASE_TLS: 'required' }), log);
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /"links":\["nats","broker"\],"msg":"links cross a network in plain text"/);
    warnOfPlainLinks(readConfig({ ...enough, ...here }), log);
    assert.equal(lines.length, 1, 'nothing of links to this machine');
  });

  it('is not what links with TLS and links to this machine speak', () => {
    const tls = { MARINA_DATABASE_TLS: 'required', MARINA_NATS_URL: 'tls://nats', MARINA_BROKER_TLS: 'required' };
    assert.deepEqual(problemsOf({ ...live, ...tls, MARINA_OTLP_URL: 'https://collector:4318' }), []);
    assert.deepEqual(problemsOf({ ...live, ...here }), []);
    assert.deepEqual(names(problemsOf({ ...live, ...here, MARINA_BACK_OFFICE_ADDRESS: 'office:1' })), ['broker']);
  });
});
