import { Health } from '../gen/grpc/health/v1/health_pb.ts';
import { networkOf } from '../lib/network.ts';

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

/** Health checks and reflection, by their paths. */
export const publicMethods: ReadonlyMap<string, PublicMethod> = new Map(
  [
    ...Health.methods.map(({ name, methodKind }) => ({
      path: `/${Health.typeName}/${name}`,
      // Those who watch open the call again when it ends.
      ...(methodKind === 'unary'
        ? { lifetimeMs: 10_000, group: checks, isOpenEnded: false }
        : { lifetimeMs: 600_000, group: watches, isOpenEnded: false }),
    })),
    ...['v1', 'v1alpha'].map((version) => ({
      path: `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
      // A tool keeps its call open while it describes things, and opens another when it needs one.
      ...{ lifetimeMs: 30_000, group: reflections, isOpenEnded: true },
    })),
  ].map(({ path, ...method }) => [path, { ...method, maxBytes }]),
);

/** Counts the open calls of public methods. */
export class PublicCalls {
  readonly #open = new Map<Bounds, Map<string, number>>();

  /** Counts a call, or returns undefined when there are too many. Call what it returns when the call has ended. */
  take({ group }: PublicMethod, clientAddress: string, isKnown: boolean): (() => void) | undefined {
    const bounds = isKnown ? group.known : group.strangers;
    const byAddress = this.#open.get(bounds) ?? new Map<string, number>();
    this.#open.set(bounds, byAddress);
    const network = networkOf(clientAddress);
    const own = byAddress.get(network) ?? 0;
    const all = [...byAddress.values()].reduce((sum, count) => sum + count, 0);
    if (own >= bounds.perAddress || all >= bounds.total) return undefined;
    byAddress.set(network, own + 1);
    return () => {
      const left = (byAddress.get(network) ?? 1) - 1;
      if (left === 0) byAddress.delete(network);
      else byAddress.set(network, left);
    };
  }
}
