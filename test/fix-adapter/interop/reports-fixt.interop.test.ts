import { reportHabits } from '../../support/interop/habits/all.ts';
import { describeHabits } from '../../support/interop/suite.ts';

describeHabits('FIXT.1.1', 'naira', reportHabits);
