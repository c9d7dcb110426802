import type { DescEnum } from '@bufbuild/protobuf';
import { AllocationStateSchema } from '../../gen/marina/gateway/v1/allocations_pb.ts';
import { ApplicationStateSchema } from '../../gen/marina/gateway/v1/applications_pb.ts';
import { type Event, EventSchema } from '../../gen/marina/gateway/v1/events_pb.ts';
import { OrderStateSchema } from '../../gen/marina/gateway/v1/orders_pb.ts';
import { WithdrawalStateSchema } from '../../gen/marina/gateway/v1/withdrawals_pb.ts';
import { codeBlock } from '../code-block.ts';
import { answerMembers } from '../fields.ts';
import { html } from '../html.ts';
import { inlineMarkdown } from '../markdown.ts';
import { enumValues } from '../openapi/schemas.ts';
import type { Reference } from '../reference.ts';
import type { NavigationLink, PageParts } from './layout.ts';
import { pretty } from './reference.ts';

/** The kinds of objects that events are about, by their field in `Event.data`. */
const kinds: Readonly<Record<NonNullable<Event['data']['case']>, { title: string; states: DescEnum }>> = {
  order: { title: 'Orders', states: OrderStateSchema },
  application: { title: 'Applications', states: ApplicationStateSchema },
  allocation: { title: 'Allocations', states: AllocationStateSchema },
  withdrawal: { title: 'Withdrawals', states: WithdrawalStateSchema },
};

/** A type of event, and what it tells. */
export interface EventType {
  readonly type: string;
  readonly meaning: string;
}

/** Every type of event about one kind of object: its name and a state, but for the one in which nothing happened yet. */
export function eventTypes({ comments }: Reference): { title: string; types: EventType[] }[] {
  return Object.entries(kinds).map(([kind, { title, states }]) => ({
    title,
    types: enumValues(states, comments)
      .filter(({ word }) => word !== 'sending')
      .map(({ word, meaning }) => ({ type: `${kind}.${word}`, meaning })),
  }));
}

/** The links to the groups of events. */
export function eventLinks(): NavigationLink[] {
  return Object.values(kinds).map(({ title }) => ({ title, href: `/docs/events#${title.toLowerCase()}` }));
}

/** A test event as it is on the wire, but for the spaces. */
const testEvent = `{
  "object": "webhook_test",
  "id": "msg_019a1c3e5b7f2d4860e1a9c3",
  "type": "webhook.test",
  "timestamp": "2026-11-25T09:30:00Z"
}`;

/** Every type of event with the body of a real one. */
export function eventsPage(reference: Reference): PageParts {
  const { comments, examples } = reference;
  const groups = eventTypes(reference).map(
    ({
      title,
      types,
    }) => html`<h2 id="${title.toLowerCase()}"><a class="anchor" href="#${title.toLowerCase()}">${title}</a></h2>
${types.map(
  ({ type, meaning }) => html`<section class="event" id="${type}">
<h3><a class="anchor" href="#${type}"><code>${type}</code></a></h3>
<p>${inlineMarkdown(meaning)}</p>
<details><summary>A real one</summary>${codeBlock(pretty(examples.events[type]), 'json')}</details>
</section>
`,
)}`,
  );
  return {
    path: '/docs/events',
    title: 'Events',
    lead: 'Every change to your orders, applications, allocations and withdrawals, in order and without a gap.',
    content: html`<div class="prose">
<p>An event tells of one change to one object. It comes to your <a href="/docs/webhooks">webhook endpoint</a>, and stays in <a href="/docs/reference/events#listEvents">the feed</a> for 30 days, whether or not your endpoint took it; over gRPC and Connect the feed can be <a href="/docs/reference/events#watchEvents">watched</a> as it grows.</p>
<p>Versions count a partner’s events: 1, 2, 3 and so on, none left out. Webhooks can come twice and out of order: drop a <code>webhook-id</code> you have seen, and an event whose version is lower than the last you applied to its object. New types can appear without notice: ignore those you do not handle.</p>
</div>
<h2 id="object"><a class="anchor" href="#object">An event</a></h2>
${answerMembers(EventSchema, comments)}
${groups}
<h2 id="test"><a class="anchor" href="#test">A test</a></h2>
<section class="event" id="webhook.test">
<h3><a class="anchor" href="#webhook.test"><code>webhook.test</code></a></h3>
<p>Not an event, but sent like one: it shows whether <a href="/docs/webhooks#try-your-endpoint">your endpoint</a> answers, when you ask for it in a sandbox or the operator does. It comes to the endpoint only, is in no feed, and has no version and no <code>data</code>. Its <code>object</code> is <code>webhook_test</code>. Answer with a 2xx.</p>
${codeBlock(testEvent, 'json')}
</section>`,
  };
}
