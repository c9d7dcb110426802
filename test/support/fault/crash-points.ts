import { type CrashPoint, kindPoints, otherPoints, reportPoints } from '../../../src/gateway/store/crash.ts';

/** The points of a kind of object: those of its reports too, if the upstream sends reports about it. */
function pointsOf(kind: string, hasReports: boolean): CrashPoint[] {
  return [...kindPoints, ...(hasReports ? reportPoints : [])].map((point): CrashPoint => `${kind}${point}`);
}

/** Every point at which a gateway can be made to end. */
export const crashPoints: readonly CrashPoint[] = [
  ...pointsOf('order', true),
  ...pointsOf('application', true),
  ...pointsOf('allocation', false),
  ...pointsOf('withdrawal', true),
  ...otherPoints,
];
