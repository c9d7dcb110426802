import { absenceHabits, absenceSettings } from './habits/absence.ts';
import { absenceAnswerHabits } from './habits/absence-answers.ts';
import { describeHabits } from './suite.ts';

const habits = [...absenceHabits, ...absenceAnswerHabits];

describeHabits('FIXT.1.1', 'naira', habits, absenceSettings);
describeHabits('FIX.4.4', 'kobo', habits, absenceSettings);
