/** Writes docs/operations/calls.md to standard output. */
import { operatorReference } from './operator-reference.ts';

process.stdout.write(await operatorReference());
