import fc from 'fast-check';

/**
 * How long a property may take with its shrinking: then it ends with the smallest sample so far. It is half of what a test
 * file has. Properties need less than 5 s, so one that is not done by then fails: it has not shown what it is to show.
 */
const longestMs = 60_000;
/** A shorter bound for all, for runs that are expected to fail. */
const mostMs = Number(process.env.MARINA_TEST_BOUND_MS ?? Number.POSITIVE_INFINITY);

fc.configureGlobal({ interruptAfterTimeLimit: Math.min(longestMs, mostMs), markInterruptAsFailure: true });

export { fc };
