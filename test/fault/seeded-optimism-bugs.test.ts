import { optimismBugs } from './bugs/optimism.ts';
import { describeBugs } from './support/seeded-bugs.ts';

describeBugs('the tests of expected values notice', optimismBugs);
