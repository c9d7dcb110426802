import { refusalHabits } from '../../support/interop/habits/refusals.ts';
import { describeSessionHabits } from '../../support/interop/suite.ts';

describeSessionHabits(refusalHabits);
