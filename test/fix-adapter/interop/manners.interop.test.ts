import { killHabits, mannerHabits } from '../../support/interop/habits/manners.ts';
import { describeSessionHabits } from '../../support/interop/suite.ts';

describeSessionHabits([...mannerHabits, ...killHabits]);
