import { fixMigrations } from '../../migrations/fix/index.ts';
import { openDatabaseAccess } from '../gateway/store/access.ts';
import { connect } from '../gateway/store/data-source.ts';
import { Database } from '../gateway/store/database.ts';
import { migrate } from '../gateway/store/migrate.ts';
import { collectGarbage } from '../kit/garbage.ts';
import { createLogger } from '../kit/log.ts';
import { onStopRequest, serving } from '../kit/process.ts';
import { ConfigError } from '../kit/settings.ts';
import { isVisibleLine } from '../kit/visible-text.ts';
import { startFixAdapter } from './adapter.ts';
import { describeFixConfig, type FixConfig, readFixConfig } from './config.ts';
import { isReadCommand, readCommand, readCommands } from './operations/commands.ts';
import { type ChangeAuthor, unnamedAuthor } from './store/audit.ts';
import { setRestored, settleFinding, settleOrder } from './store/operator-writes.ts';
import { checkNoAdapterRuns } from './store/running-adapter.ts';
import { setDropCopyNumbers, setNumbers } from './store/set-numbers.ts';

const commands = ['serve', 'migrate', 'numbers', 'restored', 'release', 'settle-finding', 'settle', ...readCommands];

/** Those that note who did something, and why. */
const naming: ReadonlySet<string> = new Set(['numbers', 'restored', 'release', 'settle-finding', 'settle']);

/** If a stop takes longer, the process exits. */
const stopWithinMs = 12_000;

/** The command `fix`: serves, or runs the command that its first argument names. Returns the exit code, or nothing while it serves. */
export async function fixCommand(
  [what = 'serve', ...rest]: readonly string[],
  variables: NodeJS.ProcessEnv,
): Promise<number | undefined> {
  if (what === 'config') {
    console.log(describeFixConfig());
    return 0;
  }
  const isOfDropCopy = rest.includes('--drop-copy');
  const numbersArgs = rest.filter((arg) => arg !== '--drop-copy');
  const [nextOut = 0, nextIn = 0] = numbersArgs.slice(0, 2).map(Number);
  if (what === 'numbers' && ![nextOut, nextIn].every((each) => Number.isSafeInteger(each) && each > 0)) {
    console.error(
      'use fix numbers [--drop-copy] OUT IN NAME WHY: the numbers of our next message and of the next one of the other side, who sets them, and why',
    );
    return 2;
  }
  const [findingId = '', operator = '', ...words] = rest;
  if (what === 'settle-finding' && !(/^\d{1,15}$/.test(findingId) && operator !== '' && words.length > 0)) {
    console.error('use fix settle-finding ID NAME NOTE: who settles the finding, and how');
    return 2;
  }
  if (what === 'settle' && !(findingId !== '' && operator !== '' && words.length > 0)) {
    console.error("use fix settle ORDER NAME NOTE: who settled the order with the broker's desk, and how");
    return 2;
  }
  if (naming.has(what) && !rest.every(isVisibleLine)) {
    console.error('names and reasons must be one line of characters that can be seen');
    return 2;
  }
  const reading = isReadCommand(what) ? readCommand(what, rest, Date.now()) : undefined;
  if (isReadCommand(what) && reading === undefined) return 2;
  if (!commands.includes(what)) {
    console.error(`unknown command fix ${what}: use ${commands.join(', ')} or config`);
    return 2;
  }
  let config: FixConfig;
  try {
    config = readFixConfig(variables);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(`the FIX adapter could not start:\n${error.message}`);
    return 2;
  }
  if (what === 'serve') return serve(config);
  const log = createLogger({ name: 'marina-fix', level: 'silent' });
  const access = await openDatabaseAccess(config.databaseUrl, config.links.database, log);
  const database = new Database(await connect({ access, poolSize: 1 }), 'live', 1);
  try {
    if (what === 'migrate') {
      await checkNoAdapterRuns(database);
      await migrate({ access }, fixMigrations, console.error);
      return 0;
    }
    if (reading !== undefined) {
      await reading(database, config, Date.now());
      return 0;
    }
    if (what === 'restored' || what === 'release') {
      const isNew = await setRestored(database, what === 'restored', authorIn(rest));
      const state = what === 'restored' ? 'nothing is proven absent until it is released' : 'absence counts again';
      console.log(isNew ? state : `${state}, as before`);
      return 0;
    }
    if (what === 'settle-finding') {
      await settleFinding(database, {
        ...{ findingId: BigInt(findingId), at: Date.now(), operator: operator.slice(0, 64) },
        note: words.join(' '),
      });
      console.log(`finding ${findingId} is settled`);
      return 0;
    }
    if (what === 'settle') {
      const count = await settleOrder(database, findingId, {
        ...{ at: Date.now(), operator: operator.slice(0, 64), note: words.join(' ') },
      });
      console.log(
        count === 0 ? `${findingId} is settled; it had no open finding` : `${findingId} and its findings are settled`,
      );
      return 0;
    }
    const set = isOfDropCopy ? setDropCopyNumbers : setNumbers;
    const before = await set(database, { nextOut, nextIn }, authorIn(numbersArgs.slice(2)));
    console.log(
      `our next message: ${before.nextOut} before, ${nextOut} now; theirs: ${before.nextIn} before, ${nextIn} now`,
    );
    return 0;
  } catch (error) {
    console.error((error as Error).message);
    return 1;
  } finally {
    await database.close();
  }
}

/** Who gives a command, and why, by its last arguments. Without them: the account of the operating system, and no reason. */
function authorIn([name, ...why]: readonly string[]): ChangeAuthor {
  const unnamed = unnamedAuthor();
  const reason = why.join(' ');
  return { at: unnamed.at, operator: name ?? unnamed.operator, reason: reason === '' ? unnamed.reason : reason };
}

async function serve(config: FixConfig): Promise<number | undefined> {
  const { log, exit } = serving('marina-fix', config.logLevel);
  try {
    const adapter = await startFixAdapter(config, log);
    log.info({ opsPort: adapter.opsPort }, 'started');
    let stopping = false;
    const stop = (reason: string, code = 0) => {
      if (stopping) return;
      stopping = true;
      log.info({ reason }, 'stopping');
      setTimeout(() => exit(1), stopWithinMs).unref();
      adapter.stop().then(
        () => exit(code),
        (error: unknown) => {
          log.error({ err: error }, 'the stop failed');
          return exit(1);
        },
      );
    };
    process.on('uncaughtException', (error) => {
      log.fatal({ err: error }, 'an error was not caught');
      stop('an error was not caught', 1);
    });
    onStopRequest(stop);
    process.send?.({ type: 'started', opsPort: adapter.opsPort });
    void adapter.active.then((port) => {
      collectGarbage();
      process.send?.({ type: 'active', port });
    });
    return undefined;
  } catch (error) {
    log.fatal({ err: error }, 'the FIX adapter could not start');
    console.error(`the FIX adapter could not start: ${(error as Error).message}`);
    return exit(1);
  }
}
