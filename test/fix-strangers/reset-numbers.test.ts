import { resetNumberHabits } from './habits/resets.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits(resetNumberHabits);
