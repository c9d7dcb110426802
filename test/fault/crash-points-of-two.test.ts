import { describeCrashes } from './support/crash-cases.ts';

describeCrashes('a gateway killed at any point while another one works', true);
