import { optimismBugs } from '../../support/bugs/optimism.ts';
import { describeBugs } from '../../support/fault/seeded-bugs.ts';

describeBugs('the tests of expected values notice', optimismBugs);
