import { spawn } from 'node:child_process';
import { checks } from './checks.ts';
import { checkList, countsTable, exitCodeOf, resultJson, resultLines } from './output.ts';
import { runChecks } from './run.ts';
import { type CommandLine, exitCodes, readCommandLine, UsageError, usage } from './settings.ts';

/** Runs `broker-check …`. Answers the exit code. */
export async function brokerCheckCommand(args: readonly string[]): Promise<number> {
  let line: CommandLine;
  try {
    line = readCommandLine(args, (command, boundMs) => () => runHook(command, boundMs));
    const unknown = line.settings.only?.find((id) => !checks.some((check) => check.id === id));
    if (unknown !== undefined) throw new UsageError(`there is no check ${unknown}`);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`${error.message}\n\n${usage}`);
    return exitCodes.wrongCommand;
  }
  const { settings, json, list, help } = line;
  if (help) {
    console.log(usage);
    return exitCodes.passed;
  }
  if (list) {
    console.log(checkList(checks));
    return exitCodes.passed;
  }
  const results = await runChecks(checks, settings, (result) => {
    if (!json) console.log(resultLines(result));
  });
  console.log(json ? resultJson(results) : `\n${countsTable(results)}`);
  return exitCodeOf(results);
}

/** Runs a command of the caller in a shell. Throws if it fails or takes too long. Its output goes to our errors. */
function runHook(command: string, boundMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, { shell: true, stdio: ['ignore', 2, 2], timeout: boundMs, killSignal: 'SIGKILL' });
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`the hook ended with ${signal ?? code}: ${command}`));
    });
  });
}
