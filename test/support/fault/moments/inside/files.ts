import { syncBuiltinESMExports } from 'node:module';
import { basename } from 'node:path';
import { endAfter, type Watch } from './watch.ts';

interface Handle {
  sync(): Promise<void>;
}

/** The functions of node:fs/promises that are wrapped. */
export interface Files {
  open(...given: unknown[]): Promise<Handle>;
  rename(...given: unknown[]): Promise<void>;
  link(...given: unknown[]): Promise<void>;
}

/** Watches new files, the names that they get, and each order to the disk to keep them. One that is refused meets a broken disk. */
export function watchFiles(files: Files, watch: Watch): void {
  const { open, rename, link } = files;
  files.open = async (...given) => {
    const [path, flags] = given;
    const opening = () => open(...given);
    const handle = await (flags === 'wx' ? atMoment(watch, `create ${nameOf(path)}`, opening) : opening());
    const sync = handle.sync.bind(handle);
    handle.sync = () => atMoment(watch, `sync ${nameOf(path)}`, sync);
    return handle;
  };
  files.rename = (...given) => atMoment(watch, `rename ${nameOf(given[1])}`, () => rename(...given));
  files.link = (...given) => atMoment(watch, `link ${nameOf(given[1])}`, () => link(...given));
  // For modules that import them by name.
  syncBuiltinESMExports();
}

async function atMoment<T>(watch: Watch, label: string, work: () => Promise<T>): Promise<T> {
  const fate = watch.meet('file', label);
  if (fate === 'refused') throw Object.assign(new Error('EIO: refused by a test'), { code: 'EIO' });
  const done = await work();
  endAfter(fate);
  return done;
}

/** A file's name, without what differs from run to run. */
function nameOf(path: unknown): string {
  const name = basename(String(path));
  if (name.startsWith('.writing-')) return '.writing';
  return name.replace(/^\d{4}-\d\d-\d\d$/, 'day').replace(/^\d{4}-\d\d$/, 'month');
}
