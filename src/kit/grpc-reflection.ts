import { create, type DescFile, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { nestedTypes } from '@bufbuild/protobuf/reflect';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { type Server, type ServerDuplexStream, status } from '@grpc/grpc-js';
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from '../gen/grpc/reflection/v1/reflection_pb.ts';
import { grpcMethod, type TypedService } from './grpc-service.ts';

/** One of the response's messages. */
type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>['messageResponse']>;

/**
 * Adds gRPC server reflection v1 and v1alpha, for `grpcurl`, `buf curl` and the like. It is ours because @grpc/reflection
 * re-encodes the files and drops every option it does not know, such as the REST annotations.
 */
export function addReflection(
  server: Server,
  services: readonly TypedService[],
  /** Files that no method names, such as the details of errors. */
  more: readonly DescFile[] = [],
): void {
  // Made for the first request, because it takes a start 20 ms.
  let index: ReflectionIndex | undefined;
  const definition = grpcMethod(ServerReflection.method.serverReflectionInfo);
  const serverReflectionInfo = (call: ServerDuplexStream<ServerReflectionRequest, ServerReflectionResponse>) => {
    call.on('error', () => {});
    call.on('end', () => call.end());
    call.on('data', (request: ServerReflectionRequest) => {
      index ??= new ReflectionIndex(services, more);
      const messageResponse = index.answer(request.messageRequest);
      const answer = { validHost: request.host, originalRequest: request, messageResponse };
      // Reads the next request only after this answer was written, so a client that does not read is not read from.
      call.pause();
      call.write(create(ServerReflectionResponseSchema, answer), () => call.resume());
    });
  };
  // The messages of both versions are the same on the wire.
  for (const version of ['v1', 'v1alpha']) {
    const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
    server.addService({ serverReflectionInfo: { ...definition, path } }, { serverReflectionInfo });
  }
}

/** The symbols and files of a set of services. */
class ReflectionIndex {
  readonly #services: readonly string[];
  readonly #files = new Map<string, DescFile>();
  readonly #bytes = new Map<DescFile, Uint8Array>();
  readonly #symbols = new Map<string, DescFile>();
  readonly #extensions = new Map<string, Map<number, DescFile>>();

  constructor(services: readonly TypedService[], more: readonly DescFile[]) {
    this.#services = [...new Set(services.map((service) => service.typeName))].sort();
    for (const file of withDependencies([...services.map((service) => service.file), ...more])) this.#addFile(file);
  }

  answer(request: ServerReflectionRequest['messageRequest']): Answer {
    switch (request.case) {
      case 'listServices':
        return { case: 'listServicesResponse', value: { service: this.#services.map((name) => ({ name })) } };
      case 'fileByFilename':
        return this.#fileAnswer(this.#files.get(request.value), request.value);
      case 'fileContainingSymbol':
        return this.#fileAnswer(this.#symbols.get(request.value), request.value);
      case 'fileContainingExtension': {
        const { containingType, extensionNumber } = request.value;
        return this.#fileAnswer(this.#extensions.get(containingType)?.get(extensionNumber), containingType);
      }
      case 'allExtensionNumbersOfType': {
        const baseTypeName = request.value;
        if (!this.#symbols.has(baseTypeName)) return notFound(baseTypeName);
        const extensionNumber = [...(this.#extensions.get(baseTypeName)?.keys() ?? [])];
        return { case: 'allExtensionNumbersResponse', value: { baseTypeName, extensionNumber } };
      }
      case undefined:
        return refused(status.UNIMPLEMENTED, 'This reflection request is not known.');
    }
  }

  #addFile(file: DescFile): void {
    this.#files.set(file.proto.name, file);
    this.#bytes.set(file, toBinary(FileDescriptorProtoSchema, file.proto));
    for (const type of nestedTypes(file)) {
      this.#symbols.set(type.typeName, file);
      const members = type.kind === 'service' ? type.methods : type.kind === 'message' ? type.members : [];
      for (const member of members) this.#symbols.set(`${type.typeName}.${member.name}`, file);
      if (type.kind !== 'extension') continue;
      const numbers = this.#extensions.get(type.extendee.typeName) ?? new Map<number, DescFile>();
      this.#extensions.set(type.extendee.typeName, numbers.set(type.number, file));
    }
  }

  /** The answer with a file and, behind it, all its dependencies, so that one request suffices. */
  #fileAnswer(file: DescFile | undefined, asked: string): Answer {
    if (file === undefined) return notFound(asked);
    const files = [...withDependencies([file])].reverse();
    const fileDescriptorProto = files.map((each) => this.#bytes.get(each) ?? new Uint8Array());
    return { case: 'fileDescriptorResponse', value: { fileDescriptorProto } };
  }
}

/** Files and all their dependencies, each once and after those that it imports. */
export function withDependencies(files: readonly DescFile[], found = new Set<DescFile>()): ReadonlySet<DescFile> {
  for (const file of files) {
    if (found.has(file)) continue;
    withDependencies(file.dependencies, found);
    found.add(file);
  }
  return found;
}

function notFound(name: string): Answer {
  return refused(status.NOT_FOUND, `Not found: ${name}`);
}

function refused(errorCode: status, errorMessage: string): Answer {
  return { case: 'errorResponse', value: { errorCode, errorMessage } };
}
