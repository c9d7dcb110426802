import { parseArgs } from 'node:util';
import type { Reached } from '../../store/data-source.ts';
import { openForReading } from '../../store/database.ts';
import { archive } from './archive.ts';
import { ArchiveError } from './files.ts';
import { verify } from './folder.ts';

const usage = `usage: node src/main.js archive write FOLDER [--months N] [--accept-lost]
       node src/main.js archive verify FOLDER

write   writes every month that ended N months ago or earlier (13; at least 2), and every day whose webhooks are over, to
        files in FOLDER, unless they are there. It uses the database of MARINA_DATABASE_URL. If months are missing that it
        wrote before, it writes days only; with --accept-lost also these months, without the steps that left the database.
verify  compares the files in FOLDER with their manifests. It needs no database.`;

const monthsKept = { usual: 13, least: 2 };

/** Runs `archive …`. Answers the exit code: 0, 1 if it failed, 2 if it was called wrongly. */
export async function archiveCommand(args: string[], reach: () => Promise<Reached>): Promise<number> {
  const call = readCall(args);
  if (call === undefined) {
    console.error(usage);
    return 2;
  }
  try {
    if (call.verb === 'verify') await verify(call.folder, console.log);
    else await write(await reach(), call);
    return 0;
  } catch (error) {
    console.error(error instanceof ArchiveError ? error.message : error);
    return 1;
  }
}

async function write(reached: Reached, { folder, months, acceptLost }: Call): Promise<void> {
  const database = await openForReading(reached);
  try {
    await archive({ database, folder, months, acceptLost, print: console.log });
  } finally {
    await database.close();
  }
}

interface Call {
  readonly verb: 'write' | 'verify';
  readonly folder: string;
  readonly months: number;
  readonly acceptLost: boolean;
}

function readCall(args: string[]): Call | undefined {
  try {
    const { positionals, values } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        months: { type: 'string', default: String(monthsKept.usual) },
        'accept-lost': { type: 'boolean', default: false },
      },
    });
    const [verb, folder, ...more] = positionals;
    if ((verb !== 'write' && verb !== 'verify') || folder === undefined || more.length > 0) return undefined;
    if (!/^\d{1,4}$/.test(values.months) || Number(values.months) < monthsKept.least) return undefined;
    return { verb, folder, months: Number(values.months), acceptLost: values['accept-lost'] };
  } catch {
    return undefined; // An option that it does not know.
  }
}
