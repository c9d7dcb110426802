import { crossingHabits } from '../../support/interop/habits/stops.ts';
import { describeSessionHabits } from '../../support/interop/suite.ts';

describeSessionHabits(crossingHabits);
