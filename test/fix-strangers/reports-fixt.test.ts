import { reportHabits } from './habits/all.ts';
import { describeHabits } from './suite.ts';

describeHabits('FIXT.1.1', 'naira', reportHabits);
