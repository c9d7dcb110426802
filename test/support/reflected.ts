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
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire';
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
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
 * whoever uses it.
 */
export class ReflectedClient {
  private constructor(
    private readonly client: Client,
    readonly services: readonly string[],
    private readonly registry: FileRegistry,
  ) {}

  static async connect(address: string, channel: ChannelCredentials = credentials.createInsecure()) {
    const client = new Client(address, channel, { 'grpc.enable_retries': 0 });
    const services = serviceNames(await ask(client, 7, ''));
    const files = new Map<string, FileDescriptorProto>();
    const detail = 'google.rpc.BadRequest';
    for (const symbol of [...services, detail]) {
      for (const bytes of fileBytes(await ask(client, 4, symbol))) {
        const file = fromBinary(FileDescriptorProtoSchema, bytes);
        files.set(file.name, file);
      }
    }
    const set = create(FileDescriptorSetSchema, { file: inOrder(files) });
    return new ReflectedClient(client, services, createFileRegistry(set));
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

  pathOf(name: string): string {
    return this.#method(name).path;
  }

  /** The fields an error names as at fault. */
  violations(error: unknown): Violation[] {
    const [rich] = (error as ServiceError).metadata.get('grpc-status-details-bin');
    if (rich === undefined) return [];
    const [value] = anyValues(rich as Buffer);
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

/** One question of the reflection service: a field of its request, by number. */
function ask(client: Client, field: number, text: string): Promise<Buffer> {
  const path = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
  const call = client.makeBidiStreamRequest(path, asIs, asIs, new Metadata(), { deadline: Date.now() + timeoutMs });
  call.write(Buffer.from(new BinaryWriter().tag(field, 2).string(text).finish()));
  call.end();
  return new Promise((resolve, reject) => {
    let answer: Buffer | undefined;
    call.on('data', (bytes: Buffer) => {
      answer = bytes;
    });
    call.on('error', reject);
    call.on('end', () => (answer === undefined ? reject(new Error('no answer by reflection')) : resolve(answer)));
  });
}

function serviceNames(answer: Buffer): string[] {
  return fieldsOf(answer, 6)
    .flatMap((list) => fieldsOf(list, 1))
    .flatMap((service) => fieldsOf(service, 1))
    .map((name) => name.toString());
}

function fileBytes(answer: Buffer): Buffer[] {
  return fieldsOf(answer, 4).flatMap((files) => fieldsOf(files, 1));
}

/** What the details of a `google.rpc.Status` hold. */
function anyValues(status: Buffer): Buffer[] {
  return fieldsOf(status, 3).flatMap((any) => fieldsOf(any, 2));
}

/** The values of a length-delimited field of a message. */
function fieldsOf(bytes: Uint8Array, wanted: number): Buffer[] {
  const reader = new BinaryReader(bytes);
  const values: Buffer[] = [];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === wanted && wireType === 2) values.push(Buffer.from(reader.bytes()));
    else reader.skip(wireType, field);
  }
  return values;
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
