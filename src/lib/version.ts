import { readFileSync } from 'node:fs';

const packageFile = new URL('../../package.json', import.meta.url);

/** Which version of the gateway this is. */
export const version = (JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }).version;
