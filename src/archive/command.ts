import { parseArgs } from 'node:util';
import { openForReading } from '../db/database.ts';
import { archive, verify } from './archive.ts';
import { ArchiveError } from './files.ts';

const usage = `usage: node src/main.js archive write FOLDER [--months N]
       node src/main.js archive verify FOLDER

write   writes every month that ended N months ago or earlier (13; at least 2), and every day whose webhooks are over, to
        files in FOLDER, unless they are there. It uses the database of MARINA_DATABASE_URL.
verify  compares the files in FOLDER with their manifests. It needs no database.`;

const months = { usual: 13, least: 2 };

/** Runs `archive …`. Answers the exit code: 0, 1 if it failed, 2 if it was called wrongly. */
export async function archiveCommand(args: string[], databaseUrl: () => string): Promise<number> {
  const call = readCall(args);
  if (call === undefined) {
    console.error(usage);
    return 2;
  }
  try {
    if (call.verb === 'verify') await verify(call.folder, console.log);
    else await write(databaseUrl(), call.folder, call.months);
    return 0;
  } catch (error) {
    console.error(error instanceof ArchiveError ? error.message : error);
    return 1;
  }
}

async function write(url: string, folder: string, after: number): Promise<void> {
  const database = await openForReading(url);
  try {
    await archive({ database, folder, months: after, print: console.log });
  } finally {
    await database.close();
  }
}

function readCall(args: string[]): { verb: 'write' | 'verify'; folder: string; months: number } | undefined {
  try {
    const { positionals, values } = parseArgs({
      args,
      allowPositionals: true,
      options: { months: { type: 'string', default: String(months.usual) } },
    });
    const [verb, folder, ...more] = positionals;
    if ((verb !== 'write' && verb !== 'verify') || folder === undefined || more.length > 0) return undefined;
    if (!/^\d{1,4}$/.test(values.months) || Number(values.months) < months.least) return undefined;
    return { verb, folder, months: Number(values.months) };
  } catch {
    return undefined; // An option that it does not know.
  }
}
