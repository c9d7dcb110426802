import { bulkCancelBugs } from '../../support/bugs/bulk-cancels.ts';
import { describeBugs } from '../../support/fault/seeded-bugs.ts';

describeBugs('the tests of jobs that cancel orders notice', bulkCancelBugs);
