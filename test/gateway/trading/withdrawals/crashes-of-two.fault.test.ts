import { describeMoneyCrashes, withdrawals } from '../../../support/fault/money-crashes.ts';

describeMoneyCrashes(withdrawals, 'a gateway that withdraws, killed at any point while another one works', true);
