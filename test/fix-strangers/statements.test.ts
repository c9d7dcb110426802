import { statementHabits } from './habits/statements.ts';
import { describeHabits } from './suite.ts';

describeHabits('FIXT.1.1', 'naira', statementHabits);
describeHabits('FIX.4.4', 'kobo', statementHabits);
