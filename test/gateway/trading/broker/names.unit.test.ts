import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { firstBroker, nameAt } from '../../../../src/gateway/trading/broker/broker.ts';
import { reportsPosition } from '../../../../src/gateway/trading/submission/report-days.ts';
import { restoredPosition, submissionsPosition } from '../../../../src/gateway/trading/submission/restored.ts';

const namesAt = (broker: string) => [
  reportsPosition(broker, 'order'),
  reportsPosition(broker, 'application'),
  submissionsPosition(broker),
  restoredPosition(broker),
];

describe('the names of positions', () => {
  it('are those of release 0.2.0 for the first broker', () => {
    const names = ['order-reports', 'application-reports', 'submissions', 'restored-at-submission'];
    assert.deepEqual(namesAt(firstBroker), names);
  });

  it('differ between brokers, and fit in their columns for the longest id of a broker', () => {
    assert.equal(new Set([...namesAt(firstBroker), ...namesAt('zenith12'), ...namesAt('zenith13')]).size, 12);
    // The longest are those of marks, and of reports about objects that are not stored.
    for (const name of namesAt('zenith12')) assert.ok(`${name} proven`.length <= 40, name);
    assert.ok(nameAt('zenith12', 'application').length <= 20);
  });
});
