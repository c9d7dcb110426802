import { Health } from '../../gen/grpc/health/v1/health_pb.ts';
import { networkOf } from '../../lib/network.ts';
import { LocalCount } from '../../limits/local-count.ts';

/** What a gRPC port serves without a key, and what bounds it. */
export interface PublicMethod {
  /** How many bytes a call may send: its requests are names. */
  readonly maxBytes: number;
  /** How long a call may stay open. */
  readonly lifetimeMs: number;
  /** Whether the client may send requests for as long as the call is open. */
  readonly isOpenEnded: boolean;
  /** How many calls of such methods may be open at once. */
  readonly group: Group;
}

interface Group {
  readonly strangers: Bounds;
  /**
   * For addresses from which a good key came lately. They are counted by themselves, so strangers cannot use up their
   * room. Many replicas of a partner may be behind one address, and a gRPC client that checks health keeps one watch open
   * for each connection.
   */
  readonly known: Bounds;
}

/** How many calls may be open at once: all together, and from one address. */
interface Bounds {
  readonly total: number;
  readonly perAddress: number;
}

const checks: Group = { strangers: { total: 256, perAddress: 32 }, known: { total: 1_000, perAddress: 250 } };
const watches: Group = { strangers: { total: 256, perAddress: 16 }, known: { total: 2_000, perAddress: 500 } };
/** Each may hold an answer of some 100 kB that its client does not read. */
const reflections: Group = { strangers: { total: 64, perAddress: 16 }, known: { total: 64, perAddress: 16 } };
const maxBytes = 64 * 1_024;

const check: PublicMethod = { lifetimeMs: 10_000, group: checks, isOpenEnded: false, maxBytes };
/** Those who watch open the call again when it ends. */
const watch: PublicMethod = { lifetimeMs: 600_000, group: watches, isOpenEnded: false, maxBytes };
/** A tool keeps its call open while it describes things, and opens another when it needs one. */
const reflect: PublicMethod = { lifetimeMs: 30_000, group: reflections, isOpenEnded: true, maxBytes };

/** Health checks and reflection, by their paths. */
export const publicMethods: ReadonlyMap<string, PublicMethod> = new Map([
  [`/${Health.typeName}/Check`, check],
  [`/${Health.typeName}/List`, check],
  [`/${Health.typeName}/Watch`, watch],
  ['/grpc.reflection.v1.ServerReflection/ServerReflectionInfo', reflect],
  ['/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo', reflect],
]);

/** LocalCount the open calls of public methods. */
export class PublicCalls {
  readonly #open = new Map<Bounds, LocalCount>();

  /** LocalCount a call, or returns undefined when there are too many. Call what it returns when the call has ended. */
  take({ group }: PublicMethod, clientAddress: string, isKnown: boolean): (() => void) | undefined {
    const bounds = isKnown ? group.known : group.strangers;
    const open = this.#open.get(bounds) ?? new LocalCount();
    this.#open.set(bounds, open);
    const network = networkOf(clientAddress);
    if (open.of(network) >= bounds.perAddress || open.total >= bounds.total) return undefined;
    return open.add(network);
  }
}
