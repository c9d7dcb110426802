import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isReportNumber, isUpstreamId } from '../../../../src/gateway/trading/broker/rules.ts';

describe('what the broker says', () => {
  it('has numbers of reports from 1 to 2^53 - 1', () => {
    for (const number of [1n, 2n ** 53n - 1n]) assert.ok(isReportNumber(number), `${number}`);
    for (const number of [0n, -1n, 2n ** 53n, 2n ** 63n - 2n, 2n ** 63n - 1n])
      assert.ok(!isReportNumber(number), `${number}`);
  });

  it('has ids of at most 64 printable ASCII characters', () => {
    for (const id of ['', 'NGX 1-2/3', '~'.repeat(64)]) assert.ok(isUpstreamId(id), id);
    for (const id of ['a\n', '\u001b[2J', 'a\u0000', 'caf\u00e9', '\u202eabc', 'x'.repeat(65), '\u007f']) {
      assert.ok(!isUpstreamId(id), JSON.stringify(id));
    }
  });
});
