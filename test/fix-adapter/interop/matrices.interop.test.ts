import { matrixCancelHabits } from '../../support/interop/habits/matrix-cancels.ts';
import { matrixCorrectionHabits } from '../../support/interop/habits/matrix-corrections.ts';
import { matrixLifeHabits } from '../../support/interop/habits/matrix-lives.ts';
import { matrixMixedHabits } from '../../support/interop/habits/matrix-mixed.ts';
import { matrixReportHabits } from '../../support/interop/habits/matrix-reports.ts';
import { matrixTwinHabits } from '../../support/interop/habits/matrix-twins.ts';
import { describeHabits } from '../../support/interop/suite.ts';

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
