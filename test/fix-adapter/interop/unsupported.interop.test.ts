import { unsupportedHabits } from '../../support/interop/habits/unsupported.ts';
import { describeSessionHabits } from '../../support/interop/suite.ts';

describeSessionHabits(unsupportedHabits);
