import { settlingBugs } from '../../support/bugs/settling.ts';
import { describeBugs } from '../../support/fault/seeded-bugs.ts';

describeBugs('the tests notice', settlingBugs);
