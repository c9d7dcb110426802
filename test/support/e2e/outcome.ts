import assert from 'node:assert/strict';
import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { compileEncoder } from '../../../src/gateway/edge/json/encoder.ts';
import { StatusSchema } from '../../../src/gen/google/rpc/status_pb.ts';
import { type Error as ErrorDetail, ErrorSchema } from '../../../src/gen/marina/gateway/v1/errors_pb.ts';
import { type Call, operations } from './calls.ts';
import { type ConnectProtocol, fromConnect } from './connect-form.ts';
import type { Protocol, Protocols } from './protocols.ts';

/** The outcome of a call, in one form for all protocols. */
export interface Outcome {
  /** The answer as REST writes it, letter by letter. */
  readonly answer?: string;
  readonly error?: {
    readonly type: string;
    readonly code: string;
    readonly message: string;
    readonly doc_url: string;
    readonly param: string | undefined;
    readonly reject_reason: string | undefined;
    readonly retryAfterSeconds: number | undefined;
  };
  readonly location: string | undefined;
  readonly replayed: string | undefined;
}

/** Makes a call through a protocol. */
export function outcomeOf(protocols: Protocols, protocol: Protocol, call: Call): Promise<Outcome> {
  if (protocol === 'REST') return overRest(protocols, call);
  return protocol === 'gRPC' ? overGrpc(protocols, call) : overConnect(protocols, protocol, call);
}

async function overRest(protocols: Protocols, call: Call): Promise<Outcome> {
  const { status, headers, text } = await protocols.rest(call);
  const header = (name: string) => headers.get(name)?.[0];
  const ofHeaders = { location: header('location'), replayed: header('idempotent-replayed') };
  if (status < 300) return { answer: text, ...ofHeaders };
  const { type, code, message, doc_url, param, reject_reason } = JSON.parse(text).error;
  const retry = header('retry-after');
  const retryAfterSeconds = retry === undefined ? undefined : Number(retry);
  return { error: { type, code, message, doc_url, param, reject_reason, retryAfterSeconds }, ...ofHeaders };
}

async function overGrpc(protocols: Protocols, call: Call): Promise<Outcome> {
  const { code, bytes, metadata } = await protocols.grpc(call);
  const value = (name: string) => metadata.get(name)[0]?.toString();
  const ofHeaders = { location: value('location'), replayed: value('idempotent-replayed') };
  const { output } = operations[call.operation].rpc;
  if (code === 0) return { answer: compileEncoder(output)(fromBinary(output, bytes ?? Buffer.alloc(0))), ...ofHeaders };
  const [packed] = fromBinary(StatusSchema, metadata.get('grpc-status-details-bin')[0] as Buffer).details;
  return { error: toError(packed && anyUnpack(packed, ErrorSchema)), ...ofHeaders };
}

async function overConnect(protocols: Protocols, protocol: ConnectProtocol, call: Call): Promise<Outcome> {
  const answer = await protocols.connect(protocol, call);
  const header = (name: string) => answer.headers.get(name)?.[0];
  const ofHeaders = { location: header('location'), replayed: header('idempotent-replayed') };
  const { output } = operations[call.operation].rpc;
  if (answer.status === 200)
    return { answer: compileEncoder(output)(fromConnect(protocol, call, answer)), ...ofHeaders };
  const [detail] = JSON.parse(answer.text).details;
  return { error: toError(fromBinary(ErrorSchema, Buffer.from(detail.value, 'base64'))), ...ofHeaders };
}

function toError(detail: ErrorDetail | undefined): Outcome['error'] {
  assert.ok(detail, 'the error has a typed detail');
  const { type, code, message, docUrl, param, rejectReason, retryAfterSeconds } = detail;
  return { type, code, message, doc_url: docUrl, param, reject_reason: rejectReason, retryAfterSeconds };
}
