import { gapHabits } from '../../support/interop/habits/gaps.ts';
import { describeSessionHabits } from '../../support/interop/suite.ts';

describeSessionHabits(gapHabits);
