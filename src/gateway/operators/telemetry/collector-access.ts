import { type Link, type LinkTls, type LinkTlsConfig, openLink, secretValue } from '../../../kit/link.ts';
import type { Logger } from '../../../kit/log.ts';
import type { Secret } from '../../../kit/settings.ts';

/** What connecting to the collector needs. */
export interface CollectorAccess {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: LinkTls | undefined;
}

/** Reads what connecting needs, and reads it again when its files change. */
export function openCollectorAccess(
  headers: Secret<Readonly<Record<string, string>>>,
  tls: LinkTlsConfig,
  log: Logger,
): Promise<Link<CollectorAccess>> {
  return openLink({
    name: 'otlp',
    tls,
    secrets: { headers: headers.file },
    make: (texts, material) => ({ headers: secretValue(headers, texts.headers), tls: material }),
    log,
  });
}
