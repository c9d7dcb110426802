import { resetNumberHabits } from '../../support/interop/habits/resets.ts';
import { describeSessionHabits } from '../../support/interop/suite.ts';

describeSessionHabits(resetNumberHabits);
