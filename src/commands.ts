import { setFlagsFromString } from 'node:v8';
import type { App } from './gateway/app/app.ts';
import {
  acceptsUnsealedRows,
  ConfigError,
  type DatabaseConfig,
  describeConfig,
  readConfig,
  readDatabaseConfig,
  readKeysConfig,
} from './gateway/app/config.ts';
import { UncaughtErrors } from './gateway/edge/uncaught.ts';
import { noteRestored } from './gateway/operators/secret-keys/open-ring.ts';
import { openDatabaseAccess } from './gateway/store/access.ts';
import type { Reached } from './gateway/store/data-source.ts';
import { openDatabase } from './gateway/store/database.ts';
import { migrate, missingMigrations } from './gateway/store/migrate.ts';
import { tellRewound } from './gateway/trading/submission/report-days.ts';
import { noteRestore } from './gateway/trading/submission/restored.ts';
import { collectGarbage } from './kit/garbage.ts';
import { createLogger } from './kit/log.ts';
import { onStopRequest, serving } from './kit/process.ts';

// Live data takes 45 MiB, but by default V8 lets some 150 MiB of garbage gather before it collects.
setFlagsFromString('--heap-growing-percent=80');

/** How long a stop may take in addition to the times of the servers and of background work. */
const closingMs = 9_000;

const [command = 'serve'] = process.argv.slice(2);

if (command === 'config') {
  console.log(describeConfig());
} else if (command === 'migrate') {
  await migrate(await reach(readOrExit(readDatabaseConfig)), undefined, console.error);
} else if (command === 'restored') {
  await restored();
} else if (command === 'archive') {
  const { archiveCommand } = await import('./gateway/operators/archive/command.ts');
  process.exitCode = await archiveCommand(process.argv.slice(3), () => reach(readOrExit(readDatabaseConfig)));
} else if (command === 'keys') {
  const { keysCommand } = await import('./gateway/operators/secret-keys/command.ts');
  const { walkLedger } = await import('./gateway/operators/calls/ledger.ts');
  const reachWithRing = async () => {
    const config = readOrExit(readKeysConfig);
    return { ...(await reach(config)), ring: config.secretKey.first, acceptsUnsealed: acceptsUnsealedRows(config) };
  };
  process.exitCode = await keysCommand(process.argv.slice(3), reachWithRing, walkLedger);
} else if (command === 'operator-token') {
  const { operatorTokenCommand } = await import('./gateway/operators/calls/operator-token-command.ts');
  process.exitCode = operatorTokenCommand(process.argv.slice(3));
} else if (command === 'fix') {
  const { fixCommand } = await import('./fix-adapter/command.ts');
  process.exitCode = await fixCommand(process.argv.slice(3), process.env);
} else if (command === 'broker-check') {
  const { brokerCheckCommand } = await import('./broker-check/command.ts');
  process.exitCode = await brokerCheckCommand(process.argv.slice(3));
} else if (command === 'serve') {
  await serve();
} else {
  console.error(
    `unknown command ${command}: use serve, migrate, restored, archive, keys, operator-token, fix, broker-check or config`,
  );
  process.exitCode = 2;
}

/** Declares that a database was restored from a backup. To be run before a gateway starts on it. */
async function restored(): Promise<void> {
  const config = readOrExit(readConfig);
  const database = await openDatabase({ ...(await reach(config)), environment: config.environment, poolSize: 2 });
  try {
    const missing = await missingMigrations(database);
    if (missing.length > 0) throw new Error(`the database lacks ${missing.join(', ')}: migrate it first`);
    await noteRestored(database, config.secretKey.first, Date.now());
    for (const one of await noteRestore(database)) console.log(tellRewound(one));
    console.log('declared: no event version is used again');
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = 1;
  } finally {
    await database.close();
  }
}

/** How a command reaches the database. Its files are read once. */
async function reach({ databaseUrl, links }: DatabaseConfig): Promise<Reached> {
  const log = createLogger({ name: 'marina', level: 'silent' });
  return { access: await openDatabaseAccess(databaseUrl, links.database, log) };
}

async function serve(): Promise<void> {
  const config = readOrExit(readConfig);
  const { log, output, exit } = serving('marina', config.logLevel);
  let app: App;
  try {
    // The other commands do without it: it takes some 30 MiB.
    const { startApp } = await import('./gateway/app/app.ts');
    app = await startApp(config, log, output);
  } catch (error) {
    log.fatal({ err: error }, 'the gateway could not start');
    console.error(`marina could not start: ${(error as Error).message}`);
    return exit(1);
  }
  const { restPort, grpcPort, adminPort, opsPort } = app;
  log.info({ environment: config.environment, restPort, grpcPort, adminPort, opsPort }, 'ready');

  let stopping = false;
  let exitCode = 0;
  const stop = (reason: string) => {
    if (stopping) return;
    stopping = true;
    log.info({ reason }, 'stopping');
    setTimeout(() => exit(1), config.drainMs + config.shutdownTimeoutMs * 2 + closingMs).unref();
    app.stop().then(
      () => {
        log.info('stopped');
        return exit(exitCode);
      },
      (error: unknown) => {
        log.error({ err: error }, 'the stop failed');
        return exit(1);
      },
    );
  };
  const uncaught = new UncaughtErrors(log, app.countUncaught, () => {
    exitCode = 1;
    stop('an error was not caught');
  });
  process.on('uncaughtException', uncaught.handle);
  onStopRequest(stop);
  process.send?.({ type: 'ready', restPort, grpcPort, adminPort, opsPort });
  collectGarbage();
}

function readOrExit<T>(read: (variables: NodeJS.ProcessEnv) => T): T {
  try {
    return read(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(`marina could not start:\n${error.message}`);
    process.exit(2);
  }
}
