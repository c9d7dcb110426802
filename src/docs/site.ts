import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Page, Pages } from '../transport/rest/pages.ts';
import type { Content, SiteOptions } from './contents.ts';

const compress = promisify(gzip);

/** No script, style or image but our own, no other host, no frame, no form. */
const securityHeaders = [
  'Content-Security-Policy',
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options',
  'nosniff',
  'Referrer-Policy',
  'no-referrer',
];

/**
 * `/openapi.json`, and the pages below `/docs`. Each is made when it is first asked for, and kept: there are as many as
 * there are names of them. Nothing of it is loaded before.
 */
export class Site implements Pages {
  readonly #pages = new Map<string, Promise<Page>>();
  #contents: Promise<ReadonlyMap<string, () => Content>> | undefined;

  constructor(private readonly options: SiteOptions) {}

  readonly paths = /^\/(?:openapi\.json$|docs(?:\/|$))/;

  async find(path: string): Promise<Page | undefined> {
    const known = this.#pages.get(path);
    if (known !== undefined) return known;
    this.#contents ??= forgetting(this.#load(), () => {
      this.#contents = undefined;
    });
    const make = (await this.#contents).get(path);
    if (make === undefined) return undefined;
    const made = this.#pages.get(path) ?? forgetting(finish(make), () => this.#pages.delete(path));
    this.#pages.set(path, made);
    return made;
  }

  async #load(): Promise<ReadonlyMap<string, () => Content>> {
    const { siteContents } = await import('./contents.ts');
    return siteContents(this.options);
  }
}

async function finish(make: () => Content): Promise<Page> {
  const { contentType, text } = make();
  const body = Buffer.from(text);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { contentType, body, gzipped: await compress(body), etag, headers: securityHeaders };
}

/** What failed is not kept: the next request tries again. */
function forgetting<T>(made: Promise<T>, forget: () => void): Promise<T> {
  made.catch(forget);
  return made;
}
