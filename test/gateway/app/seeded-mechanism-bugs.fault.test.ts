import { mechanismBugs } from '../../support/bugs/mechanism.ts';
import { describeBugs } from '../../support/fault/seeded-bugs.ts';

describeBugs('the tests of the shared mechanism notice', mechanismBugs);
