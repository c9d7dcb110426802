import type { Habit } from '../habit.ts';
import { cancelHabits } from './cancels.ts';
import { doubtHabits } from './doubt.ts';
import { endingHabits } from './endings.ts';
import { executionHabits } from './executions.ts';
import { identityHabits } from './identity.ts';
import { plainHabits } from './plain.ts';
import { rejectHabits } from './rejects.ts';

/** Habits that need no session of their own. */
export const reportHabits: readonly Habit[] = [
  ...plainHabits,
  ...doubtHabits,
  ...executionHabits,
  ...endingHabits,
  ...identityHabits,
  ...cancelHabits,
  ...rejectHabits,
];
