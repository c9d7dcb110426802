import { absenceGapHabits } from './habits/absence-gaps.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits(absenceGapHabits);
