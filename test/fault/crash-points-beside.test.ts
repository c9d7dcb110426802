import { describeCrashes } from './support/crash-cases.ts';

describeCrashes('a gateway killed at any point, with another beside it', true);
