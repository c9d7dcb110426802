import { momentBugs } from '../../support/bugs/moments.ts';
import { describeBugs } from '../../support/fault/seeded-bugs.ts';

describeBugs('the cases at each moment notice', momentBugs);
