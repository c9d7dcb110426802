/** Writes what the clients are made of the contract: `node --import tsx src/tools/clients.ts`. */
import { writeFileSync } from 'node:fs';
import { clientFiles } from './clients/files.ts';

for (const { path, text } of clientFiles()) writeFileSync(path, text);
