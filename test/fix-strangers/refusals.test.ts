import { refusalHabits } from './habits/refusals.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits(refusalHabits);
