import { type DescMessage, fromBinary, fromJson, type Message, toBinary, toJsonString } from '@bufbuild/protobuf';
import { type Call, operations } from './calls.ts';
import type { WireAnswer, WireRequest } from './wire.ts';

/** The ways in which Connect carries messages. */
export type ConnectProtocol = 'Connect JSON' | 'Connect binary';

const contentTypes = { 'Connect JSON': 'application/json', 'Connect binary': 'application/proto' } as const;

/** A call as Connect's protocol carries it. */
export function toConnect(
  protocol: ConnectProtocol,
  { operation, headers = [] }: Call,
  message: Message,
  credentials: readonly (readonly [string, string])[],
): WireRequest {
  const { rpc } = operations[operation];
  return {
    method: 'POST',
    path: `/${rpc.parent.typeName}/${rpc.name}`,
    headers: [...credentials, ['Content-Type', contentTypes[protocol]], ...headers],
    body: protocol === 'Connect JSON' ? toJsonString(rpc.input, message) : Buffer.from(toBinary(rpc.input, message)),
  };
}

/** Whether protobuf's JSON can say what a message says: it has no years but 1 to 9999. */
export function hasJson(schema: DescMessage, message: Message): boolean {
  try {
    toJsonString(schema, message);
    return true;
  } catch {
    return false;
  }
}

/** The message an answer holds. */
export function fromConnect(protocol: ConnectProtocol, { operation }: Call, { bytes, text }: WireAnswer): Message {
  const { output } = operations[operation].rpc;
  return protocol === 'Connect JSON' ? fromJson(output, JSON.parse(text)) : fromBinary(output, bytes);
}

export function contentTypeOf(protocol: ConnectProtocol): string {
  return contentTypes[protocol];
}
