import { linkingBugs } from '../../support/bugs/linking.ts';
import { describeBugs } from '../../support/fault/seeded-bugs.ts';

describeBugs('the tests notice, in what operators use,', linkingBugs);
