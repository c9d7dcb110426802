import { sendingBugs } from './bugs/sending.ts';
import { describeBugs } from './support/seeded-bugs.ts';

describeBugs('the tests notice', sendingBugs);
