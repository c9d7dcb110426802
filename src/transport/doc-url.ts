import type { ErrorCode } from '../lib/errors.ts';

/** Where an error code is described. */
export function docUrl(baseUrl: string, code: ErrorCode): string {
  return `${baseUrl.replace(/\/+$/, '')}/docs/errors#${code}`;
}
