import { accountExportBugs } from '../../support/bugs/account-export.ts';
import { describeBugs } from '../../support/fault/seeded-bugs.ts';

describeBugs('the tests of the export of one account notice', accountExportBugs);
