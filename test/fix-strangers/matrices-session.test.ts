import { matrixSessionHabits } from './habits/matrix-sessions.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits(matrixSessionHabits);
