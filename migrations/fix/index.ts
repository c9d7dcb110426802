import { Guards1763710000000 } from '../1763710000000-guards.ts';
import { Writer1764070010000 } from '../1764070010000-writer.ts';
import { Fix1764100010000 } from './1764100010000-fix.ts';

/** The migrations of the FIX adapter's database, oldest first. A migration that was released never changes. */
export const fixMigrations = [Guards1763710000000, Writer1764070010000, Fix1764100010000];
