import { join, resolve } from 'node:path';
import { type PackageSet, unpackPackages } from '../../src/dev/packages.ts';
import { findInstalled } from '../../src/dev/programs.ts';

const program = 'usr/bin/promtool';

/** Debian's Prometheus, some 19 MB, of which the tool that checks rules is used. */
const prometheusPackages: PackageSet = {
  what: 'Prometheus',
  choose: (existing) => existing('prometheus').filter((name) => name === 'prometheus'),
  programs: [program],
  advice: 'Install prometheus (Debian, Ubuntu: sudo apt install prometheus).',
};

/** The path of a promtool: the one that is installed, else the distribution's, unpacked beside the sandbox's data. */
export async function findPromtool(): Promise<string> {
  const installed = findInstalled(['promtool']);
  if (installed !== undefined) return installed.path;
  const folder = resolve(process.env.MARINA_DATA_DIR || '.local', 'prometheus');
  await unpackPackages(folder, prometheusPackages);
  return join(folder, program);
}
