import { status } from '@grpc/grpc-js';
import { Submissions } from '../gen/marina/broker/v1/submissions_pb.ts';
import { UpstreamCalls } from './calls.ts';
import { Connection, codeOf, type GrpcBrokerOptions } from './connection.ts';
import type { SubmissionsBroker, Taken } from './port.ts';

/** A broker's list of what it was given, met over `marina.broker.v1`. */
export class GrpcSubmissions implements SubmissionsBroker {
  readonly #submissions: Connection<typeof Submissions>;

  constructor(private readonly options: Omit<GrpcBrokerOptions, 'submitTimeoutMs'>) {
    const { address, calls = new UpstreamCalls() } = options;
    this.#submissions = new Connection(Submissions, address, 'broker', calls);
  }

  async submissionsAfter(number: bigint, most: number): Promise<readonly Taken[] | undefined> {
    try {
      const request = { afterNumber: number, limit: most };
      const about = { timeoutMs: this.options.readTimeoutMs };
      const { submissions } = await this.#submissions.call('listSubmissions', request, about);
      const isDense = submissions.every((submission, index) => submission.number === number + BigInt(index + 1));
      if (!isDense || submissions.length > most) throw new Error('the list of submissions makes no sense');
      return submissions;
    } catch (error) {
      if (codeOf(error) === status.UNIMPLEMENTED) return undefined;
      throw error;
    }
  }

  close(): void {
    this.#submissions.close();
  }
}
