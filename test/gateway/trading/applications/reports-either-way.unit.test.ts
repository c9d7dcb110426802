import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { ApplicationKind } from '../../../../src/gateway/trading/applications/kind.ts';
import type { StoredApplication } from '../../../../src/gateway/trading/applications/table.ts';
import type { BrokerApplications } from '../../../../src/gateway/trading/broker/broker.ts';
import {
  type ApplicationReport,
  ApplicationReportKind,
  ApplicationReportSchema,
} from '../../../../src/gen/marina/broker/v1/applications_pb.ts';
import { createLogger } from '../../../../src/kit/log.ts';

const { ACCEPTED, OPENED, REJECTED } = ApplicationReportKind;
const foreignAccount = 'THEIRS';

/** A broker that says the same in its stream and in its record, and a database in which one account is another partner's. */
function begin(reports: readonly ApplicationReport[]) {
  const broker: Partial<BrokerApplications> = {
    lookUpApplication: async () => ({ found: true, answer: reports }),
    async *streamApplicationReports() {
      yield reports;
    },
  };
  const transaction = async (
    [query]: readonly { readonly values: readonly unknown[] }[],
    decide: (rows: object[][]) => { readonly result: unknown },
  ) => decide([query?.values.flat().includes(foreignAccount) ? [{ account: foreignAccount }] : []]).result;
  const log = createLogger({ name: 'test', level: 'silent' });
  const clock = { now: () => 0, realNow: () => 0 };
  return new ApplicationKind(
    broker as BrokerApplications,
    { transaction } as Partial<Database> as Database,
    clock,
    log,
  );
}

function report(kind: ApplicationReportKind, account = '') {
  const at = timestampFromMs(0);
  return create(ApplicationReportSchema, {
    number: 5n,
    clientApplicationId: 'app_x',
    reference: 'R1',
    kind,
    account,
    at,
  });
}

/** Reports, and the account that is believed. */
const cases = [
  ['accepted', report(ACCEPTED), ''],
  ['rejected', report(REJECTED), ''],
  ["opened with the partner's account", report(OPENED, 'OURS'), 'OURS'],
  ["opened with another partner's account", report(OPENED, foreignAccount), ''],
] as const;

describe('a report about an application', () => {
  for (const [name, said, account] of cases) {
    it(`a report that it is ${name} means the same in the stream and in a look-up`, async () => {
      const kind = begin([said]);
      const streamed: ApplicationReport[] = [];
      for await (const reports of kind.streamReports(0n, new AbortController().signal)) streamed.push(...reports);
      const looked = await kind.lookUp({ id: 'app_x', lastReport: 0n } as StoredApplication);
      assert.ok(looked.found);
      assert.deepEqual(looked.answer, streamed);
      assert.deepEqual(
        streamed.map((each) => each.account),
        [account],
      );
    });
  }
});
