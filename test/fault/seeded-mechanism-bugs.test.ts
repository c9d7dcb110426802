import { mechanismBugs } from './bugs/mechanism.ts';
import { describeBugs } from './support/seeded-bugs.ts';

describeBugs('the tests of the shared mechanism notice', mechanismBugs);
