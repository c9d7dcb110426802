import { byteHabits } from '../../support/interop/habits/bytes.ts';
import { describeSessionHabits } from '../../support/interop/suite.ts';

describeSessionHabits(byteHabits);
