import { absenceSessionHabits } from './habits/absence-sessions.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits(absenceSessionHabits);
