import { create } from '@bufbuild/protobuf';
import { type Server, type ServerWritableStream, status } from '@grpc/grpc-js';
import {
  Health,
  type HealthCheckRequest,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
} from '../../gen/grpc/health/v1/health_pb.ts';
import { type GrpcImplementation, serviceDefinition } from '../../lib/grpc-service.ts';

const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = HealthCheckResponse_ServingStatus;

type Watcher = ServerWritableStream<HealthCheckRequest, HealthCheckResponse>;

/**
 * gRPC health checking for a fixed set of services, all of which serve or none. Ours, because grpc-health-check keeps every
 * name it was ever asked for, and puts names from the client into a status, where one that is not well-formed text ends the
 * process.
 */
export class HealthService {
  readonly #names: ReadonlySet<string>;
  readonly #watchers = new Set<Watcher>();
  #isServing = true;

  /** `services` are the full names of what is served. The server as a whole has the name ''. */
  constructor(services: readonly string[]) {
    this.#names = new Set(['', ...services]);
  }

  addTo(server: Server): void {
    const implementation: GrpcImplementation<typeof Health> = {
      check: (call, respond) => {
        if (this.#names.has(call.request.service)) respond(null, this.#answer());
        else respond({ code: status.NOT_FOUND, details: 'There is no such service.' });
      },
      list: (_call, respond) => {
        const statuses = Object.fromEntries([...this.#names].map((name) => [name, this.#answer()]));
        respond(null, create(HealthListResponseSchema, { statuses }));
      },
      watch: (call) => {
        call.on('error', () => {});
        if (!this.#names.has(call.request.service)) {
          // It never becomes known: the call only stays open, as the protocol asks.
          call.write(create(HealthCheckResponseSchema, { status: SERVICE_UNKNOWN }));
          return;
        }
        this.#watchers.add(call);
        call.on('cancelled', () => this.#watchers.delete(call));
        call.write(this.#answer());
      },
    };
    server.addService(serviceDefinition(Health), implementation);
  }

  /** From now on the services do not serve, say the answers to those who ask and to those who watch. */
  stopServing(): void {
    if (!this.#isServing) return;
    this.#isServing = false;
    for (const watcher of this.#watchers) watcher.write(this.#answer());
  }

  #answer(): HealthCheckResponse {
    return create(HealthCheckResponseSchema, { status: this.#isServing ? SERVING : NOT_SERVING });
  }
}
