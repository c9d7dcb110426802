import { edgeBugs } from './bugs/edge.ts';
import { describeBugs } from './support/seeded-bugs.ts';

describeBugs('the tests notice, at the edge,', edgeBugs);
