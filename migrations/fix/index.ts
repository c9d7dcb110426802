import { Guards1763710000000 } from '../1763710000000-guards.ts';
import { Writer1764070010000 } from '../1764070010000-writer.ts';
import { Fix1764100010000 } from './1764100010000-fix.ts';
import { FixEvidence1764200010000 } from './1764200010000-evidence.ts';
import { FixMessages1764250010000 } from './1764250010000-fix-messages.ts';
import { FixOrderFields1764260010000 } from './1764260010000-order-fields.ts';
import { FixExchangeReasons1764260020000 } from './1764260020000-exchange-reasons.ts';
import { FixPasswordChanges1764260030000 } from './1764260030000-password-changes.ts';
import { FixDropCopy1764270010000 } from './1764270010000-drop-copy.ts';
import { FixDropCopyTerms1764280010000 } from './1764280010000-drop-copy-terms.ts';

/** The migrations of the FIX adapter's database, oldest first. A migration that was released never changes. */
export const fixMigrations = [
  Guards1763710000000,
  Writer1764070010000,
  Fix1764100010000,
  FixEvidence1764200010000,
  FixMessages1764250010000,
  FixOrderFields1764260010000,
  FixExchangeReasons1764260020000,
  FixPasswordChanges1764260030000,
  FixDropCopy1764270010000,
  FixDropCopyTerms1764280010000,
];
