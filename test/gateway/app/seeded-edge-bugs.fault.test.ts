import { edgeBugs } from '../../support/bugs/edge.ts';
import { describeBugs } from '../../support/fault/seeded-bugs.ts';

describeBugs('the tests notice, at the edge,', edgeBugs);
