import { matrixCancelHabits } from './habits/matrix-cancels.ts';
import { matrixCorrectionHabits } from './habits/matrix-corrections.ts';
import { matrixLifeHabits } from './habits/matrix-lives.ts';
import { matrixMixedHabits } from './habits/matrix-mixed.ts';
import { matrixReportHabits } from './habits/matrix-reports.ts';
import { matrixTwinHabits } from './habits/matrix-twins.ts';
import { describeHabits } from './suite.ts';

const habits = [
  ...matrixLifeHabits,
  ...matrixCancelHabits,
  ...matrixCorrectionHabits,
  ...matrixReportHabits,
  ...matrixMixedHabits,
  ...matrixTwinHabits,
];

describeHabits('FIXT.1.1', 'naira', habits);
describeHabits('FIX.4.4', 'kobo', habits);
