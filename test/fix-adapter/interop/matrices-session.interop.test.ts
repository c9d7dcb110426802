import { matrixDayHabits } from '../../support/interop/habits/matrix-days.ts';
import { matrixSessionHabits } from '../../support/interop/habits/matrix-sessions.ts';
import { describeSessionHabits } from '../../support/interop/suite.ts';

describeSessionHabits([...matrixSessionHabits, ...matrixDayHabits]);
