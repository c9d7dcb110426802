import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { type PackageSet, unpackPackages } from '../../src/sandbox/packages.ts';
import { findInstalled } from '../../src/sandbox/programs.ts';
import { temporaryFolder } from './folders.ts';

const programs = ['usr/bin/promtool', 'usr/bin/prometheus'] as const;

/** Debian's Prometheus, some 19 MB, and the tool that checks rules. */
const prometheusPackages: PackageSet = {
  what: 'Prometheus',
  choose: (existing) => existing('prometheus').filter((name) => name === 'prometheus'),
  programs,
  advice: 'Install prometheus (Debian, Ubuntu: sudo apt install prometheus).',
};

/** The judgement of promtool, with its words. */
export interface Judgement {
  readonly agrees: boolean;
  readonly said: string;
}

/** Runs promtool, and takes less time than usual, because it collects its garbage less often. */
export async function promtool(...args: string[]): Promise<Judgement> {
  const path = await findPromtool();
  const options = { maxBuffer: 100_000_000, env: { ...process.env, GOGC: '1000' } };
  try {
    const { stdout, stderr } = await promisify(execFile)(path, args, options);
    return { agrees: true, said: `${stdout}\n${stderr}` };
  } catch (error) {
    const { stdout, stderr, code } = error as { stdout?: string; stderr?: string; code?: unknown };
    if (typeof code !== 'number') throw error;
    return { agrees: false, said: `${stdout}\n${stderr}` };
  }
}

/** Runs promtool's unit tests of rules, each the content of a file, in one process. */
export function testRules(...files: readonly object[]): Promise<Judgement> {
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const paths = files.map((file, index) => {
    const path = join(folder, `${index}.test.json`);
    writeFileSync(path, JSON.stringify(file)); // JSON is YAML.
    return path;
  });
  return promtool('test', 'rules', ...paths);
}

/** The path of a promtool: the one that is installed, else the distribution's, unpacked next to the sandbox's data. */
function findPromtool(): Promise<string> {
  return find('promtool', programs[0]);
}

/** The same of Prometheus itself. */
export function findPrometheus(): Promise<string> {
  return find('prometheus', programs[1]);
}

async function find(name: string, program: string): Promise<string> {
  const installed = findInstalled([name]);
  if (installed !== undefined) return installed.path;
  const folder = resolve(process.env.MARINA_DATA_DIR || '.local', 'prometheus');
  await unpackPackages(folder, prometheusPackages);
  return join(folder, program);
}
