import {
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import type {
  handleBidiStreamingCall,
  handleClientStreamingCall,
  handleServerStreamingCall,
  handleUnaryCall,
  MethodDefinition,
} from '@grpc/grpc-js';

/** A service as protobuf-es generates it, whose methods keep their message types. */
export type TypedService = Omit<DescService, 'method'> & { method: Record<string, DescMethod> };

/** One method as grpc-js wants it, with the message types of its descriptor. */
export type GrpcMethod<M extends DescMethod> = MethodDefinition<MessageShape<M['input']>, MessageShape<M['output']>>;

/** A service as grpc-js wants it, by protobuf-es's method names (`createOrder`). */
export type GrpcServiceDefinition<S extends TypedService> = {
  readonly [K in keyof S['method']]: GrpcMethod<S['method'][K]>;
};

/** A grpc-js handler for each method of a service, typed by its descriptor. */
export type GrpcImplementation<S extends TypedService> = {
  [K in keyof S['method']]: GrpcHandler<S['method'][K]>;
};

type GrpcHandler<M extends DescMethod> = M['methodKind'] extends 'unary'
  ? handleUnaryCall<MessageShape<M['input']>, MessageShape<M['output']>>
  : M['methodKind'] extends 'server_streaming'
    ? handleServerStreamingCall<MessageShape<M['input']>, MessageShape<M['output']>>
    : M['methodKind'] extends 'client_streaming'
      ? handleClientStreamingCall<MessageShape<M['input']>, MessageShape<M['output']>>
      : handleBidiStreamingCall<MessageShape<M['input']>, MessageShape<M['output']>>;

/** Converts a protobuf-es service for grpc-js, so that no second code generator or run-time proto loader is needed. */
export function serviceDefinition<S extends TypedService>(service: S): GrpcServiceDefinition<S> {
  const definition: Record<string, GrpcMethod<DescMethod>> = {};
  for (const method of service.methods) definition[method.localName] = grpcMethod(method);
  // The compiler cannot see that the descriptor's list and its record hold the same methods.
  return definition as unknown as GrpcServiceDefinition<S>;
}

/** Converts one method for grpc-js. */
export function grpcMethod<M extends DescMethod>(method: M): GrpcMethod<M> {
  const { methodKind, input, output } = method;
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    originalName: method.localName,
    requestStream: methodKind === 'client_streaming' || methodKind === 'bidi_streaming',
    responseStream: methodKind === 'server_streaming' || methodKind === 'bidi_streaming',
    requestSerialize: (message) => encode(input, message),
    requestDeserialize: (bytes) => fromBinary(input, bytes) as MessageShape<M['input']>,
    responseSerialize: (message) => encode(output, message),
    responseDeserialize: (bytes) => fromBinary(output, bytes) as MessageShape<M['output']>,
  };
}

function encode(schema: DescMessage, message: MessageShape<DescMessage>): Buffer {
  const bytes = toBinary(schema, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
