import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type KeptProcess, sharedKeeper } from '../../../src/sandbox/keeper.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/folders.ts';

/** The clock ticks in which the kernel counts processor time: 100 a second on every Linux we know. */
const ticksPerSecond = 100;

/** How much processor time a process has used, in milliseconds. */
export function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticksPerSecond;
}

/** How much memory a process holds, in MiB. */
export function residentMiB(pid: number): number {
  const [, kib = '0'] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) / 1_024;
}

/** Starts one of the bare programs we are measured against, and waits until it says its port. */
export async function startBaseline(
  name: string,
  variables: Record<string, string>,
): Promise<{ process: KeptProcess; port: number }> {
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const started = await sharedKeeper().start({
    name,
    command: process.execPath,
    args: ['--import', 'tsx', join(import.meta.dirname, `../baselines/${name}.ts`)],
    env: { ...process.env, ...variables },
    logPath: join(folder, `${name}.log`),
    ipc: true,
  });
  let port: number | undefined;
  started.onMessage((message) => {
    port = (message as { port: number }).port;
  });
  const ready = await eventually(() => {
    if (port === undefined) throw new Error(`${name} did not become ready`);
    return port;
  }, 15_000);
  return { process: started, port: ready };
}
