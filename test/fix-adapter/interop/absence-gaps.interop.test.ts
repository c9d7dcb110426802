import { absenceGapHabits } from '../../support/interop/habits/absence-gaps.ts';
import { describeSessionHabits } from '../../support/interop/suite.ts';

describeSessionHabits(absenceGapHabits);
