const soh = '\u0001';

/** A message with one field of its body written otherwise, and a right CheckSum again. The length must stay. */
export function retagged(whole: Buffer, from: string, to: string): Buffer {
  return withCheckSum(withoutCheckSum(whole).replace(`${soh}${from}${soh}`, `${soh}${to}${soh}`));
}

/** A message as it is without OrigSendingTime 122. */
export function withoutOrigSendingTime(whole: Buffer): Buffer {
  const fields = withoutCheckSum(whole).split(soh);
  const field = fields.find((each) => each.startsWith('122='));
  if (field === undefined) return whole;
  const length = fields.find((each) => each.startsWith('9=')) ?? '';
  const shorter = `9=${Number(length.slice(2)) - field.length - 1}`;
  const kept = fields.filter((each) => each !== field).map((each) => (each === length ? shorter : each));
  return withCheckSum(kept.join(soh));
}

function withoutCheckSum(whole: Buffer): string {
  return whole.toString('latin1').slice(0, -'10=000|'.length);
}

function withCheckSum(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  const sum = [...bytes].reduce((total, byte) => total + byte, 0) % 256;
  return Buffer.concat([bytes, Buffer.from(`10=${String(sum).padStart(3, '0')}${soh}`, 'latin1')]);
}
