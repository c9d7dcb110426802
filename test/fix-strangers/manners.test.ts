import { killHabits, mannerHabits } from './habits/manners.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits([...mannerHabits, ...killHabits]);
