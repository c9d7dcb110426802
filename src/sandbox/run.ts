/**
 * `make run`: a sandbox with everything it needs, in one folder, until Ctrl-C. A part that dies is started again
 * (`parts.ts`). However it ends, nothing stays running: all processes belong to a keeper that ends them (`keeper.ts`).
 */
import { explain } from './advice.ts';
import { banner } from './banner.ts';
import { closeSharedKeeper, type KeptProcess } from './keeper.ts';
import { lockFolder } from './lock.ts';
import { SandboxParts } from './parts.ts';
import { progressLines } from './progress.ts';
import { startSandbox } from './sandbox.ts';
import { readSandbox, writeSandbox } from './sandbox-file.ts';
import { readSettings } from './settings.ts';

const processes: KeptProcess[] = [];
let stopping = false;
let parts: SandboxParts | undefined;
let fail: (error: unknown) => void = () => undefined;
let askedToStop: () => void = () => undefined;
const failed = new Promise<never>((_resolve, reject) => {
  fail = reject;
});
const stopAsked = new Promise<void>((resolve) => {
  askedToStop = resolve;
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // Asked again while stopping: the one who asks does not want to wait.
    if (stopping) for (const kept of processes) void kept.kill();
    askedToStop();
  });
}
// A terminal that went away must not keep the rest from being stopped.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

// Waiting for a signal does not keep a process alive by itself.
setInterval(() => undefined, 60_000);
process.exit(await run());

async function run(): Promise<number> {
  const began = performance.now();
  const progress = progressLines((text) => process.stdout.write(text));
  let lock: { release(): void } | undefined;
  try {
    const settings = readSettings(process.env);
    lock = lockFolder(settings.dataDir, 'A sandbox');
    process.stdout.write(`Starting a sandbox in ${settings.dataDir}\n`);
    const { dataDir } = settings;
    const restarted = (name: string, pid: number) => {
      const written = readSandbox(dataDir);
      if (written !== undefined) writeSandbox(dataDir, { ...written, pids: { ...written.pids, [name]: pid } });
    };
    parts = new SandboxParts({ dataDir, progress, fail, restarted });
    const starting = startSandbox(settings, progress, parts, (kept) => processes.push(kept));
    const sandbox = await Promise.race([starting, failed, stopAsked]);
    if (sandbox !== undefined) {
      process.stdout.write(banner(sandbox, settings.dataDir, (performance.now() - began) / 1000));
      await Promise.race([failed, stopAsked]);
    }
    process.stdout.write('\nStopping\n');
    await stop(progress);
    const written = readSandbox(settings.dataDir);
    if (written !== undefined) writeSandbox(settings.dataDir, { ...written, pids: {} });
    return 0;
  } catch (error) {
    process.stderr.write(`\n${explain(error)}\n`);
    await stop(progress);
    return 1;
  } finally {
    lock?.release();
  }
}

/** The keeper stops the newest first: gateway, simulator, then the servers they use. */
async function stop(progress: ReturnType<typeof progressLines>): Promise<void> {
  stopping = true;
  parts?.stop();
  if (processes.length === 0) return closeSharedKeeper();
  await progress.step('everything stopped', closeSharedKeeper());
}
