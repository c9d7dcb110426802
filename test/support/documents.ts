import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { StatusSchema } from '../../src/gen/google/rpc/status_pb.ts';
import { Applications } from '../../src/gen/marina/gateway/v1/applications_pb.ts';
import {
  DocumentSchema,
  type DocumentType,
  DocumentTypeSchema,
  SendDocumentRequestSchema,
} from '../../src/gen/marina/gateway/v1/documents_pb.ts';
import { ErrorSchema } from '../../src/gen/marina/gateway/v1/errors_pb.ts';
import { enumWords } from '../../src/kit/enums.ts';
import { assertDescribed } from './described.ts';
import { patient } from './patience.ts';

/** The fields of an application that the broker accepts. */
export const goodFields = {
  first_name: 'Adaeze',
  last_name: 'Okafor',
  date_of_birth: '1990-02-28',
  gender: 'female',
  email: 'adaeze@example.com',
  phone: '+2348012345678',
  address: '12 Marina Road',
  city: 'Lagos',
  state: 'LAGOS',
  state_of_origin: 'LAGOS',
  lga_of_origin: 'LAGOS-IKEJA',
  bvn: '12345678901',
  next_of_kin_name: 'Chidi Okafor',
  next_of_kin_phone: '+2348087654321',
  next_of_kin_relationship: 'brother',
};

export const fourTypes = ['photo', 'government_id', 'utility_bill', 'signature'] as const;

/** The outcome of sending a document, whatever the protocol. */
export interface Sent {
  /** `delivered`, or the error's code; undefined when no answer came. */
  readonly outcome: string | undefined;
  /** The HTTP status, over REST. */
  readonly status?: number;
  readonly retryAfter?: string;
  readonly document?: { readonly application: string; readonly type: string };
}

export interface ToSend {
  readonly key: string;
  readonly id: string;
  readonly type: string;
  readonly file: Buffer;
  readonly contentType?: string;
}

export type SendDocument = (wanted: ToSend) => Promise<Sent>;

/** Sends documents over REST. */
export function overRest(restPort: number): SendDocument {
  return async ({ key, id, type, file, contentType = mediaTypeOf(file) }) => {
    let response: Response;
    try {
      response = await fetch(`http://127.0.0.1:${restPort}/v1/applications/${id}/documents/${type}`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${key}`, 'content-type': contentType },
        body: file,
        signal: AbortSignal.timeout(patient(30_000)),
      });
    } catch {
      return { outcome: undefined };
    }
    const text = await response.text();
    const header = (name: string) => response.headers.get(name) ?? undefined;
    const path = `/v1/applications/${id}/documents/${type}`;
    assertDescribed({ method: 'PUT', path, status: response.status, header, text });
    const body = JSON.parse(text) as { state?: string; error?: { code: string } };
    return {
      outcome: body.error?.code ?? body.state,
      status: response.status,
      retryAfter: response.headers.get('retry-after') ?? undefined,
      document: body.error === undefined ? (body as Sent['document']) : undefined,
    };
  };
}

const typeWords = enumWords<typeof DocumentType>(DocumentTypeSchema);

/** Sends documents over gRPC. */
export function overGrpc(grpcPort: number): SendDocument {
  return async ({ key, id, type, file, contentType = mediaTypeOf(file) }) => {
    const client = new Client(`127.0.0.1:${grpcPort}`, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
    });
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${key}`);
    const known = (fourTypes as readonly string[]).includes(type);
    const request = create(SendDocumentRequestSchema, {
      id,
      type: known ? typeWords.value(type) : (99 as DocumentType),
      contentType,
      content: file,
    });
    const bytes = Buffer.from(toBinary(SendDocumentRequestSchema, request));
    const { sendDocument } = Applications.method;
    return new Promise((resolve) => {
      client.makeUnaryRequest(
        `/${Applications.typeName}/${sendDocument.name}`,
        (each: Buffer) => each,
        (each: Buffer) => each,
        bytes,
        metadata,
        { deadline: Date.now() + 30_000 },
        (error, answer) => {
          client.close();
          if (error !== null) return resolve({ outcome: codeOf(error) });
          const document = fromBinary(DocumentSchema, answer ?? Buffer.alloc(0));
          const { application, type: number } = document;
          resolve({ outcome: 'delivered', document: { application, type: typeWords.word(number) } });
        },
      );
    });
  };
}

function codeOf({ metadata }: ServiceError): string | undefined {
  const [rich] = metadata.get('grpc-status-details-bin');
  if (rich === undefined) return undefined;
  const details = fromBinary(StatusSchema, rich as Buffer).details;
  return details.map((each) => anyUnpack(each, ErrorSchema)).find((each) => each !== undefined)?.code;
}

function mediaTypeOf(file: Buffer): string {
  return file[0] === 0xff ? 'image/jpeg' : 'image/png';
}

/** Something that can be asked over REST. */
type Ask = (
  method: string,
  path: string,
  request: { key: string; idempotencyKey?: string; body?: unknown },
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers freely, and fails on what is not there.
) => Promise<{ readonly status: number | undefined; readonly body: any }>;

/** Makes an application, and returns its id. */
export async function apply(ask: Ask, key: string, fields: Partial<typeof goodFields> = {}): Promise<string> {
  const answer = await ask('POST', '/v1/applications', {
    key,
    idempotencyKey: randomUUID(),
    body: { ...goodFields, ...fields },
  });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  assert.equal(answer.body.state, 'documents_required');
  return answer.body.id;
}
