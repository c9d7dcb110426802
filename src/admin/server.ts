import { createHash, timingSafeEqual } from 'node:crypto';
import type { DescMethod, Message } from '@bufbuild/protobuf';
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import { Health } from '../gen/grpc/health/v1/health_pb.ts';
import { ApiError } from '../lib/errors.ts';
import { addReflection } from '../lib/grpc-reflection.ts';
import { serviceDefinition, type TypedService } from '../lib/grpc-service.ts';
import type { Logger } from '../lib/log.ts';

/** The name of an operator, as its token says. */
export type Operator = string;

/** What an operator's call is refused with. */
export class AdminError extends Error {
  override readonly name = 'AdminError';

  constructor(
    readonly status: status,
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

/** A service of the operators' port, with its calls. */
export interface AdminService {
  readonly service: TypedService;
  readonly handlers: Record<string, (request: never, operator: Operator) => Promise<Message>>;
}

export interface AdminServerOptions {
  readonly services: readonly AdminService[];
  /** Each operator's name and token. */
  readonly operators: ReadonlyMap<string, Operator>;
  readonly log: Logger;
}

/** The operators' port: gRPC with reflection and health, every call under a named operator's token. */
export function createAdminServer({ services, operators, log }: AdminServerOptions) {
  const server = new Server({ 'grpc.max_receive_message_length': 64 * 1024 });
  const hashes = [...operators].map(([token, name]) => ({ name, hash: sha256(token) }));
  for (const { service, handlers } of services) {
    const implementation = Object.fromEntries(
      service.methods.map((method) => [method.localName, unary(method, handlers[method.localName])]),
    );
    server.addService(serviceDefinition(service), implementation);
  }
  new HealthImplementation({ '': 'SERVING' }).addToServer(server);
  addReflection(server, [...services.map(({ service }) => service), Health]);

  function unary(method: DescMethod, handler: AdminService['handlers'][string] | undefined) {
    if (handler === undefined) throw new Error(`${method.parent.typeName}.${method.name} has no handler`);
    return (call: ServerUnaryCall<Message, Message>, callback: sendUnaryData<Message>) => {
      const action = `${method.parent.name}.${method.name}`;
      const operator = identify(call.metadata.get('authorization'));
      if (operator === undefined) {
        callback({ code: status.UNAUTHENTICATED, details: 'a valid operator token is needed' });
        return;
      }
      handler(call.request as never, operator).then(
        (answer) => {
          log.info({ operator, action }, 'an operator called');
          callback(null, answer);
        },
        (error: unknown) => {
          log.warn({ err: error, operator, action }, 'an operator call failed');
          callback(toStatus(error));
        },
      );
    };
  }

  /** Compares with every token, so that the time tells nothing. */
  function identify(authorization: readonly (string | Buffer)[]): Operator | undefined {
    const [value] = authorization;
    if (authorization.length !== 1 || typeof value !== 'string') return undefined;
    const token = /^bearer +([^ ]+)$/i.exec(value)?.[1];
    if (token === undefined) return undefined;
    const given = sha256(token);
    let found: Operator | undefined;
    for (const { name, hash } of hashes) {
      if (timingSafeEqual(hash, given)) found = name;
    }
    return found;
  }

  return {
    listen: (port: number, host: string) =>
      new Promise<number>((resolve, reject) => {
        server.bindAsync(`${host}:${port}`, ServerCredentials.createInsecure(), (error, bound) =>
          error === null ? resolve(bound) : reject(error),
        );
      }),
    close: (graceMs: number) =>
      new Promise<void>((resolve) => {
        const timer = setTimeout(() => {
          server.forceShutdown();
          resolve();
        }, graceMs);
        server.tryShutdown(() => {
          clearTimeout(timer);
          resolve();
        });
      }),
  };
}

function toStatus(error: unknown): { code: status; details: string } {
  if (error instanceof AdminError) return { code: error.status, details: error.message };
  if (error instanceof ApiError) return { code: status.UNAVAILABLE, details: error.message };
  return { code: status.INTERNAL, details: 'something went wrong; the log has more' };
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
