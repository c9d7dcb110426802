import { reportHabits } from '../../support/interop/habits/all.ts';
import { describeHabits } from '../../support/interop/suite.ts';

describeHabits('FIX.4.4', 'kobo', reportHabits);
