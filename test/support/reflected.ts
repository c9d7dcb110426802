import {
  create,
  createFileRegistry,
  type DescMessage,
  type FileRegistry,
  fromBinary,
  fromJson,
  type JsonObject,
  type JsonValue,
  toBinary,
  toJson,
} from '@bufbuild/protobuf';
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodOptionsSchema,
} from '@bufbuild/protobuf/wkt';
import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { StatusSchema } from '../../src/gen/google/rpc/status_pb.ts';
import {
  ServerReflection,
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
} from '../../src/gen/grpc/reflection/v1/reflection_pb.ts';
import { grpcMethod } from '../../src/kit/grpc-service.ts';
import { patient } from './patience.ts';

const timeoutMs = patient(20_000);
const asIs = (bytes: Buffer) => bytes;

/** A field of an error's `google.rpc.BadRequest`. */
export interface Violation {
  readonly field: string;
  readonly description: string;
}

/**
 * A gRPC client that knows no protos: it asks the server for them by reflection, as grpcurl does, and speaks JSON to
 * its user.
 */
export class ReflectedClient {
  private constructor(
    private readonly client: Client,
    readonly services: readonly string[],
    private readonly registry: FileRegistry,
  ) {}

  static async connect(address: string, channel: ChannelCredentials = credentials.createInsecure()) {
    const client = new Client(address, channel, { 'grpc.enable_retries': 0 });
    const list = await ask(client, { case: 'listServices', value: '' });
    const services = list.case === 'listServicesResponse' ? list.value.service.map(({ name }) => name) : [];
    const files = new Map<string, FileDescriptorProto>();
    const details = ['google.rpc.BadRequest', 'google.rpc.ErrorInfo', 'marina.gateway.v1.Error'];
    for (const symbol of [...services, ...details]) {
      const answer = await ask(client, { case: 'fileContainingSymbol', value: symbol });
      for (const bytes of answer.case === 'fileDescriptorResponse' ? answer.value.fileDescriptorProto : []) {
        const file = fromBinary(FileDescriptorProtoSchema, bytes);
        files.set(file.name, file);
      }
    }
    const set = create(FileDescriptorSetSchema, { file: inOrder(files) });
    return new ReflectedClient(client, services, createFileRegistry(set));
  }

  /** The same for another server of the same protos, which it does not ask for them. */
  at(address: string): ReflectedClient {
    const client = new Client(address, credentials.createInsecure(), { 'grpc.enable_retries': 0 });
    return new ReflectedClient(client, this.services, this.registry);
  }

  /** Whether it found a message. */
  knows(message: string): boolean {
    return this.registry.getMessage(message) !== undefined;
  }

  /** Every call of the operators' services, as `Service.Method`, with whether it answers with a stream. */
  calls(prefix: string): { name: string; isStream: boolean; fields: string[] }[] {
    return this.services
      .filter((name) => name.startsWith(prefix))
      .flatMap((name) => this.#service(name).methods)
      .map((method) => ({
        name: `${method.parent.name}.${method.name}`,
        isStream: method.methodKind === 'server_streaming',
        fields: method.input.fields.map((field) => field.name),
      }));
  }

  /** Makes a unary call; `name` is the service's full name and the method's. */
  async call(
    name: string,
    request: JsonObject,
    token?: string,
    // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers freely, and fails on what is not there.
  ): Promise<any> {
    const { path, input, output } = this.#method(name);
    const bytes = await this.raw(path, this.#encode(input, request), token);
    return toJson(output, fromBinary(output, bytes), {
      registry: this.registry,
      useProtoFieldName: true,
      alwaysEmitImplicit: true,
    });
  }

  /** Makes a unary call with any bytes for a message. */
  raw(path: string, message: Buffer, token?: string): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const options = { deadline: Date.now() + timeoutMs };
      this.client.makeUnaryRequest(path, asIs, asIs, message, credentialsOf(token), options, (error, answer) =>
        error === null && answer !== undefined ? resolve(answer) : reject(error),
      );
    });
  }

  /** Opens a stream, which ends with the signal; a unary call is one of a single answer. */
  async *stream(
    name: string,
    request: JsonObject,
    token: string | Metadata | undefined,
    signal?: AbortSignal,
    useProtoFieldName = true,
  ) {
    const { path, input, output } = this.#method(name);
    const call = this.client.makeServerStreamRequest(
      path,
      asIs,
      asIs,
      this.#encode(input, request),
      credentialsOf(token),
      { deadline: Date.now() + 60_000 },
    );
    call.on('error', () => {});
    const cancel = () => call.cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      for await (const bytes of call) {
        const message = fromBinary(output, bytes as Buffer);
        yield toJson(output, message, { registry: this.registry, useProtoFieldName }) as JsonObject;
      }
    } finally {
      signal?.removeEventListener('abort', cancel);
      call.cancel();
    }
  }

  /** The service as a proto declares it, with the options of its methods, as grpcurl's `describe` shows it. */
  describeService(name: string): string {
    const methods = this.#service(name).methods.map(({ proto, input, output }) => {
      const options = proto.options && toJson(MethodOptionsSchema, proto.options, { registry: this.registry });
      const lines = Object.entries((options ?? {}) as JsonObject).map(
        ([option, value]) => `    option (${option.replace(/^\[|\]$/g, '')}) = ${JSON.stringify(value)};`,
      );
      const call = `  rpc ${proto.name} ( .${input.typeName} ) returns ( .${output.typeName} )`;
      return lines.length === 0 ? `${call};` : [`${call} {`, ...lines, '  }'].join('\n');
    });
    return [`${name} is a service:`, `service ${name.slice(name.lastIndexOf('.') + 1)} {`, ...methods, '}'].join('\n');
  }

  pathOf(name: string): string {
    return this.#method(name).path;
  }

  /** The fields an error names as at fault. */
  violations(error: unknown): Violation[] {
    const [rich] = (error as ServiceError).metadata.get('grpc-status-details-bin');
    if (rich === undefined) return [];
    const value = fromBinary(StatusSchema, rich as Buffer).details[0]?.value;
    const schema = this.registry.getMessage('google.rpc.BadRequest');
    if (value === undefined || schema === undefined) return [];
    const detail = toJson(schema, fromBinary(schema, value)) as { fieldViolations?: Violation[] };
    return detail.fieldViolations ?? [];
  }

  close(): void {
    this.client.close();
  }

  #encode(schema: DescMessage, request: JsonValue): Buffer {
    return Buffer.from(toBinary(schema, fromJson(schema, request, { registry: this.registry })));
  }

  #service(name: string) {
    const service = this.registry.getService(name);
    if (service === undefined) throw new Error(`reflection does not know ${name}`);
    return service;
  }

  #method(name: string) {
    const dot = name.lastIndexOf('.');
    const service = this.#service(name.slice(0, dot));
    const method = service.methods.find((candidate) => candidate.name === name.slice(dot + 1));
    if (method === undefined) throw new Error(`reflection does not know ${name}`);
    return { path: `/${service.typeName}/${method.name}`, input: method.input, output: method.output };
  }
}

function credentialsOf(token: string | Metadata | undefined): Metadata {
  if (token instanceof Metadata) return token;
  const metadata = new Metadata();
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`);
  return metadata;
}

/** One question of the reflection service. */
function ask(client: Client, messageRequest: ServerReflectionRequest['messageRequest']) {
  const { path, requestSerialize, responseDeserialize } = grpcMethod(ServerReflection.method.serverReflectionInfo);
  const deadline = { deadline: Date.now() + timeoutMs };
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, new Metadata(), deadline);
  call.write(create(ServerReflectionRequestSchema, { messageRequest }));
  call.end();
  return new Promise<ServerReflectionResponse['messageResponse']>((resolve, reject) => {
    call.once('data', ({ messageResponse }: ServerReflectionResponse) => resolve(messageResponse));
    call.on('error', reject);
    call.on('end', () => reject(new Error('no answer by reflection')));
  });
}

/** Files in an order in which each comes after those it needs. */
function inOrder(files: ReadonlyMap<string, FileDescriptorProto>): FileDescriptorProto[] {
  const ordered = new Set<FileDescriptorProto>();
  const add = (name: string) => {
    const file = files.get(name);
    if (file === undefined || ordered.has(file)) return;
    for (const dependency of file.dependency) add(dependency);
    ordered.add(file);
  };
  for (const name of files.keys()) add(name);
  return [...ordered];
}
