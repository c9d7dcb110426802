import { absenceHabits, absenceSettings } from './habits/absence.ts';
import { describeHabits } from './suite.ts';

describeHabits('FIXT.1.1', 'naira', absenceHabits, absenceSettings);
describeHabits('FIX.4.4', 'kobo', absenceHabits, absenceSettings);
