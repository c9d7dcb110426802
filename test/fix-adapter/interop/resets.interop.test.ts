import { resetHabits } from '../../support/interop/habits/resets.ts';
import { describeSessionHabits } from '../../support/interop/suite.ts';

describeSessionHabits(resetHabits);
