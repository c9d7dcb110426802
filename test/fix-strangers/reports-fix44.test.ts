import { reportHabits } from './habits/all.ts';
import { describeHabits } from './suite.ts';

describeHabits('FIX.4.4', 'kobo', reportHabits);
