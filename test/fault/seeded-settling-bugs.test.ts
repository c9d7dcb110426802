import { settlingBugs } from './bugs/settling.ts';
import { describeBugs } from './support/seeded-bugs.ts';

describeBugs('the tests notice', settlingBugs);
