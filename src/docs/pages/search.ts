import { status as grpcStatus } from '@grpc/grpc-js';
import { ApiError, catalogue, type ErrorCode } from '../../lib/errors.ts';
import { rpcStatus } from '../../transport/rpc.ts';
import { commentOf, firstSentence } from '../comments.ts';
import { wordsByPart } from '../markdown.ts';
import { pathTemplate } from '../openapi/operations.ts';

import type { Reference } from '../reference.ts';
import { titleOf } from '../samples/names.ts';
import { readAdvice } from './errors.ts';
import { eventTypes } from './events.ts';
import { guideLinks, guides, guideText } from './guides.ts';
import { lowerFirst, objectsOf } from './reference.ts';
import { hasWorkbench, workbenchPath } from './workbench.ts';

/** Something that can be found: its title, where it is, what kind it is, and more words it is found by. */
type Found = readonly [title: string, href: string, kind: string, words: string];

const workbench: Found = [
  'Workbench',
  workbenchPath,
  'Sandbox',
  'console dashboard orders timeline requests log events live deliveries test webhook steer clock try a call',
];

/** All that can be found, as the script reads it. */
export function searchIndex(reference: Reference): readonly Found[] {
  const { operations, comments } = reference;
  const advice = readAdvice();
  const objects = [...new Set(operations.flatMap(({ output }) => objectsOf(output)))];
  return [
    ...guides.flatMap((guide): Found[] => {
      const words = wordsByPart(guideText(guide), 2);
      const parts = guideLinks(guide).map(({ title, href }): Found => {
        return [title, href, guide.title, words.get(href.slice(href.indexOf('#') + 1)) ?? ''];
      });
      return [[guide.title, guide.path, 'Guide', `${guide.lead} ${words.get('') ?? ''}`], ...parts];
    }),
    ...(hasWorkbench(reference) ? [workbench] : []),
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
    ['webhook.test', '/docs/events#webhook.test', 'Event', 'test event of a webhook endpoint, ping'],
    ...(Object.keys(catalogue) as ErrorCode[]).map((code): Found => {
      const error = new ApiError(code);
      const words = [error.status, grpcStatus[rpcStatus(error)], error.message, advice.get(code)?.text];
      return [code, `/docs/errors#${code}`, 'Error', words.join(' ')];
    }),
  ];
}
