import { join, resolve } from 'node:path';
import { type PackageSet, unpackPackages } from '../../src/sandbox/packages.ts';
import { findInstalled } from '../../src/sandbox/programs.ts';

const programs = ['usr/bin/promtool', 'usr/bin/prometheus'] as const;

/** Debian's Prometheus, some 19 MB, and the tool that checks rules. */
const prometheusPackages: PackageSet = {
  what: 'Prometheus',
  choose: (existing) => existing('prometheus').filter((name) => name === 'prometheus'),
  programs,
  advice: 'Install prometheus (Debian, Ubuntu: sudo apt install prometheus).',
};

/** The path of a promtool: the one that is installed, else the distribution's, unpacked next to the sandbox's data. */
export function findPromtool(): Promise<string> {
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
