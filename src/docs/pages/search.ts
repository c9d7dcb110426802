import { catalogue, type ErrorCode } from '../../lib/errors.ts';
import { commentOf, firstSentence } from '../comments.ts';
import { pathTemplate } from '../openapi/operations.ts';
import type { Reference } from '../reference.ts';
import { eventTypes } from './events.ts';
import { guideLinks, guides } from './guides.ts';
import { lowerFirst, objectsOf, titleOf } from './reference.ts';

/** Something that can be found: its title, where it is, what kind it is, and more words it is found by. */
type Found = readonly [title: string, href: string, kind: string, words: string];

/** All that can be found, as the script reads it. */
export function searchIndex(reference: Reference): readonly Found[] {
  const { operations, comments } = reference;
  const objects = [...new Set(operations.flatMap(({ output }) => objectsOf(output)))];
  return [
    ...guides.flatMap((guide): Found[] => [
      [guide.title, guide.path, 'Guide', guide.lead],
      ...guideLinks(guide).map(({ title, href }): Found => [title, href, guide.title, '']),
    ]),
    ...operations.map(({ method, http }): Found => {
      const words = [
        http?.method,
        http && pathTemplate(http),
        method.localName,
        firstSentence(commentOf(comments, method)),
      ];
      return [titleOf(method.name), `/docs/reference#${method.localName}`, method.parent.name, words.join(' ')];
    }),
    ...objects.map((desc): Found => {
      const words = desc.fields.map(({ name }) => name).join(' ');
      return [`The ${lowerFirst(titleOf(desc.name))} object`, `/docs/reference#object-${desc.name}`, 'Object', words];
    }),
    ...eventTypes(reference).flatMap(({ types }) =>
      types.map(({ type, meaning }): Found => [type, `/docs/events#${type}`, 'Event', meaning]),
    ),
    ...(Object.keys(catalogue) as ErrorCode[]).map((code): Found => {
      return [code, `/docs/errors#${code}`, 'Error', catalogue[code].message];
    }),
  ];
}
