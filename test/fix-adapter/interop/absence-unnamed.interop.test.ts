import { absenceUnnamedHabits } from '../../support/interop/habits/absence-unnamed.ts';
import { describeSessionHabits } from '../../support/interop/suite.ts';

describeSessionHabits(absenceUnnamedHabits);
