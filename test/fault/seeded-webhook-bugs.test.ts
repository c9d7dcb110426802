import { webhookBugs } from './bugs/webhooks.ts';
import { describeBugs } from './support/seeded-bugs.ts';

describeBugs('the tests of webhooks notice', webhookBugs);
