import { join } from 'node:path';
import type { Armed } from './inside/watch.ts';
import { compileInside } from './load.ts';

/** The settings with which a process meets a fate at a moment: the first one of its label. It may use a folder. */
export function fated(folder: string, armed: Pick<Armed, 'kind' | 'label' | 'fate'>): Record<string, string> {
  const watching = { armed: { ...armed, occurrence: 1, times: 1 } };
  return { NODE_OPTIONS: compileInside(join(folder, 'inside')), MARINA_MOMENTS: JSON.stringify(watching) };
}
