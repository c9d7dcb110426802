import { dayHabits } from '../../support/interop/habits/days.ts';
import { describeSessionHabits } from '../../support/interop/suite.ts';

describeSessionHabits(dayHabits);
