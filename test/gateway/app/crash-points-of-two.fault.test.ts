import { describeCrashes } from '../../support/fault/crash-cases.ts';

describeCrashes('a gateway killed at any point while another one works', true);
