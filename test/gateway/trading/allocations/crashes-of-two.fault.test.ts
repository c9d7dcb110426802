import { allocations, describeMoneyCrashes } from '../../../support/fault/money-crashes.ts';

describeMoneyCrashes(allocations, 'a gateway that allocates, killed at any point while another one works', true);
