import { unsupportedHabits } from './habits/unsupported.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits(unsupportedHabits);
