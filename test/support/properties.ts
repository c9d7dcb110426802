import fc from 'fast-check';
import { patient } from './patience.ts';

/**
 * How long a property may take with its shrinking; then it ends with the smallest sample so far. None needs more than 2 s
 * on a quiet machine, so one that is still passing by then fails too: it has not shown what it is to show.
 */
const longestMs = Math.min(patient(15_000), 90_000);
/** A shorter bound for all, for runs that are expected to fail. */
const maxMs = Number(process.env.MARINA_TEST_BOUND_MS ?? Number.POSITIVE_INFINITY);

fc.configureGlobal({ interruptAfterTimeLimit: Math.min(longestMs, maxMs), markInterruptAsFailure: true });

export { fc };
