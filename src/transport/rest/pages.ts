import { ApiError } from '../../lib/errors.ts';
import type { Answer, HttpRequest } from '../http/messages.ts';
import type { HttpProtocol } from '../http/server.ts';
import { errorAnswer } from './protocol.ts';

/** A document that is the same for everyone. */
export interface Page {
  readonly contentType: string;
  readonly body: Buffer;
  /** The same, compressed. */
  readonly gzipped: Buffer;
  /** Changes with the document, as the `ETag` header has it. */
  readonly etag: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

/** The documents there are. */
export interface Pages {
  /** The paths of these, served or not. */
  readonly paths: RegExp;
  /** The document at a path, made when it is first asked for. */
  find(path: string): Promise<Page | undefined>;
}

/** Serves documents that need no key. A client may keep one, and asks whether it changed. */
export class PagesProtocol implements HttpProtocol {
  readonly name = 'rest';
  readonly paths: RegExp;

  constructor(
    private readonly pages: Pages,
    /** Where partners reach us, for links to the documentation: known once the port is open. */
    private readonly address: { readonly baseUrl: string },
  ) {
    this.paths = pages.paths;
  }

  async answer(request: HttpRequest): Promise<Answer> {
    const page = await this.pages.find(request.path);
    if (page === undefined) throw new ApiError('not_found');
    if (request.method !== 'GET') throw new ApiError('method_not_allowed', { allow: ['GET'] });
    request.passOver();
    const { headers: asked } = request.exchange.request;
    const head = {
      contentType: page.contentType,
      cacheControl: 'no-cache',
      headers: [...page.headers, 'ETag', page.etag, 'Vary', 'Accept-Encoding'],
    };
    if (hasTag(asked['if-none-match'], page.etag)) return { ...head, status: 304, body: '' };
    if (!takesGzip(asked['accept-encoding'])) return { ...head, status: 200, body: page.body };
    return { ...head, headers: [...head.headers, 'Content-Encoding', 'gzip'], status: 200, body: page.gzipped };
  }

  refusal(error: ApiError): Answer {
    return errorAnswer(error, this.address.baseUrl);
  }

  unknownMethod(): ApiError {
    return new ApiError('method_not_allowed', { allow: ['GET'] });
  }
}

function hasTag(wanted: string | undefined, etag: string): boolean {
  return wanted?.split(',').some((each) => each.trim().replace(/^W\//, '') === etag) ?? false;
}

function takesGzip(encodings: string | string[] | undefined): boolean {
  return String(encodings ?? '')
    .split(',')
    .some((each) => /^\s*(?:gzip|\*)\s*(?:;\s*q=(?:0\.0*[1-9]\d*|0\.[1-9]\d*|1(?:\.0*)?)\s*)?$/i.test(each));
}
