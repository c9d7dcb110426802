import type { Submissions } from '../gen/marina/broker/v1/submissions_pb.ts';
import type { Records } from './records.ts';
import type { UnaryHandlers } from './rpc.ts';
import { check, whole } from './validation.ts';
import type { Writer } from './writer.ts';

const maxPage = 1_000;

/** The list of all that was taken. No fault meets it: what it is asked for is what faults have lost. */
export function submissionsService(writer: Writer, records: Records): UnaryHandlers<typeof Submissions> {
  return {
    listSubmissions: async ({ afterNumber, limit }) => {
      check(limit >= 1 && limit <= maxPage, 'limit');
      const after = whole(afterNumber, 'after_number');
      // Through the writer first: what was taken before this is then in the table.
      await writer.run([], () => undefined);
      return { submissions: await records.submissions(after, limit) };
    },
  };
}
