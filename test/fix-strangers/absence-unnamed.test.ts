import { absenceUnnamedHabits } from './habits/absence-unnamed.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits(absenceUnnamedHabits);
