import { sendingBugs } from '../../support/bugs/sending.ts';
import { describeBugs } from '../../support/fault/seeded-bugs.ts';

describeBugs('the tests notice', sendingBugs);
