import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { tellRewound } from '../../../../src/gateway/trading/submission/report-days.ts';

describe('the positions of reports that are set back by `restored`', () => {
  it('are printed with where they were', () => {
    assert.equal(
      tellRewound({ name: 'order-reports', from: 5_142_162n, to: 4_900_000n }),
      'order-reports: read again from 4900000; the position was 5142162',
    );
  });

  it('are printed with the section of the page that says what to do if all reports are read again', () => {
    const printed = tellRewound({ name: 'order-reports', from: 5_142_162n, to: 0n });
    assert.match(
      printed,
      /^order-reports: all are read again, from 0, see ".*" in backup\.md; the position was 5142162$/,
    );
    const section = /"(.*)"/.exec(printed)?.[1];
    assert.ok(readFileSync('docs/operations/backup.md', 'utf8').includes(`\n### ${section}\n`));
  });
});
