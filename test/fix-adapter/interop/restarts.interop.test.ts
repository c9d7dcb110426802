import { restartHabits } from '../../support/interop/habits/stops.ts';
import { describeSessionHabits } from '../../support/interop/suite.ts';

describeSessionHabits(restartHabits);
