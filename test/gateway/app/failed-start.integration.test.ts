import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { createTestDatabase } from '../../support/servers.ts';

const run = promisify(execFile);

/** Starts a gateway and says what came of it. A handle that it leaves open keeps the process from ending. */
const program = `
  import { startApp } from './src/gateway/app/app.ts';
  import { readConfig } from './src/gateway/app/config.ts';
  import { createLogger } from './src/kit/log.ts';
  const config = { ...readConfig(process.env), ...JSON.parse(process.argv[1]) };
  await startApp(config, createLogger({ name: 'marina', level: 'silent' })).then(
    () => console.log('it started'),
    (error) => console.log(error.message),
  );
`;

/** Longer than a start may take and shorter than clients would be sent away for. */
const patienceMs = 30_000;
const drain = { MARINA_DRAIN_MS: '120000' };

describe('a gateway that cannot start says why, at once, and leaves nothing open', () => {
  let other: TestGateway;
  before(async () => {
    other = await startGateway();
  });
  after(() => other.stop());

  async function outcome(variables: Record<string, string>, overrides: object = {}): Promise<string> {
    const { stdout } = await run(
      process.execPath,
      ['--import', 'tsx', '--input-type=module', '--eval', program, JSON.stringify(overrides)],
      {
        cwd: join(import.meta.dirname, '../../..'),
        env: { PATH: process.env.PATH, ...other.variables, ...drain, ...variables },
        timeout: patienceMs,
      },
    );
    return stdout;
  }

  it('when its database is of another environment', async () => {
    const said = await outcome({ MARINA_ENVIRONMENT: 'live', MARINA_SIMULATOR_ADDRESS: '' });
    assert.match(said, /^this database belongs to the sandbox environment/);
  });

  it('when its database has no tables yet', async () => {
    const empty = await createTestDatabase();
    try {
      const said = await outcome({ MARINA_DATABASE_URL: empty.url });
      assert.equal(said.trim(), 'the database has no tables of a gateway: migrate it first (node src/main.js migrate)');
    } finally {
      await empty.drop();
    }
  });

  it('when its certificate is no good', async () => {
    const noCertificate = join(import.meta.dirname, '../../../package.json');
    assert.match(await outcome({}, { tlsCertificate: noCertificate, tlsKey: noCertificate }), /PEM/i);
  });

  it('when a part cannot be made', async () => {
    assert.match(await outcome({}, { brokerAddress: 42 }), /^Channel target must be a string/);
  });

  it("when the partners' port is taken", async () => {
    const said = await outcome({ MARINA_REST_PORT: String(other.app.restPort) });
    assert.match(said, /^listen EADDRINUSE/);
  });

  it('when the last of its ports is taken', async () => {
    const said = await outcome({ MARINA_OPS_PORT: String(other.app.opsPort) });
    assert.match(said, /^listen EADDRINUSE/);
  });
});
