import { changingSecret, orNone, setting, text, wholeNumber } from '../../kit/settings.ts';

const name = text(/^[!-<>-~]{1,64}$/, '1 to 64 characters without spaces and `=`');

/** The settings of the drop copy. */
export const dropCopySettings = {
  dropCopyAddress: setting(
    'MARINA_FIX_DROP_COPY_ADDRESS',
    'a second session that brings copies of the reports, against which trades are compared, as host:port; none: there is no drop copy',
    '',
    orNone(text(/^[^,]+:\d+$/, 'host:port')),
  ),
  dropCopySenderCompId: setting(
    'MARINA_FIX_DROP_COPY_SENDER_COMP_ID',
    'our name in that session (SenderCompID)',
    '',
    orNone(name),
  ),
  dropCopyTargetCompId: setting(
    'MARINA_FIX_DROP_COPY_TARGET_COMP_ID',
    "the other side's name in it (TargetCompID)",
    '',
    orNone(name),
  ),
  dropCopyUsername: setting('MARINA_FIX_DROP_COPY_USERNAME', 'the Username of its Logon', '', orNone(name)),
  dropCopyPassword: setting(
    'MARINA_FIX_DROP_COPY_PASSWORD',
    'the Password of its Logon',
    '',
    changingSecret(orNone(text(/^[ -~]{1,128}$/, 'at most 128 characters'))),
  ),
  dropCopyGraceSeconds: setting(
    'MARINA_FIX_DROP_COPY_GRACE_SECONDS',
    'how much later one of the two sessions may bring a trade than the other, in seconds',
    '60',
    wholeNumber(1, 3_600),
  ),
};

/** Returns the faults of the settings of the drop copy together. */
export function dropCopyProblems(values: {
  readonly dropCopyAddress: string | undefined;
  readonly dropCopySenderCompId: string | undefined;
  readonly dropCopyTargetCompId: string | undefined;
}): string[] {
  const hasNames = values.dropCopySenderCompId !== undefined && values.dropCopyTargetCompId !== undefined;
  return values.dropCopyAddress === undefined || hasNames
    ? []
    : [
        'MARINA_FIX_DROP_COPY_ADDRESS needs MARINA_FIX_DROP_COPY_SENDER_COMP_ID and MARINA_FIX_DROP_COPY_TARGET_COMP_ID',
      ];
}
