import { dayHabits } from './habits/days.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits(dayHabits);
