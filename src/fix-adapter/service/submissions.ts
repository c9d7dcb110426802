import { type ServiceError, status } from '@grpc/grpc-js';
import type { Submissions } from '../../gen/marina/broker/v1/submissions_pb.ts';
import type { GrpcClient } from '../../kit/grpc-client.ts';
import { UnavailableError } from '../../kit/refusal.ts';
import type { FixStore } from '../store/store.ts';
import { type BrokerHandlers, RpcError } from './rpc.ts';

const longestPage = 1_000;

/** The list of what was taken: our orders, and what the back office was given, in one numbering. */
export function submissionsService(parts: {
  readonly store: FixStore;
  readonly backOffice: GrpcClient<typeof Submissions>;
  readonly now: () => number;
}): BrokerHandlers<typeof Submissions> {
  const { store, backOffice, now } = parts;

  /** Takes over what the back office has listed since the last time. */
  async function takeOver(deadlineMs: number): Promise<void> {
    for (;;) {
      const { backOfficeSubmission: afterNumber } = await store.numbers();
      const timeoutMs = Math.max(1, deadlineMs - now());
      const { submissions } = await backOffice.listSubmissions({ afterNumber, limit: longestPage }, { timeoutMs });
      const theirs = submissions.map(({ number, clientId, note }) => ({ number, clientId, note: Buffer.from(note) }));
      if (theirs.some(({ number }, at) => number !== afterNumber + BigInt(at + 1))) {
        throw new RpcError(status.UNAVAILABLE, "the back office's list of submissions has a gap");
      }
      await store.takeSubmissions(afterNumber, theirs);
      if (theirs.length < longestPage) return;
    }
  }

  return {
    listSubmissions: async ({ afterNumber, limit }, { deadlineMs }) => {
      if (afterNumber < 0n) throw new RpcError(status.INVALID_ARGUMENT, 'after_number must be 0 or more');
      if (limit < 1 || limit > longestPage) throw new RpcError(status.INVALID_ARGUMENT, 'limit must be 1 to 1,000');
      try {
        await takeOver(deadlineMs);
      } catch (error) {
        // A back office without such a list has none of orders either, and ours is complete.
        if ((error as ServiceError).code !== status.UNIMPLEMENTED) throw asStatus(error);
      }
      return { submissions: await store.submissions(afterNumber, limit) };
    },
  };
}

function asStatus(error: unknown): Error {
  if (error instanceof RpcError) return error;
  if (error instanceof UnavailableError) return new RpcError(status.UNAVAILABLE, "the adapter's database cannot serve");
  const { code, details } = error as ServiceError;
  return code === undefined ? (error as Error) : new RpcError(status.UNAVAILABLE, `the back office: ${details}`);
}
