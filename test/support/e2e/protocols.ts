import assert from 'node:assert/strict';
import { fromBinary } from '@bufbuild/protobuf';
import { Metadata } from '@grpc/grpc-js';
import { assertDescribed } from '../described.ts';
import type { TestGateway } from '../gateway.ts';
import { assertConnectRefusal } from './assert-connect.ts';
import { assertGrpcRefusal } from './assert-grpc.ts';
import { assertHeaders, assertRestRefusal } from './assert-rest.ts';
import { type Call, operations, toJson } from './calls.ts';
import { type ConnectProtocol, contentTypeOf, fromConnect, hasJson, toConnect } from './connect-form.ts';
import { type GrpcAnswer, GrpcWire } from './grpc-wire.ts';
import { toMessage, toProtobuf } from './protobuf-form.ts';
import type { Refusal } from './refusals.ts';
import { sendRaw, type WireAnswer, type WireRequest } from './wire.ts';

export type Protocol = 'REST' | 'gRPC' | ConnectProtocol;
export const protocols: readonly Protocol[] = ['REST', 'gRPC', 'Connect JSON', 'Connect binary'];

/** The answer of a call that was not refused, with the members of JSON for all protocols. */
export interface Answered {
  readonly status: number | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers freely, and fails on what is not there.
  readonly body: any;
  readonly header: (name: string) => string | undefined;
}

/** All protocols of a gateway. */
export class Protocols {
  readonly #grpc: GrpcWire;

  constructor(private readonly gateway: TestGateway) {
    this.#grpc = new GrpcWire(gateway.app.grpcPort);
  }

  close(): void {
    this.#grpc.close();
  }

  /** Sends a request as it stands, and asserts that the answer is one the OpenAPI document describes. */
  async raw(request: WireRequest): Promise<WireAnswer> {
    const answer = await sendRaw(this.gateway.app.restPort, request);
    const { status, text } = answer;
    assertDescribed({ ...request, status, text, header: (name) => answer.headers.get(name)?.[0] });
    return answer;
  }

  rest(call: Call): Promise<WireAnswer> {
    return this.raw(toRest(call));
  }

  grpc(call: Call, bytes = toProtobuf({ id: idOf(call), ...call })): Promise<GrpcAnswer> {
    assert.ok(bytes, 'the call has a form in protobuf');
    const metadata = new Metadata();
    for (const value of authorizations(call)) metadata.add('authorization', value);
    for (const value of call.idempotencyKey ?? []) metadata.add('idempotency-key', value);
    for (const [name, value] of call.headers ?? []) metadata.add(name.toLowerCase(), value);
    const { rpc } = operations[call.operation];
    return this.#grpc.call(`/${rpc.parent.typeName}/${rpc.name}`, bytes, metadata);
  }

  /** A call by Connect, of which `change` makes what is sent. */
  connect(
    protocol: ConnectProtocol,
    call: Call,
    change: (request: WireRequest) => WireRequest = (request) => request,
  ): Promise<WireAnswer> {
    const message = toMessage({ id: idOf(call), ...call });
    assert.ok(message, 'the call has a form in protobuf');
    return this.raw(change(toConnect(protocol, call, message, credentialHeaders(call))));
  }

  async refuses(protocol: Protocol, call: Call, refusal: Refusal): Promise<void> {
    if (protocol === 'gRPC') assertGrpcRefusal(await this.grpc(call), refusal);
    else if (protocol !== 'REST') assertConnectRefusal(await this.connect(protocol, call), refusal);
    else assertRestRefusal(await this.rest(call), refusal, operations[call.operation].method);
  }

  async refusesRaw(request: WireRequest, refusal: Refusal): Promise<void> {
    assertRestRefusal(await this.raw(request), refusal, request.method);
  }

  /** Asserts that a call is answered, and returns with what. */
  async answers(protocol: Protocol, call: Call): Promise<Answered> {
    if (protocol === 'gRPC') return this.#answersGrpc(call);
    if (protocol !== 'REST') return this.#answersConnect(protocol, call);
    const answer = await this.rest(call);
    assert.ok(answer.status === 200 || answer.status === 201, answer.text);
    const isNew = answer.status === 201;
    assertHeaders(answer, answerHeaders(call, isNew, answer));
    const header = (name: string) => answer.headers.get(name)?.[0];
    return { status: answer.status, body: JSON.parse(answer.text), header };
  }

  async #answersConnect(protocol: ConnectProtocol, call: Call): Promise<Answered> {
    const answer = await this.connect(protocol, call);
    assert.equal(answer.status, 200, answer.text);
    const { takesKey } = operations[call.operation];
    const isNew = call.operation === 'createKey' || (takesKey === true && !answer.headers.has('idempotent-replayed'));
    assertHeaders(answer, answerHeaders(call, isNew, answer), contentTypeOf(protocol));
    const header = (name: string) => answer.headers.get(name)?.[0];
    return { status: undefined, body: toSnake(fromConnect(protocol, call, answer)), header };
  }

  async #answersGrpc(call: Call): Promise<Answered> {
    const answer = await this.grpc(call);
    assert.equal(answer.code, 0, answer.details);
    assert.match(String(answer.metadata.get('x-request-id')[0]), /./);
    const header = (name: string) => answer.metadata.get(name)[0]?.toString();
    const { output } = operations[call.operation].rpc;
    return { status: undefined, body: toSnake(fromBinary(output, answer.bytes ?? Buffer.alloc(0))), header };
  }
}

/** The paths of what operations create. */
const createdPaths: Partial<Record<Call['operation'], RegExp>> = {
  createOrder: /^\/v1\/orders\/ord_[a-z2-7]{20}$/,
  createApplication: /^\/v1\/applications\/app_[a-z2-7]{20}$/,
  createAllocation: /^\/v1\/allocations\/alc_[a-z2-7]{20}$/,
  createWithdrawal: /^\/v1\/withdrawals\/wdr_[a-z2-7]{20}$/,
  createKey: /^\/v1\/keys\/key_[a-z2-7]{20}$/,
};

/** The headers an answer has in addition to those of every answer. */
function answerHeaders({ operation }: Call, isNew: boolean, answer: WireAnswer): Map<string, RegExp> {
  const expected = new Map<string, RegExp>();
  const path = createdPaths[operation];
  if (isNew && path !== undefined) expected.set('location', path);
  if (answer.headers.has('idempotent-replayed')) expected.set('idempotent-replayed', /^true$/);
  return expected;
}

/** The protocols through which a call can be made. */
export function protocolsOf(call: Call): readonly Protocol[] {
  const message = toMessage({ id: idOf(call), ...call });
  if (message === undefined) return ['REST'];
  return protocols.filter(
    (protocol) => protocol !== 'Connect JSON' || hasJson(operations[call.operation].rpc.input, message),
  );
}

export function toRest(call: Call): WireRequest {
  const { method, path, takesBody, takesFile } = operations[call.operation];
  const query = new URLSearchParams(call.query).toString();
  const headers = credentialHeaders(call);
  if (takesBody) headers.push(['Content-Type', 'application/json']);
  if (takesFile) headers.push(['Content-Type', 'image/png']);
  for (const [name, value] of call.headers ?? []) headers.push([name, value]);
  return {
    method,
    path: path(encodeURIComponent(idOf(call) ?? '')) + (query === '' ? '' : `?${query}`),
    headers,
    body: takesBody ? toJson(call.body ?? {}) : undefined,
  };
}

/** Returns the id in the path; undefined if the path names nothing. */
function idOf({ operation, id }: Call): string | undefined {
  const { names } = operations[operation];
  return names && (id ?? names[1]);
}

function credentialHeaders(call: Call): [string, string][] {
  const headers: [string, string][] = authorizations(call).map((value) => ['Authorization', value]);
  for (const value of call.idempotencyKey ?? []) headers.push(['Idempotency-Key', value]);
  return headers;
}

function authorizations({ key, authorization }: Call): readonly string[] {
  return authorization ?? (key === undefined ? [] : [`Bearer ${key}`]);
}

function toSnake(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toSnake);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    toSnake(member),
  ]);
  return Object.fromEntries(entries);
}
