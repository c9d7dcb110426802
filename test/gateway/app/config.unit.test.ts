import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import {
  ConfigError,
  describeConfig,
  fourEyesKobo,
  largeCreditKobo,
  readConfig,
} from '../../../src/gateway/app/config.ts';
import { nearest } from '../../../src/kit/settings.ts';

const root = join(import.meta.dirname, '../../..');
const enough = {
  MARINA_DATABASE_URL: 'mysql://marina:database-canary@db/marina',
  MARINA_NATS_URL: 'nats://marina:nats-canary@nats:4222',
  MARINA_BROKER_ADDRESS: 'broker:50060',
  MARINA_SECRET_KEY: '42'.repeat(32),
};

function problemsOf(variables: Record<string, string>): string[] {
  try {
    readConfig({ ...enough, ...variables });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message.split('\n');
  }
}

describe('the settings', () => {
  it('those that must be set are enough', () => {
    assert.deepEqual(problemsOf({}), []);
    assert.equal(readConfig(enough).restPort, 8080);
  });

  it("take at most 16 names of consumers in NATS, and not that of the gateway's own", () => {
    const names = (count: number) => Array.from({ length: count }, (_, number) => `system-${number}`).join(', ');
    const read = (value: string) => readConfig({ ...enough, MARINA_NATS_CONSUMERS: value }).natsConsumers;
    assert.deepEqual(readConfig(enough).natsConsumers, []);
    assert.deepEqual(read('back-office, risk_Monitor2'), ['back-office', 'risk_Monitor2']);
    assert.equal(read(names(16)).length, 16);
    for (const bad of [names(17), 'webhooks', 'live-webhooks', 'a.b', 'a b', '>', '*', 'a,,b', 'a'.repeat(33)]) {
      assert.equal(problemsOf({ MARINA_NATS_CONSUMERS: bad }).length, 1, bad);
    }
  });

  it('a renamed setting is read by its old name, but not by both', () => {
    const read = (variables: Record<string, string>) => readConfig({ ...enough, ...variables }).decoderWalls;
    assert.equal(read({}), 'auto');
    assert.equal(read({ MARINA_DECODER_SANDBOX: 'off' }), 'off');
    assert.equal(read({ MARINA_DECODER_WALLS: 'required' }), 'required');
    assert.deepEqual(problemsOf({ MARINA_DECODER_WALLS: 'off', MARINA_DECODER_SANDBOX: 'off' }), [
      'MARINA_DECODER_WALLS and MARINA_DECODER_SANDBOX, which is its name now, must not both be set: ' +
        'isolation of the processes that decode images: what the machine offers, all or no start, or none',
    ]);
    assert.match(problemsOf({ MARINA_DECODER_WALLS: 'some' })[0] ?? '', /^MARINA_DECODER_WALLS must be one of auto/);
    assert.match(describeConfig(), /MARINA_DECODER_SANDBOX\n.*\n.*formerly MARINA_DECODER_WALLS/);
  });

  it('a variable that is no setting is refused by name, with the setting that was meant', () => {
    assert.deepEqual(problemsOf({ MARINA_REST_PROT: '1', MARINA_DATABSE_POOL: '4', MARINA_XYZZY: '1' }), [
      'MARINA_DATABSE_POOL is no setting; MARINA_DATABASE_POOL is',
      'MARINA_REST_PROT is no setting; MARINA_REST_PORT is',
      'MARINA_XYZZY is no setting',
    ]);
    assert.deepEqual(problemsOf({ marina_rest_port: '1' }), ['marina_rest_port is no setting; MARINA_REST_PORT is']);
  });

  it('variables that are not ours, and empty ones, are not looked at', () => {
    assert.deepEqual(problemsOf({ PATH: '/bin', MARINAS: '1', MARINA_REST_PROT: '', MARINA_REST_PORT: '' }), []);
  });

  it('all that is wrong is said at once, each by name with what it must be', () => {
    const problems = problemsOf({ MARINA_REST_PORT: '65536', MARINA_LOG_LEVEL: 'loud', MARINA_NATS_URL: '' });
    assert.equal(problems.length, 3, problems.join('\n'));
    assert.match(problems.join('\n'), /^MARINA_NATS_URL must be set/m);
    assert.match(problems.join('\n'), /^MARINA_REST_PORT must be a whole number from 0 to 65535/m);
    assert.match(problems.join('\n'), /^MARINA_LOG_LEVEL must be one of trace, debug/m);
  });

  it('four eyes are off in a sandbox, and on above ten million naira in live, unless they are set', () => {
    const live = { MARINA_ENVIRONMENT: 'live', MARINA_PLAINTEXT_LINKS: 'database,nats,broker' };
    const amount = (variables: Record<string, string>) => largeCreditKobo(readConfig({ ...enough, ...variables }));
    const set = (value: string) => ({ MARINA_FOUR_EYES_ABOVE_KOBO: value });
    assert.deepEqual([amount({}), amount(live)], [undefined, 1_000_000_000n]);
    assert.deepEqual([amount({ ...live, ...set('off') }), amount(set('0')), amount(set('5'))], [undefined, 0n, 5n]);
    assert.equal(amount(set('1000000000000000')), 10n ** 15n);
    const single = readConfig({ ...enough, ...live, MARINA_SINGLE_OPERATOR: 'true' });
    assert.deepEqual([fourEyesKobo(single), largeCreditKobo(single)], [undefined, 1_000_000_000n]);
    assert.equal(fourEyesKobo(readConfig({ ...enough, ...live })), 1_000_000_000n);
    for (const wrong of ['-1', '1.5', '01', '1e9', 'Off', '1000000000000001']) {
      assert.match(problemsOf(set(wrong)).join(), /^MARINA_FOUR_EYES_ABOVE_KOBO must be off, or 0 to/, wrong);
    }
  });

  it('no value is ever told, so no secret is', () => {
    const wrong = {
      MARINA_DATABASE_URL: 'postgres://marina:canary@db/marina',
      MARINA_SECRET_KEY: 'canary'.repeat(11),
      MARINA_OPERATOR_TOKENS: 'tope:canary',
      MARINA_WEBHOOK_CA_FILE: '/canary',
      MARINA_BASE_URL: 'canary',
      MARINA_CANARY: 'secret',
    };
    const problems = problemsOf(wrong);
    assert.equal(problems.length, Object.keys(wrong).length, problems.join('\n'));
    for (const problem of problems) assert.doesNotMatch(problem, /canary|secret$/);
  });

  it("live does not show the operators' port to a network without TLS", () => {
    const refused = /^MARINA_ADMIN_HOST must be a loopback address in live, or the operators' port must speak TLS/;
    const live = { MARINA_ENVIRONMENT: 'live', MARINA_PLAINTEXT_LINKS: 'database,nats,broker' };
    for (const host of [
      '0.0.0.0',
      '::',
      '10.0.0.7',
      '2001:db8::1',
      '::ffff:10.0.0.7',
      'admin.internal',
      '127.0.0.1.nip.io',
    ]) {
      const [problem = '', ...others] = problemsOf({ ...live, MARINA_ADMIN_HOST: host });
      assert.match(problem, refused, host);
      assert.deepEqual(others, []);
      const tls = { MARINA_ADMIN_TLS_CERT_FILE: '/cert.pem', MARINA_ADMIN_TLS_KEY_FILE: '/key.pem' };
      assert.deepEqual(problemsOf({ ...live, ...tls, MARINA_ADMIN_HOST: host }), []);
      assert.deepEqual(problemsOf({ MARINA_ADMIN_HOST: host }), [], 'a sandbox may');
    }
    for (const host of ['127.0.0.1', '127.8.8.8', '::1', 'localhost', '::ffff:127.0.0.1']) {
      assert.deepEqual(problemsOf({ ...live, MARINA_ADMIN_HOST: host }), [], host);
    }
  });

  it("clients' authorities need a port with TLS, and revocation lists need authorities", () => {
    for (const port of ['ADMIN', 'OPS']) {
      const prefix = `MARINA_${port}_TLS_`;
      const tls = { [`${prefix}CERT_FILE`]: '/cert.pem', [`${prefix}KEY_FILE`]: '/key.pem' };
      const authorities = { [`${prefix}CLIENT_CA_FILE`]: '/ca.pem' };
      const lists = { [`${prefix}CLIENT_CRL_FILE`]: '/crl.pem' };
      assert.deepEqual(problemsOf({ ...tls, ...authorities, ...lists }), []);
      assert.deepEqual(problemsOf(authorities), [`${prefix}CLIENT_CA_FILE needs ${prefix}CERT_FILE`]);
      assert.deepEqual(problemsOf({ ...tls, ...lists }), [`${prefix}CLIENT_CRL_FILE needs ${prefix}CLIENT_CA_FILE`]);
    }
  });

  it('`make config` tells the default, the range and the meaning of each', () => {
    const source = readFileSync(join(root, 'src/gateway/app/config-settings.ts'), 'utf8');
    const former = [...source.matchAll(/renamed\(\s*'(MARINA_[A-Z_]+)'/g)].map(([, name]) => name);
    const all = [...source.matchAll(/'(MARINA_[A-Z_]+)'/g)].map(([, name = '']) => name);
    const names = all.filter((name) => !former.includes(name));
    const described = describeConfig();
    assert.ok(names.length > 25, `found ${names.length} settings`);
    for (const name of names.filter((each) => each !== 'MARINA_')) {
      const entry = new RegExp(`^${name}\n  .{10,}\n  (must be set|default: .+); may be: .+$`, 'm');
      assert.match(described, entry);
    }
  });

  it('a gateway and a migration do not start with a variable that is no setting, and say so', async () => {
    for (const command of ['serve', 'migrate']) {
      const { code, stderr } = await run(command, { ...enough, MARINA_DATABASE_POLL: '4' });
      assert.equal(code, 2, stderr);
      assert.match(stderr, /MARINA_DATABASE_POLL is no setting; MARINA_DATABASE_POOL is/);
      assert.doesNotMatch(stderr, /canary/);
    }
  });
});

describe('the nearest word', () => {
  it('is one that differs in few letters, or none', () => {
    assert.equal(nearest('REST_PROT', ['GRPC_PORT', 'REST_PORT']), 'REST_PORT');
    assert.equal(nearest('HOSTS', ['HOST', 'OPS_HOST']), 'HOST');
    assert.equal(nearest('XYZZY', ['HOST', 'OPS_HOST']), undefined);
    assert.equal(nearest('', ['HOST']), undefined);
  });
});

function run(command: string, variables: Record<string, string>): Promise<{ code: number; stderr: string }> {
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH, ...variables };
    const options = { cwd: root, env, timeout: 60_000 };
    execFile(process.execPath, ['--import', 'tsx', 'src/main.ts', command], options, (error, _stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stderr }),
    );
  });
}
