import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { gatewayEntry, withoutOurs } from '../../../../src/sandbox/processes.ts';
import { running } from '../../cluster.ts';
import { temporaryFolder } from '../../folders.ts';
import { inPart } from '../../part.ts';
import { patient } from '../../patience.ts';
import { casesOf, nameOf } from './endings.ts';
import type { Watching } from './inside/preload.ts';
import { type Armed, isMet, type Moment } from './inside/watch.ts';
import { compileInside } from './load.ts';

/** A command of `main.js`, of which each moment is a place where it may be killed or fail. */
export interface CommandScenario<Case> {
  readonly name: string;
  /** Makes what the command works on in one case. */
  prepare(): Promise<Case>;
  command(one: Case): Command;
  /** Checks what holds after a run that was killed or failed. */
  checkFailed?(one: Case): Promise<void>;
  /** Checks what the command promises when it has ended with 0. It gets what the command printed. */
  check(one: Case, printed: string): Promise<void>;
}

export interface Command {
  readonly args: readonly string[];
  readonly variables: Record<string, string>;
}

/** How a command ended, with its moments. */
export interface CommandRun {
  /** Its exit code, or the signal that ended it. */
  readonly ended: number | string | null;
  readonly printed: string;
  readonly moments: readonly Moment[];
  /** How many moments met the fate that was chosen for them. */
  readonly met: number;
}

const commandTimeoutMs = 60_000;

/** Runs commands whose moments are watched. */
export class WatchedCommands {
  readonly #folder = temporaryFolder();
  readonly #preload = compileInside(join(this.#folder, 'inside'));
  #runs = 0;

  async run({ args, variables }: Command, armed?: Armed): Promise<CommandRun> {
    this.#runs += 1;
    const file = join(this.#folder, `moments-${this.#runs}`);
    const watching: Watching = { file, ...(armed && { armed }) };
    const env = {
      ...withoutOurs(process.env),
      ...variables,
      NODE_OPTIONS: this.#preload,
      MARINA_MOMENTS: JSON.stringify(watching),
    };
    const timeout = patient(commandTimeoutMs);
    const child = spawn(process.execPath, [...running(gatewayEntry), ...args], { env, timeout });
    let printed = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (printed += String(chunk)));
    const ended = await new Promise<number | string | null>((resolve) => {
      child.on('close', (code, signal) => resolve(code ?? signal));
    });
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
    const moments = lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Moment);
    const met = armed === undefined ? 0 : moments.filter((moment) => isMet(armed, moment)).length;
    return { ended, printed, moments, met };
  }
}

/** Of a label that comes again and again, the first ones have a case. */
const maxOccurrences = 2;

/**
 * Runs each command once and records its moments; then once for each of them and each way in which it can end. A run that was
 * killed or failed is followed by another one, as an operator repeats it. `end` ends what the scenarios share.
 */
export async function describeCommandMoments<Case>(
  scenarios: readonly CommandScenario<Case>[],
  end: () => Promise<void>,
): Promise<void> {
  const commands = new WatchedCommands();
  const recorded: { scenario: CommandScenario<Case>; first: Case; moments: readonly Moment[] }[] = [];
  for (const scenario of scenarios) {
    const first = await scenario.prepare();
    const { moments, printed } = await whole(commands, scenario.command(first));
    await scenario.check(first, printed);
    recorded.push({ scenario, first, moments });
  }
  describe('commands that are killed or fail', () => {
    after(end);

    for (const { scenario, first, moments } of recorded) {
      describe(`${scenario.name}, at each moment`, () => {
        it('the command has moments of which a case is made, and every promise holds after a further run', async (t) => {
          for (const moment of moments) t.diagnostic(nameOf(moment));
          assert.ok(moments.length > 0);
          await scenario.check(first, (await whole(commands, scenario.command(first))).printed);
        });

        const cases = casesOf(moments.filter(({ occurrence }) => occurrence <= maxOccurrences));
        for (const { moment, ending } of inPart(cases)) {
          it(`${nameOf(moment)}, ${ending.says}: every promise holds after a further run`, async () => {
            await runCase(commands, scenario, { ...moment, fate: ending.fate, times: ending.times });
          });
        }
      });
    }
  });
}

async function whole(commands: WatchedCommands, command: Command): Promise<CommandRun> {
  const run = await commands.run(command);
  assert.equal(run.ended, 0, run.printed);
  return run;
}

async function runCase<Case>(commands: WatchedCommands, scenario: CommandScenario<Case>, armed: Armed): Promise<void> {
  const one = await scenario.prepare();
  const command = scenario.command(one);
  const run = await commands.run(command, armed);
  assert.ok(run.met > 0, `the moment did not come: ${run.printed}`);
  const isKill = armed.fate === 'before' || armed.fate === 'after';
  if (isKill) assert.equal(run.ended, 'SIGKILL', run.printed);
  else assert.ok(run.ended === 0 || run.ended === 1, `it ended with ${run.ended}: ${run.printed}`);
  if (run.ended === 0) return scenario.check(one, run.printed);
  await scenario.checkFailed?.(one);
  const left = armed.times - run.met;
  if (left > 0) {
    // The next run passes over all that is done, so the moment that failed is the first of its label there.
    await commands.run(command, { ...armed, occurrence: 1, times: left });
    await scenario.checkFailed?.(one);
  }
  await scenario.check(one, (await whole(commands, command)).printed);
}
