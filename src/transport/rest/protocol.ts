import type { ReceivedFile } from '../../auth/call.ts';
import { ApiError, docUrl, refusalOf } from '../../lib/errors.ts';
import { checkFileType, type FileBody, fileTooLarge, wholeFile } from '../file-body.ts';
import { type Answer, errorHeaders, replyHeaders } from '../http/answer.ts';
import type { HttpRequest } from '../http/request.ts';
import type { HttpProtocol } from '../http/server.ts';
import { readIdempotencyKey } from '../operations.ts';
import type { ProtocolOptions } from '../pipeline.ts';
import type { RequestContext } from '../request.ts';
import { Routes } from './routes.ts';

const token = "[!#$%&'*+.^_`|~0-9a-z-]{1,64}";
const charset = 'charset=(?:utf-8|"utf-8")';
const other = `(?!charset=)${token}=(?:${token}|"[^"\\\\]{0,64}")`;
/** JSON, with any parameters but another charset; a parameter may be empty. */
const json = new RegExp(`^application/json(?:[ \\t]*;(?:[ \\t]*(?:${charset}|${other}))?){0,8}[ \\t]*$`, 'i');

/** Takes the requests of REST through the pipeline. */
export class RestProtocol implements HttpProtocol {
  readonly name = 'rest';
  readonly #options: ProtocolOptions;
  readonly #routes: Routes;

  constructor(options: ProtocolOptions) {
    this.#options = options;
    this.#routes = new Routes(options.operations);
  }

  /** The decided order of checks, as far as it is HTTP's. */
  async answer(request: HttpRequest, context: RequestContext): Promise<Answer> {
    const { pipeline } = this.#options;
    const { operation, route, pathTexts } = await pipeline.admit(context, request, () =>
      this.#routes.find(request.method, request.path),
    );
    const message = route.readTarget(pathTexts, request.query);
    const idempotencyKey = readIdempotencyKey(operation, request.idempotencyKeys);
    const { file } = operation;
    if (route.decode !== undefined) {
      checkMediaType(request);
      route.decode(await request.readBody(), message);
    } else if (file === undefined) {
      request.passOver();
    }
    const receive = file && (() => receiveBody(file, request));
    const reply = await pipeline.call(context, message, idempotencyKey, receive);
    const status = reply.location === undefined ? 200 : 201;
    return { status, headers: replyHeaders(reply), body: route.encode(reply.message) };
  }

  refusal(error: ApiError): Answer {
    return errorAnswer(error, this.#options.baseUrl);
  }

  unknownMethod(path: string): ApiError {
    return refusalOf(() => this.#routes.find('', path));
  }
}

/** The one place where an error of the catalogue becomes HTTP. */
export function errorAnswer(error: ApiError, baseUrl: string): Answer {
  const { status, type, code, message, param, rejectReason } = error;
  const body = JSON.stringify({
    error: { type, code, message, doc_url: docUrl(baseUrl, code), param, reject_reason: rejectReason },
  });
  return { status, headers: errorHeaders(error), body };
}

/** Refuses a body that is not JSON in UTF-8 as it stands. */
function checkMediaType({ contentType, isEncoded }: HttpRequest): void {
  if (isEncoded || contentType === undefined) throw new ApiError('unsupported_media_type');
  if (contentType !== 'application/json' && !json.test(contentType)) throw new ApiError('unsupported_media_type');
}

/** Receives a file that is the body. */
async function receiveBody(file: FileBody, request: HttpRequest): Promise<ReceivedFile> {
  const mediaType = checkFileType(file, request.isEncoded ? undefined : request.contentType);
  const content = await request.readBody({ maxBytes: file.maxBytes, tooLarge: () => fileTooLarge(file) });
  return wholeFile(file, mediaType, content);
}
