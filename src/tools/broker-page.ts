/** Writes docs/BROKER-REFERENCE.md to standard output. */
import { brokerReference } from './broker-reference.ts';

process.stdout.write(brokerReference());
