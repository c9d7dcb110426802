import { webhookBugs } from '../../support/bugs/webhooks.ts';
import { describeBugs } from '../../support/fault/seeded-bugs.ts';

describeBugs('the tests of webhooks notice', webhookBugs);
