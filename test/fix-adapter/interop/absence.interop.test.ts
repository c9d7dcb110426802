import { absenceHabits, absenceSettings } from '../../support/interop/habits/absence.ts';
import { absenceAnswerHabits } from '../../support/interop/habits/absence-answers.ts';
import { describeHabits } from '../../support/interop/suite.ts';

const habits = [...absenceHabits, ...absenceAnswerHabits];

describeHabits('FIXT.1.1', 'naira', habits, absenceSettings);
describeHabits('FIX.4.4', 'kobo', habits, absenceSettings);
