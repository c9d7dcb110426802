import { byteHabits } from './habits/bytes.ts';
import { describeSessionHabits } from './suite.ts';

describeSessionHabits(byteHabits);
