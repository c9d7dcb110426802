import { restartHabits } from './habits/stops.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits(restartHabits);
