import type { Submissions } from '../../gen/marina/broker/v1/submissions_pb.ts';
import type { SimulatorWriter } from '../store/writer.ts';
import { check, whole } from '../validation.ts';
import type { SimulatorHandlers } from '../wire/rpc.ts';
import type { Records } from './records.ts';

const maxPage = 1_000;

/** The list of all submissions. No fault meets it, because it is asked for what faults have lost. */
export function submissionsService(writer: SimulatorWriter, records: Records): SimulatorHandlers<typeof Submissions> {
  return {
    listSubmissions: async ({ afterNumber, limit }) => {
      check(limit >= 1 && limit <= maxPage, 'limit');
      const after = whole(afterNumber, 'after_number');
      // Through the writer first, so that earlier submissions are in the table.
      await writer.run([], () => undefined);
      return { submissions: await records.submissions(after, limit) };
    },
  };
}
