import { statementHabits } from './habits/statements.ts';
import { statementCountHabits } from './habits/statements-counts.ts';
import { describeHabits } from './suite.ts';

const habits = [...statementHabits, ...statementCountHabits];

describeHabits('FIXT.1.1', 'naira', habits);
describeHabits('FIX.4.4', 'kobo', habits);
