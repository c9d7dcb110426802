import { matrixDayHabits } from './habits/matrix-days.ts';
import { matrixSessionHabits } from './habits/matrix-sessions.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits([...matrixSessionHabits, ...matrixDayHabits]);
