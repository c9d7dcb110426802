import { existsSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A program for Node to run, and what it must be able to read. */
export interface DecoderProgram {
  /** Arguments of Node. */
  readonly args: readonly string[];
  readonly folder: string;
  /** Files and folders. */
  readonly reads: readonly string[];
}

const here = dirname(fileURLToPath(import.meta.url));
/** `.js` in a gateway that was built. */
const extension = extname(import.meta.url);
const entry = join(here, `checker-process${extension}`);
/** The folder of the gateway's code, and the file that tells Node that it is made of modules. */
const sources = join(here, '../..');
const packageFile = join(sources, '../package.json');

/** What Node itself reads when it starts, on the systems that have it. */
const systemReads = [
  ...['/lib', '/lib64', '/usr/lib', '/usr/lib64', '/usr/local/lib', '/etc/ld.so.cache'],
  ...['/etc/ssl/openssl.cnf', '/etc/pki/tls/openssl.cnf', '/sys/devices/system/cpu/online'],
];

/** The program that decodes images. */
export async function decoderProgram(): Promise<DecoderProgram> {
  const packages = packagesFolder();
  const root = dirname(packages);
  if (extension === '.js') {
    return { args: [entry], folder: root, reads: [sources, packages, packageFile] };
  }
  // What runs TypeScript starts processes of its own and writes files, which a decoder may not. So it is translated here.
  const { build } = await import('esbuild');
  const built = await build({
    entryPoints: [entry],
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    write: false,
    logLevel: 'silent',
  });
  return {
    args: ['--input-type=module', '--eval', built.outputFiles[0]?.text ?? ''],
    folder: root,
    reads: [packages, packageFile],
  };
}

/** What a program must be able to read to run in Node: its own files, Node, and the system's libraries. */
export function readsOf({ reads }: DecoderProgram): string[] {
  return [...systemReads, realpathSync(process.execPath), ...reads].filter((path) => existsSync(path));
}

function packagesFolder(): string {
  const name = 'node_modules';
  const sharp = createRequire(import.meta.url).resolve('sharp');
  return sharp.slice(0, sharp.lastIndexOf(`/${name}/`) + name.length + 1);
}
