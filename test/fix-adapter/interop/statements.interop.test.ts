import { statementHabits } from '../../support/interop/habits/statements.ts';
import { statementCountHabits } from '../../support/interop/habits/statements-counts.ts';
import { describeHabits } from '../../support/interop/suite.ts';

const habits = [...statementHabits, ...statementCountHabits];

describeHabits('FIXT.1.1', 'naira', habits);
describeHabits('FIX.4.4', 'kobo', habits);
