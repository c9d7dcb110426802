import { execFile } from 'node:child_process';
import {
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { copyContext, onlyStep, readDockerfile, type Stage, variablesOf } from './dockerfile.ts';

const run = promisify(execFile);

/** The folders of this machine that every root has. It stands for the image that ours is based on. */
const baseFolders = ['usr', 'etc'];
/** Who `USER node` is in the images of Node. */
const userId = '1000';
const isRoot = process.getuid?.() === 0;
/** Without root, a namespace of users lets us mount. */
const namespaces = [...(isRoot ? [] : ['--user', '--map-root-user']), '--mount', '--pid', '--fork', '--kill-child'];

/** The result of a Dockerfile's steps. */
export interface Image {
  /** The last stage, which says how the image is run. */
  readonly stage: Stage;
  /** Where the gateway is in it. */
  readonly folder: string;
  /** How many bytes the files below a path of that folder have. */
  size(path: string): number;
  /** How to run a program in it: as its user, without rights, and with nothing that can be written to. */
  command(program: readonly string[]): { command: string; args: string[] };
}

/** Why the steps of a Dockerfile cannot be carried out here without an engine; undefined: they can. */
export async function missingForImages(): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'marina-image-'));
  try {
    makeRoot(folder);
    await run('unshare', [...namespaces, 'sh', '-ec', `${mounts(folder, true)} chroot ${folder}/root true`]);
    return undefined;
  } catch (error) {
    return `no root folder of its own can be mounted: ${(error as Error).message.split('\n')[1]}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Carries out a Dockerfile, each step in the root folder of its stage. */
export async function buildImage(dockerfile: string): Promise<Image> {
  // Not in memory: the packages need half a GB.
  const top = mkdtempSync(join(tmpdir(), 'marina-image-'));
  sharedKeeper().removeAtEnd(top);
  const context = join(top, 'context');
  copyContext(context);
  const stages = readDockerfile(dockerfile);
  for (const stage of stages) {
    makeRoot(join(top, stage.name));
    await carryOut(stage, top, context);
  }
  const stage = stages.at(-1);
  if (stage === undefined) throw new Error(`${dockerfile} has no stage`);
  const own = join(top, stage.name);
  const folder = onlyStep(stage, 'WORKDIR');
  if (onlyStep(stage, 'USER') !== 'node') throw new Error('the image is to run as the user of the images of Node');
  const user = isRoot
    ? `setpriv --reuid ${userId} --regid ${userId} --clear-groups --bounding-set=-all --no-new-privs`
    : `unshare --user --map-user=${userId} --map-group=${userId}`;
  return {
    stage,
    folder,
    size: (path) => sizeOf(join(own, 'root', folder, path)),
    command: (program) => ({
      command: 'unshare',
      args: [...namespaces, 'sh', '-ec', `${mounts(own, true)} ${enter(own, folder, user)}`, 'sh', ...program],
    }),
  };
}

async function carryOut(stage: Stage, top: string, context: string): Promise<void> {
  const own = join(top, stage.name);
  let folder = '/';
  for (const { instruction, text } of stage.steps) {
    if (instruction === 'WORKDIR') {
      folder = text;
      mkdirSync(join(own, 'root', folder), { recursive: true });
    } else if (instruction === 'COPY') {
      const [, stageName, paths = ''] = /^(?:--from=(\S+) )?(.*)$/.exec(text) ?? [];
      const sources = paths.split(' ');
      const target = join(own, 'root', resolve(folder, sources.pop() ?? ''));
      const from = stageName === undefined ? context : join(top, stageName, 'root');
      for (const source of sources.map((each) => join(from, each))) {
        const isFolder = statSync(source).isDirectory();
        cpSync(source, isFolder ? target : join(target, basename(source)), { recursive: true, verbatimSymlinks: true });
      }
    } else if (instruction === 'RUN' && !text.startsWith('apt-get ')) {
      // This machine has the packages that apt-get would install.
      const script = `${mounts(own, false)} ${enter(own, folder)}`;
      await run('unshare', [...namespaces, 'sh', '-ec', script, 'sh', '/bin/sh', '-c', text], {
        env: { PATH: process.env.PATH, ...npmSettings(), ...variablesOf(stage), HOME: '/root' },
        maxBuffer: 2 ** 26,
      });
    }
  }
}

/** The folders of a stage: its root, and what it changes of the machine's folders. */
function makeRoot(own: string): void {
  for (const name of ['tmp', 'proc', 'dev', 'root', ...baseFolders])
    mkdirSync(join(own, 'root', name), { recursive: true });
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    if (lstatSync(`/${name}`, { throwIfNoEntry: false })?.isSymbolicLink() === true) {
      symlinkSync(readlinkSync(`/${name}`), join(own, 'root', name));
    }
  }
  for (const name of baseFolders) {
    mkdirSync(join(own, name));
    mkdirSync(join(own, `${name}.work`));
  }
  // Where the images of Node have it.
  mkdirSync(join(own, 'usr/local/bin'), { recursive: true });
  cpSync(realpathSync(process.execPath), join(own, 'usr/local/bin/node'));
}

/** The commands that lay the machine's folders below a root; then nothing can be written to, if it is to be read-only. */
function mounts(own: string, isReadOnly: boolean): string {
  const root = join(own, 'root');
  const options = isRoot ? '' : 'userxattr,';
  return [
    `mount --bind ${root} ${root}`,
    ...baseFolders.map(
      (name) =>
        `mount -t overlay -o ${options}lowerdir=/${name},upperdir=${own}/${name},workdir=${own}/${name}.work overlay ${root}/${name}`,
    ),
    `mount -t proc proc ${root}/proc`,
    ...['null', 'zero', 'random', 'urandom'].flatMap((name) => [
      `touch ${root}/dev/${name}`,
      `mount --bind /dev/${name} ${root}/dev/${name}`,
    ]),
    ...(isReadOnly ? baseFolders.map((name) => `mount -o remount,ro ${root}/${name}`) : []),
    ...(isReadOnly ? [`mount -o remount,bind,ro ${root}`] : []),
    '',
  ].join('; ');
}

/** The command that runs what follows in a root. */
function enter(own: string, folder: string, user = ''): string {
  return `exec chroot ${own}/root /bin/sh -ec 'cd ${folder}; exec ${user} "$@"' sh "$@"`;
}

/** npm's settings of this machine, such as its registry. The packages it has loaded before are loaded again. */
function npmSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('npm_config_')));
}

function sizeOf(path: string): number {
  if (!lstatSync(path).isDirectory()) return lstatSync(path).size;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}
