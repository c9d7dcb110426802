/**
 * `make drill`: makes something go wrong in the running sandbox, says which page to read, and puts it right when it is
 * stopped.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Advice, explain } from './advice.ts';
import { type Drill, type DrillIn, drills } from './drills.ts';
import { readSandbox, runningSandbox } from './sandbox-file.ts';
import { dataFolder } from './settings.ts';

/** How long what a drill broke may take to be there again. */
const endWithinMs = 60_000;

const stopAsked = new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve());
});

main(process.argv[2] ?? '').then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`\n${explain(error)}\n`);
    process.exit(1);
  },
);

async function main(name: string): Promise<void> {
  if (name === '') return list();
  const dataDir = dataFolder(process.env);
  if (name === 'end') {
    const sandbox = readSandbox(dataDir);
    if (sandbox === undefined) throw new Advice(`There is no sandbox in ${dataDir}.`, 'Start one: make run');
    for (const drill of drills) await endIt(drill, { sandbox, dataDir });
    return void process.stdout.write('All drills are over.\n');
  }
  const drill = drills.find((one) => one.name === name);
  if (drill === undefined) throw new Advice(`There is no drill ${name}.`, 'Choose one that `make drill` lists.');
  await run(drill, dataDir);
}

async function run(drill: Drill, dataDir: string): Promise<void> {
  const where = { sandbox: runningSandbox(dataDir), dataDir };
  // Keeps the process until it is asked to stop.
  const held = setInterval(() => undefined, 60_000);
  try {
    const given = await drill.begin(where);
    process.stdout.write(`\n  ${drill.heard}\n  ${given}\n\n  Read docs/operations/${drill.page}\n`);
    process.stdout.write('  The drill is on. Ctrl-C ends it.\n');
    await stopAsked;
  } finally {
    clearInterval(held);
    await endIt(drill, where);
  }
  process.stdout.write('\n  The drill is over: what was broken is whole again.\n');
}

/** A part that was away may still be on its way back. */
async function endIt(drill: Drill, where: DrillIn): Promise<void> {
  for (const deadline = performance.now() + endWithinMs; ; await sleep(250)) {
    try {
      return await drill.end(where);
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
  }
}

function list(): void {
  const width = Math.max(...drills.map(({ name }) => name.length));
  const lines = drills.map(({ name, heard }) => `  make drill NAME=${name.padEnd(width)}  ${heard}\n`);
  process.stdout.write(
    `Drills, in the sandbox that runs:\n\n${lines.join('')}\n  make drill NAME=end puts right what a drill that was killed left behind.\n`,
  );
}
