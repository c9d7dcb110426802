import { createLogger } from '../../src/kit/log.ts';

/** A log that nobody reads. */
export const silentLog = createLogger({ name: 'test', level: 'silent' });
