import { crossingHabits } from './habits/stops.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits(crossingHabits);
