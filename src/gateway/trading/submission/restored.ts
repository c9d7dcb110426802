import { leaveVersionGaps } from '../../delivery/events/feed.ts';
import type { Database } from '../../store/database.ts';
import { type BrokerId, nameAt } from '../broker/broker.ts';
import { readPosition, savePosition } from './positions.ts';
import { type Rewound, rewindReports } from './report-days.ts';

/** The name of the position of the last submission in the broker's list that is known to be stored. */
export function submissionsPosition(broker: BrokerId): string {
  return nameAt(broker, 'submissions');
}

/** The position at which the database was last declared, or found, to be restored. */
export function restoredPosition(broker: BrokerId): string {
  return nameAt(broker, 'restored-at-submission');
}

/** The kinds of objects about which the broker sends reports. */
const reportedKinds = ['order', 'application', 'withdrawal'];

/**
 * Declares that the database was restored from a backup, or has lost commits. Partners may have seen events that it has lost,
 * so no version of those is used again. Reports may have been applied to rows that it has lost, so they are read again.
 * Only while no gateway runs, or before one that starts opens its gate. It is safe to repeat, also after it was killed.
 */
export async function noteRestore(database: Database, broker: BrokerId, at?: bigint): Promise<readonly Rewound[]> {
  const position = (at ?? (await readPosition(database, submissionsPosition(broker))) ?? 0).toString();
  const rewound = await rewindReports(database, broker, reportedKinds);
  await leaveVersionGaps(database);
  await database.write(savePosition(restoredPosition(broker), position));
  return rewound;
}
