import { describeAllocationCrashes } from '../../../support/fault/allocation-crashes.ts';

describeAllocationCrashes('a gateway that allocates, killed at any point while another one works', true);
