import { collectGarbage } from '../../kit/garbage.ts';
import { createLogger } from '../../kit/log.ts';
import { onStopRequest, serving } from '../../kit/process.ts';
import { hasEventsOutsideFeed } from '../delivery/events/outbox.ts';
import { UncaughtErrors } from '../edge/uncaught.ts';
import { noteRestored } from '../operators/secret-keys/open-ring.ts';
import { openDatabaseAccess } from '../store/access.ts';
import type { Reached } from '../store/data-source.ts';
import { openDatabase } from '../store/database.ts';
import { migrate, missingMigrations } from '../store/migrate.ts';
import { tellRewound } from '../trading/submission/report-days.ts';
import { noteRestore } from '../trading/submission/restored.ts';
import type { App } from './app.ts';
import {
  acceptsUnsealedRows,
  ConfigError,
  type DatabaseConfig,
  describeConfig,
  readConfig,
  readDatabaseConfig,
  readKeysConfig,
} from './config.ts';

/** How long a stop may take in addition to the times of the servers and of background work. */
const closingMs = 9_000;

/** The commands of the gateway, by name. Each gets the arguments after its name. */
export const gatewayCommands: Readonly<Record<string, (args: string[]) => Promise<void>>> = {
  serve,
  migrate: async () => migrate(await reach(readOrExit(readDatabaseConfig)), undefined, console.error),
  restored,
  archive: async (args) => {
    const { archiveCommand } = await import('../operators/archive/command.ts');
    process.exitCode = await archiveCommand(args, () => reach(readOrExit(readDatabaseConfig)));
  },
  keys: async (args) => {
    const { keysCommand } = await import('../operators/secret-keys/command.ts');
    const reachWithRing = async () => {
      const config = readOrExit(readKeysConfig);
      return { ...(await reach(config)), ring: config.secretKey.first, acceptsUnsealed: acceptsUnsealedRows(config) };
    };
    process.exitCode = await keysCommand(args, reachWithRing);
  },
  'operator-token': async (args) => {
    const { operatorTokenCommand } = await import('../operators/calls/operator-token-command.ts');
    process.exitCode = operatorTokenCommand(args);
  },
  config: async () => console.log(describeConfig()),
};

/** Declares that a database was restored from a backup. To be run before a gateway starts on it. */
async function restored(): Promise<void> {
  const config = readOrExit(readConfig);
  const database = await openDatabase({ ...(await reach(config)), environment: config.environment, poolSize: 2 });
  try {
    const missing = await missingMigrations(database);
    if (missing.length > 0) throw new Error(`the database lacks ${missing.join(', ')}: migrate it first`);
    if (await hasEventsOutsideFeed(database)) {
      throw new Error('the backup has events of release 0.1.0 on their way: restore it with 0.2.0, and upgrade then');
    }
    await noteRestored(database, config.secretKey.first, Date.now());
    for (const broker of config.brokerIds) {
      for (const one of await noteRestore(database, broker)) console.log(tellRewound(one));
    }
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
    const { startApp } = await import('./app.ts');
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
