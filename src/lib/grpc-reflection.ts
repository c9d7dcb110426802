import { type DescFile, toBinary } from '@bufbuild/protobuf';
import { nestedTypes } from '@bufbuild/protobuf/reflect';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { type Server, type ServerDuplexStream, status } from '@grpc/grpc-js';
import type { ReflectionAnswer, ReflectionRequest } from './grpc-reflection-codec.ts';
import { decodeReflectionRequest, encodeReflectionResponse } from './grpc-reflection-codec.ts';
import type { TypedService } from './grpc-service.ts';

/**
 * Lets `grpcurl`, `buf curl` and the like ask a server what it serves, by gRPC server reflection v1 and v1alpha. Ours,
 * because @grpc/reflection encodes the files anew and thereby drops every option it does not know, such as the REST
 * annotations.
 */
export function addReflection(
  server: Server,
  services: readonly TypedService[],
  /** Files of what no method names, such as the details of errors. */
  more: readonly DescFile[] = [],
): void {
  const index = new ReflectionIndex(services, more);
  for (const version of ['v1', 'v1alpha']) {
    server.addService(
      {
        serverReflectionInfo: {
          path: `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
          requestStream: true,
          responseStream: true,
          requestSerialize: asIs,
          requestDeserialize: decodeReflectionRequest,
          responseSerialize: asIs,
          responseDeserialize: asIs,
        },
      },
      {
        serverReflectionInfo: (call: ServerDuplexStream<ReflectionRequest, Buffer>) => {
          call.on('error', () => {});
          call.on('end', () => call.end());
          call.on('data', (request: ReflectionRequest) => {
            // The next request is read when this answer has left: a client that does not read is not read from.
            call.pause();
            call.write(encodeReflectionResponse(request, index.answer(request)), () => call.resume());
          });
        },
      },
    );
  }
}

/** What a set of services and the files they are made of say about themselves. */
export class ReflectionIndex {
  readonly #services: readonly string[];
  readonly #files = new Map<string, DescFile>();
  readonly #bytes = new Map<string, Uint8Array>();
  readonly #symbols = new Map<string, DescFile>();
  readonly #extensions = new Map<string, Map<number, DescFile>>();

  constructor(services: readonly TypedService[], more: readonly DescFile[] = []) {
    this.#services = [...new Set(services.map((service) => service.typeName))].sort();
    for (const service of services) this.#addFile(service.file);
    for (const file of more) this.#addFile(file);
  }

  answer(request: ReflectionRequest): ReflectionAnswer {
    switch (request.kind) {
      case 'list_services':
        return { kind: 'services', names: this.#services };
      case 'file_by_filename':
        return this.#fileAnswer(this.#files.get(request.name), request.name);
      case 'file_containing_symbol':
        return this.#fileAnswer(this.#symbols.get(request.name), request.name);
      case 'file_containing_extension':
        return this.#fileAnswer(this.#extensions.get(request.name)?.get(request.number), request.name);
      case 'all_extension_numbers_of_type': {
        if (!this.#symbols.has(request.name)) return notFound(request.name);
        const numbers = [...(this.#extensions.get(request.name)?.keys() ?? [])];
        return { kind: 'extension_numbers', name: request.name, numbers };
      }
      case 'unknown':
        return { kind: 'error', code: status.UNIMPLEMENTED, message: 'This reflection request is not known.' };
    }
  }

  #addFile(file: DescFile): void {
    const name = file.proto.name;
    if (this.#files.has(name)) return;
    this.#files.set(name, file);
    this.#bytes.set(name, toBinary(FileDescriptorProtoSchema, file.proto));
    for (const type of nestedTypes(file)) {
      this.#symbols.set(type.typeName, file);
      const members = type.kind === 'service' ? type.methods : type.kind === 'message' ? type.members : [];
      for (const member of members) this.#symbols.set(`${type.typeName}.${member.name}`, file);
      if (type.kind !== 'extension') continue;
      const numbers = this.#extensions.get(type.extendee.typeName) ?? new Map<number, DescFile>();
      this.#extensions.set(type.extendee.typeName, numbers.set(type.number, file));
    }
    for (const dependency of file.dependencies) this.#addFile(dependency);
  }

  /** A file and all it depends on, so that one request is enough. */
  #fileAnswer(file: DescFile | undefined, asked: string): ReflectionAnswer {
    if (file === undefined) return notFound(asked);
    const files = new Map<string, Uint8Array>();
    const collect = (each: DescFile): void => {
      const name = each.proto.name;
      const bytes = this.#bytes.get(name);
      if (files.has(name) || bytes === undefined) return;
      files.set(name, bytes);
      for (const dependency of each.dependencies) collect(dependency);
    };
    collect(file);
    return { kind: 'files', files: [...files.values()] };
  }
}

function notFound(name: string): ReflectionAnswer {
  return { kind: 'error', code: status.NOT_FOUND, message: `Not found: ${name}` };
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}
