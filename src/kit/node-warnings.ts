import type { Logger } from './log.ts';

/**
 * The name that TLS is given for a server is an IP address. grpc-js does that if the address of the broker is one. Nobody
 * needs to act, because the certificate is checked all the same.
 */
const addressAsName = 'DEP0123';

/** Logs Node's warnings, but for `DEP0123`. Node itself would write them to standard error, and block if nobody reads it. */
export function logNodeWarnings(log: Logger): void {
  process.removeAllListeners('warning').on('warning', (warning: Error & { readonly code?: string }) => {
    if (warning.code !== addressAsName) log.warn({ err: warning }, 'a warning of Node');
  });
}
