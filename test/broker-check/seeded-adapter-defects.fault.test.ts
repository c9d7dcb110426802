import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checks } from '../../src/broker-check/checks.ts';
import { runChecks } from '../../src/broker-check/run.ts';
import { startTestSimulator } from '../simulator/fixture.ts';
import { prepareAccount, simulatorSettings, testWaits } from '../support/broker-check.ts';
import { DefectiveAdapter } from '../support/defective-adapter.ts';
import { allocationDefects } from '../support/defects/allocations.ts';
import { applicationDefects, documentDefects } from '../support/defects/applications.ts';
import type { SeededDefect } from '../support/defects/defect.ts';
import { faultDefects } from '../support/defects/faults.ts';
import { linkDefects } from '../support/defects/link.ts';
import { lookUpDefects } from '../support/defects/look-ups.ts';
import { cancelDefects, submitDefects } from '../support/defects/orders.ts';
import { recordDefects } from '../support/defects/records.ts';
import { reportDefects } from '../support/defects/reports.ts';
import { statementDefects } from '../support/defects/statements.ts';
import { withdrawalDefects } from '../support/defects/withdrawals.ts';
import { inPart } from '../support/part.ts';

const defects = [
  ...linkDefects,
  ...submitDefects,
  ...lookUpDefects,
  ...cancelDefects,
  ...reportDefects,
  ...recordDefects,
  ...statementDefects,
  ...allocationDefects,
  ...withdrawalDefects,
  ...applicationDefects,
  ...documentDefects,
  ...faultDefects,
];
/** Mostly they wait. */
const atOnce = 12;

const simulator = await startTestSimulator();
let accounts = 0;

/** Every so many defects are held against all checks, so that a defect is seen to fail no other. */
const wholeEvery = 8;
/** A defect that is a race may win it once on a busy machine. It may never be taken for another. */
const maxTries = 3;

/** Holds an adapter with a defect against checks, or all. Returns those that failed, with their reasons. */
async function failedChecks(
  { defect, hooks, waits }: Partial<SeededDefect>,
  only?: readonly string[],
): Promise<Map<string, string>> {
  accounts += 1;
  const account = `ACC${accounts}X`;
  await prepareAccount(simulator.controls, account);
  const adapter = await DefectiveAdapter.start(`127.0.0.1:${simulator.port}`, defect);
  try {
    const results = await runChecks(
      checks,
      simulatorSettings(adapter.port, account, {
        hooks: {
          ...(hooks === 'restart' ? { restart: () => adapter.restart() } : {}),
          ...(hooks === 'cut' ? { cut: async () => adapter.cut(), mend: async () => adapter.mend() } : {}),
        },
        waits: { ...testWaits, ...waits },
        ...(only === undefined ? {} : { only }),
      }),
    );
    const failed = results.filter(({ verdict }) => verdict === 'failed');
    return new Map(failed.map(({ id, reason = '', exchanges }) => [id, `${reason} ${JSON.stringify(exchanges)}`]));
  } finally {
    adapter.close();
  }
}

describe('the check of adapters finds an adapter that', { concurrency: atOnce }, () => {
  for (const [at, defect] of inPart(defects).entries()) {
    const { adapter, breaks, also = [] } = defect;
    it(`${adapter}: ${breaks}`, async () => {
      const expected = [breaks, ...also];
      // Some checks look at what others made.
      const alone = at % wholeEvery === 0 ? undefined : await failedChecks(defect, expected);
      if (alone?.size === expected.length) return;
      for (let tries = 1; ; tries += 1) {
        const failed = await failedChecks(defect);
        const isMissed = failed.size < expected.length && [...failed.keys()].every((id) => expected.includes(id));
        if (isMissed && tries < maxTries) continue;
        const details = [...failed].map(([id, reason]) => `${id}: ${reason}`).join('\n');
        assert.deepEqual([...failed.keys()].sort(), expected.toSorted(), details);
        return;
      }
    });
  }

  it('has no defect: none', async () => {
    assert.deepEqual([...(await failedChecks({ hooks: 'restart' }))], []);
    assert.deepEqual([...(await failedChecks({ hooks: 'cut' }))], []);
  });
});

describe('the table of defects', () => {
  it('has one for every check of a must or a should', () => {
    const broken = new Set(defects.map(({ breaks }) => breaks));
    const unbroken = checks.filter(({ id, class: ofClass }) => ofClass !== 'optional' && !broken.has(id));
    assert.deepEqual(
      unbroken.map(({ id }) => id),
      [],
    );
  });
});
