import assert from 'node:assert/strict';
import { fromBinary } from '@bufbuild/protobuf';
import { Metadata } from '@grpc/grpc-js';
import type { TestGateway } from '../../support/gateway.ts';
import { assertGrpcRefusal } from './assert-grpc.ts';
import { assertHeaders, assertRestRefusal } from './assert-rest.ts';
import { type Call, nobodysOrder, operations, toJson } from './calls.ts';
import { type GrpcAnswer, GrpcWire } from './grpc-wire.ts';
import { toProtobuf } from './protobuf-form.ts';
import type { Refusal } from './refusals.ts';
import { sendRaw, type WireAnswer, type WireRequest } from './wire.ts';

export type Door = 'REST' | 'gRPC';
export const doors: readonly Door[] = ['REST', 'gRPC'];

/** What a call was answered with when it was not refused, with the members of JSON whichever door gave it. */
export interface Answered {
  readonly status: number | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers freely, and fails on what is not there.
  readonly body: any;
  readonly header: (name: string) => string | undefined;
}

/** Both doors of a gateway. */
export class Doors {
  readonly #grpc: GrpcWire;

  constructor(private readonly gateway: TestGateway) {
    this.#grpc = new GrpcWire(gateway.app.grpcPort);
  }

  close(): void {
    this.#grpc.close();
  }

  raw(request: WireRequest): Promise<WireAnswer> {
    return sendRaw(this.gateway.app.restPort, request);
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

  async refuses(door: Door, call: Call, refusal: Refusal): Promise<void> {
    if (door === 'gRPC') return assertGrpcRefusal(await this.grpc(call), refusal);
    assertRestRefusal(await this.rest(call), refusal, operations[call.operation].method);
  }

  async refusesRaw(request: WireRequest, refusal: Refusal): Promise<void> {
    assertRestRefusal(await this.raw(request), refusal, request.method);
  }

  /** Asserts that a call is answered, and returns with what. */
  async answers(door: Door, call: Call): Promise<Answered> {
    if (door === 'gRPC') return this.#answersGrpc(call);
    const answer = await this.rest(call);
    assert.ok(answer.status === 200 || answer.status === 201, answer.text);
    const expected = new Map<string, RegExp>();
    if (answer.status === 201) expected.set('location', /^\/v1\/orders\/ord_[a-z2-7]{20}$/);
    if (answer.headers.has('idempotent-replayed')) expected.set('idempotent-replayed', /^true$/);
    assertHeaders(answer, expected);
    const header = (name: string) => answer.headers.get(name)?.[0];
    return { status: answer.status, body: JSON.parse(answer.text), header };
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

/** The doors through which a call can be made. */
export function doorsOf(call: Call): readonly Door[] {
  return toProtobuf({ id: idOf(call), ...call }) === undefined ? ['REST'] : doors;
}

export function toRest(call: Call): WireRequest {
  const { method, path, takesBody } = operations[call.operation];
  const query = new URLSearchParams(call.query).toString();
  const headers: [string, string][] = authorizations(call).map((value) => ['Authorization', value]);
  for (const value of call.idempotencyKey ?? []) headers.push(['Idempotency-Key', value]);
  if (takesBody) headers.push(['Content-Type', 'application/json']);
  for (const [name, value] of call.headers ?? []) headers.push([name, value]);
  return {
    method,
    path: path(encodeURIComponent(idOf(call) ?? '')) + (query === '' ? '' : `?${query}`),
    headers,
    body: takesBody ? toJson(call.body ?? {}) : undefined,
  };
}

function idOf({ operation, id }: Call): string | undefined {
  return ['getOrder', 'getOrderHistory', 'cancelOrder'].includes(operation) ? (id ?? nobodysOrder) : undefined;
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
