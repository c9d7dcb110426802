import { reading, setting, wholeNumber, yesOrNo } from '../../kit/settings.ts';

/** The settings of the message log. */
export const messageSettings = {
  messageDays: setting(
    'MARINA_FIX_MESSAGES_DAYS',
    'how many days the messages of the session are kept for operators; 0: none is',
    '35',
    wholeNumber(0, 3_650),
  ),
  messageMebibytes: setting(
    'MARINA_FIX_MESSAGES_MEBIBYTES',
    'how much of them is kept at most, in MiB: the oldest are removed first',
    '4096',
    wholeNumber(1, 10_000_000),
  ),
  logsHeartbeats: setting(
    'MARINA_FIX_MESSAGES_HEARTBEATS',
    'whether Heartbeats and TestRequests are among them also if nothing is wrong with them',
    'false',
    yesOrNo(),
  ),
  maskedTags: setting(
    'MARINA_FIX_MESSAGES_MASKED_TAGS',
    'tags whose values are masked in them, and in findings and rejections, in addition to those of credentials and personal data, such as 58,5001',
    '',
    reading('up to 200 tags, separated by commas', parseTags),
  ),
};

function parseTags(text: string): readonly number[] {
  if (text === '') return [];
  const tags = text.split(',').map((tag) => tag.trim());
  if (tags.length > 200 || !tags.every((tag) => /^[1-9]\d{0,8}$/.test(tag))) {
    throw new Error('must be up to 200 tags, separated by commas');
  }
  return tags.map(Number);
}
