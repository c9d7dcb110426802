import { resetHabits } from './habits/resets.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits(resetHabits);
