import { operatorBugs } from '../../support/bugs/operators.ts';
import { describeBugs } from '../../support/fault/seeded-bugs.ts';

describeBugs('the tests of four eyes notice', operatorBugs);
