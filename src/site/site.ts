import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { ApiError } from '../gateway/edge/errors.ts';
import type { Answer, HttpRequest } from '../gateway/edge/http/messages.ts';
import type { HttpProtocol } from '../gateway/edge/http/server.ts';
import { errorAnswer } from '../gateway/edge/rest/protocol.ts';
import type { Content, SiteOptions } from './contents.ts';
import { missingPath } from './missing.ts';

const compress = promisify(gzip);

/** No script, style or image but our own, no other host, no frame, no form. */
const securityHeaders = [
  'Content-Security-Policy',
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy',
  'no-referrer',
];

const noBody = Buffer.alloc(0);

/** A document that is the same for everyone. */
interface Page {
  readonly contentType: string;
  readonly body: Buffer;
  /** The same, compressed. */
  readonly gzipped: Buffer;
  /** Changes with the document, as the `ETag` header has it. */
  readonly etag: string;
}

/**
 * `/openapi.json`, the pages below `/docs`, and the way there from `/`. Each is made when it is first asked for, and kept: there are as many as
 * there are names of them. Nothing of it is loaded before. They need no key. A client may keep one, and asks whether it
 * changed.
 */
export class Site implements HttpProtocol {
  readonly name = 'rest';
  readonly paths = /^\/(?:$|openapi\.json$|docs(?:\/|$))/;
  readonly #pages = new Map<string, Promise<Page>>();
  #contents: Promise<ReadonlyMap<string, () => Content>> | undefined;

  constructor(private readonly options: SiteOptions) {}

  /** The document at a path, made when it is first asked for. */
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

  async answer(request: HttpRequest): Promise<Answer> {
    if (request.path === '/') return this.#lead(request);
    const page = await this.find(request.path);
    if (page === undefined) return this.#missing(request);
    if (request.method !== 'GET') throw new ApiError('method_not_allowed', { allow: ['GET'] });
    request.passOver();
    const { headers: asked } = request.exchange.request;
    const head = {
      contentType: page.contentType,
      cacheControl: 'no-cache',
      headers: [...securityHeaders, 'ETag', page.etag, 'Vary', 'Accept-Encoding'],
    };
    if (hasTag(asked['if-none-match'], page.etag)) return { ...head, status: 304, body: noBody };
    if (!takesGzip(asked['accept-encoding'])) return { ...head, status: 200, body: page.body };
    return { ...head, headers: [...head.headers, 'Content-Encoding', 'gzip'], status: 200, body: page.gzipped };
  }

  /** A browser that is given no path is led to the pages. For programs there is nothing. */
  #lead(request: HttpRequest): Answer {
    if (!isForReading(request)) throw new ApiError('not_found');
    request.passOver();
    return this.#redirect('/docs');
  }

  /** A browser is led from `/docs/limits/` to `/docs/limits`, and shown a page where there is none. Programs get the error. */
  async #missing(request: HttpRequest): Promise<Answer> {
    if (!isForReading(request)) throw new ApiError('not_found');
    const bare = request.path.endsWith('/') ? request.path.slice(0, -1) : request.path;
    const [page, missing] = await Promise.all([this.find(bare), this.find(missingPath)]);
    if (missing === undefined) throw new ApiError('not_found');
    request.passOver();
    if (page !== undefined) return this.#redirect(bare);
    const { contentType, body } = missing;
    return { status: 404, headers: securityHeaders, contentType, cacheControl: 'no-cache', body };
  }

  #redirect(path: string): Answer {
    const location = `${this.options.baseUrl()}${path}`;
    return { status: 302, headers: ['Location', location], contentType: 'text/plain', body: noBody };
  }

  refusal(error: ApiError): Answer {
    return errorAnswer(error, this.options.baseUrl());
  }

  unknownMethod(): ApiError {
    return new ApiError('method_not_allowed', { allow: ['GET'] });
  }

  async #load(): Promise<ReadonlyMap<string, () => Content>> {
    const { siteContents } = await import('./contents.ts');
    return siteContents(this.options);
  }
}

async function finish(make: () => Content): Promise<Page> {
  const { contentType, body: made } = make();
  const body = Buffer.from(made);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { contentType, body, gzipped: await compress(body), etag };
}

/** Whether a person reads the answer in a browser. */
function isForReading(request: HttpRequest): boolean {
  return request.method === 'GET' && (request.exchange.request.headers.accept ?? '').includes('text/html');
}

/** A failed promise is not kept: the next request tries again. */
function forgetting<T>(made: Promise<T>, forget: () => void): Promise<T> {
  made.catch(forget);
  return made;
}

function hasTag(wanted: string | undefined, etag: string): boolean {
  return wanted?.split(',').some((each) => each.trim().replace(/^W\//, '') === etag) ?? false;
}

function takesGzip(encodings: string | string[] | undefined): boolean {
  return String(encodings ?? '')
    .split(',')
    .some((each) => /^\s*(?:gzip|\*)\s*(?:;\s*q=(?:0\.0*[1-9]\d*|0\.[1-9]\d*|1(?:\.0*)?)\s*)?$/i.test(each));
}
