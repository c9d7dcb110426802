import { gapHabits } from './habits/gaps.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits(gapHabits);
