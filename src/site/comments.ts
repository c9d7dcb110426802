import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DescEnum, DescEnumValue, DescField, DescMessage, DescMethod, DescService } from '@bufbuild/protobuf';

/** The protos' comments, by full names. */
export type Comments = Readonly<Record<string, string>>;

/** Reads the comments that were written down when the code was generated. */
export function readComments(): Comments {
  return JSON.parse(readFileSync(join(import.meta.dirname, '../gen/comments.json'), 'utf8')) as Comments;
}

/**
 * Returns a proto's comment on one of its parts. Throws where it says nothing: everything partners meet is described.
 */
export function commentOf(
  comments: Comments,
  desc: DescService | DescMethod | DescMessage | DescField | DescEnum | DescEnumValue,
): string {
  const name = 'typeName' in desc ? desc.typeName : `${desc.parent?.typeName}.${desc.name}`;
  const comment = comments[name];
  if (comment === undefined) throw new Error(`${name} has no comment`);
  return comment;
}

/** The first sentence of a text. */
export function firstSentence(text: string): string {
  const [paragraph = ''] = text.split('\n\n');
  const line = paragraph.replaceAll('\n', ' ');
  return /^.*?[.](?=\s|$)/.exec(line)?.[0] ?? line;
}
