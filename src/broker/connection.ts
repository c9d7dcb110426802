import { connectivityState, type ServiceError, status } from '@grpc/grpc-js';
import { createGrpcClient, type GrpcClient } from '../lib/grpc-client.ts';
import type { TypedService } from '../lib/grpc-service.ts';
import type { Sent } from './port.ts';

export const channelOptions = {
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5_000,
};

/**
 * How long a link that is down may take to come up before a call is said never to have left: longer than the pause between
 * two tries, so that it was tried.
 */
const connectTimeoutMs = 1_500;

/**
 * A connection to one service of the broker, replaced once a call over it got no answer in time: it may be dead and not
 * show it, and what follows is better off with a new one. Calls that are under way over the old one go on to their end.
 */
export class Connection<Service extends TypedService> {
  #client: GrpcClient<Service>;

  constructor(
    private readonly service: Service,
    private readonly address: string,
    /** What the other side is called in what proves an outcome. */
    private readonly upstream: 'exchange' | 'broker',
  ) {
    this.#client = createGrpcClient(service, address, channelOptions);
  }

  get connected(): boolean {
    return this.#client.grpcClient.getChannel().getConnectivityState(true) === connectivityState.READY;
  }

  async use<T>(call: (client: GrpcClient<Service>) => Promise<T>): Promise<T> {
    const used = this.#client;
    try {
      return await call(used);
    } catch (error) {
      if (codeOf(error) === status.DEADLINE_EXCEEDED && used === this.#client) {
        this.#client = createGrpcClient(this.service, this.address, channelOptions);
        used.close();
      }
      throw error;
    }
  }

  /**
   * Sends something once, in the time it has at most, and says what that came to. `call` answers undefined where the
   * answer makes no sense. Does not throw.
   */
  async send<Answer>(
    { notAfterMs, longestMs }: { readonly notAfterMs: number; readonly longestMs: number },
    call: (client: GrpcClient<Service>, timeoutMs: number) => Promise<Answer | undefined>,
  ): Promise<Sent<Answer>> {
    const unreachable = await this.#waitForLink();
    if (unreachable !== undefined) return { outcome: 'never-left', evidence: unreachable };
    const timeoutMs = Math.min(longestMs, notAfterMs - Date.now());
    if (timeoutMs <= 0) return { outcome: 'never-left', evidence: 'its time had run out before it was sent' };
    try {
      const answer = await this.use((client) => call(client, timeoutMs));
      return answer === undefined
        ? { outcome: 'unclear', evidence: 'the answer made no sense' }
        : { outcome: 'answered', answer };
    } catch (error) {
      // The one status that says it was not and will not be taken: its not_after had passed.
      if (codeOf(error) === status.FAILED_PRECONDITION) {
        return { outcome: 'never-left', evidence: `the ${this.upstream} refused it as too late` };
      }
      return { outcome: 'unclear', evidence: evidenceOf(error) };
    }
  }

  close(): void {
    this.#client.close();
  }

  /** Waits until the link is up; otherwise says why a call would never leave, because there is nothing to leave by. */
  #waitForLink(): Promise<string | undefined> {
    if (this.connected) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#client.grpcClient.waitForReady(Date.now() + connectTimeoutMs, (error) =>
        resolve(error === undefined || error === null ? undefined : `there was no connection to the ${this.upstream}`),
      );
    });
  }
}

export function codeOf(error: unknown): status | undefined {
  return (error as Partial<ServiceError>).code;
}

/** The status a call failed with, in a word; undefined for what is none. */
export function statusOf(error: unknown): string | undefined {
  const code = codeOf(error);
  return code === undefined ? undefined : status[code]?.toLowerCase();
}

/** What a failed call proves in a word: its status, never the broker's own text. */
export function evidenceOf(error: unknown): string {
  if (codeOf(error) === undefined) return 'no answer';
  return `no answer: ${(statusOf(error) ?? 'unknown').replaceAll('_', ' ')}`;
}
