import { stopHabits } from './habits/stops.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits(stopHabits);
