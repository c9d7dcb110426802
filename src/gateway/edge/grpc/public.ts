import { create } from '@bufbuild/protobuf';
import { type Server, type ServerWritableStream, status } from '@grpc/grpc-js';
import {
  Health,
  type HealthCheckRequest,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
} from '../../../gen/grpc/health/v1/health_pb.ts';
import { networkOf } from '../../../kit/addresses.ts';
import { Counts } from '../../../kit/counts.ts';
import { type GrpcImplementation, serviceDefinition } from '../../../kit/grpc-service.ts';
import type { RefuseMessage } from './refusals.ts';

export interface MethodRules {
  /** How many bytes a call may send, with the prefix of each message. */
  readonly maxBytes: number;
  /** Refuses a call that sends more than `maxBytes`, or a compressed message. By default with the statuses without details. */
  readonly refuse?: RefuseMessage | undefined;
  /** How many bytes of a message are read and dropped before its call is refused. One that says that it is larger is refused unread. */
  readonly maxReadBytes?: number;
  /** Whether the client may send messages while the call is open. */
  readonly isOpenEnded?: boolean;
}

/** A gRPC method without a key, and its limits. */
export interface PublicMethod extends MethodRules {
  readonly lifetimeMs: number;
  /** Methods that share a limit of open calls. */
  readonly group: Group;
}

interface Group {
  readonly strangers: Bounds;
  /**
   * For addresses with a recent valid key. They count separately, so that other clients cannot use up their room. Many
   * replicas of a partner may share one address, and a client with health checks keeps one watch per connection.
   */
  readonly known: Bounds;
}

/** How many calls may be open, in all and from one address. */
interface Bounds {
  readonly total: number;
  readonly perAddress: number;
}

const checks: Group = { strangers: { total: 256, perAddress: 32 }, known: { total: 1_000, perAddress: 250 } };
const watches: Group = { strangers: { total: 256, perAddress: 16 }, known: { total: 2_000, perAddress: 500 } };
/** Each may hold an answer of some 100 kB that its client does not read. */
const reflections: Group = { strangers: { total: 64, perAddress: 16 }, known: { total: 64, perAddress: 16 } };
const maxBytes = 64 * 1_024;
/** Nothing more is read for a client without a key, so a message that is too large is refused unread. */
const bounds = { maxBytes, maxReadBytes: maxBytes };

const check: PublicMethod = { ...bounds, lifetimeMs: 10_000, group: checks, isOpenEnded: false };
/** Clients reopen a watch when it ends. */
const watch: PublicMethod = { ...bounds, lifetimeMs: 600_000, group: watches, isOpenEnded: false };
/** A tool keeps its call open while it describes things, and opens another when it needs one. */
const reflect: PublicMethod = { ...bounds, lifetimeMs: 30_000, group: reflections, isOpenEnded: true };

export const publicMethods: ReadonlyMap<string, PublicMethod> = new Map([
  [`/${Health.typeName}/Check`, check],
  [`/${Health.typeName}/List`, check],
  [`/${Health.typeName}/Watch`, watch],
  ['/grpc.reflection.v1.ServerReflection/ServerReflectionInfo', reflect],
  ['/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo', reflect],
]);

/** Counts the open calls of public methods. */
export class PublicCalls {
  readonly #open = new Map<Bounds, Counts>();

  /** Counts a call; undefined if there are too many. Call the result when the call has ended. */
  take({ group }: PublicMethod, clientAddress: string, isKnown: boolean): (() => void) | undefined {
    const bounds = isKnown ? group.known : group.strangers;
    const open = this.#open.get(bounds) ?? new Counts();
    this.#open.set(bounds, open);
    const network = networkOf(clientAddress);
    if (open.of(network) >= bounds.perAddress || open.total >= bounds.total) return undefined;
    return open.add(network);
  }
}

const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = HealthCheckResponse_ServingStatus;

type Watcher = ServerWritableStream<HealthCheckRequest, HealthCheckResponse>;

/**
 * gRPC health checking for a fixed set of services, which all serve or all do not. We do not use grpc-health-check
 * because it keeps every requested name. It also puts the client's names into a status, and a malformed one ends the
 * process.
 */
export class HealthService {
  readonly #names: ReadonlySet<string>;
  readonly #watchers = new Set<Watcher>();
  #isServing = true;

  /** `services` are full names. The name '' is the whole server. */
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
          // An unknown service never becomes known, but the protocol requires the call to stay open.
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

  /** Reports NOT_SERVING to all checks and watches from now on. */
  stopServing(): void {
    if (!this.#isServing) return;
    this.#isServing = false;
    for (const watcher of this.#watchers) watcher.write(this.#answer());
  }

  #answer(): HealthCheckResponse {
    return create(HealthCheckResponseSchema, { status: this.#isServing ? SERVING : NOT_SERVING });
  }
}
