import { absenceSessionHabits } from '../../support/interop/habits/absence-sessions.ts';
import { describeSessionHabits } from '../../support/interop/suite.ts';

describeSessionHabits(absenceSessionHabits);
