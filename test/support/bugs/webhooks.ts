import type { SeededBug } from '../fault/seeded-bugs.ts';

const stored = 'test/gateway/delivery/webhooks/record/store.integration.test.ts';
const attempted = 'test/gateway/delivery/webhooks/record/attempts.integration.test.ts';

export const webhookBugs: readonly SeededBug[] = [
  {
    name: 'an event is acknowledged before it is queued',
    file: 'src/gateway/delivery/webhooks/consumer.ts',
    find: 'return { writes: [insert, markDue(partnersOf(queued), now)],',
    replace:
      'setTimeout(() => void database.write(insert), 50);\n      return { writes: [markDue(partnersOf(queued), now)],',
    test: stored,
    pattern: 'an event that is acknowledged is in the queue',
  },
  {
    name: "an endpoint is sent other partners' events",
    file: 'src/gateway/delivery/webhooks/plan/queue-store.ts',
    find: 'LEFT JOIN feed_events f ON f.partner_id = d.partner_id AND f.version = d.version',
    replace: 'LEFT JOIN feed_events f ON f.version = d.version',
    test: stored,
    pattern: "what is sent to an endpoint is its partner's",
  },
  {
    name: 'an operator sends events again whose time is over',
    file: 'src/gateway/delivery/webhooks/record/delivery-store.ts',
    find: 'now - sentForMs + 1, after',
    replace: 'now - 2 * sentForMs + 1, after',
    test: attempted,
    pattern: 'an event whose time is over is not sent again',
  },
  {
    name: 'what waited while an endpoint was paused stays on its schedule',
    file: 'src/gateway/delivery/webhooks/record/recorder.ts',
    find: 'saveEndpoint(before, isResumed ? startDraining(own) : own);',
    replace: 'saveEndpoint(before, isResumed ? own : own);',
    test: attempted,
    pattern: 'when a pause ends, all that waits goes at once',
  },
  {
    name: 'the lease of an endpoint is believed without its fence',
    file: 'src/gateway/delivery/webhooks/record/recorder.ts',
    find: 'if (endpoint === undefined || endpoint.fence !== attempt.fence) continue;',
    replace: 'if (endpoint === undefined) continue;',
    test: attempted,
    pattern: 'what a process that lost its endpoint still wants to write is refused',
  },
  {
    name: 'an endpoint is taken from a process that lives',
    file: 'src/gateway/delivery/webhooks/plan/endpoint-store.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
    find: 'WHERE e.partner_id IN (${partnerIds}) AND ${isFree(lease)}',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
    replace: 'WHERE e.partner_id IN (${partnerIds})',
    test: stored,
    pattern: 'an endpoint is sent to by one process that lives',
  },
  {
    name: 'an attempt that is recorded again counts again',
    file: 'src/gateway/delivery/webhooks/record/recorder.ts',
    find: 'if (delivery === undefined || delivery.tries >= attempt.number) continue;',
    replace: 'if (delivery === undefined || delivery.tries > attempt.number) continue;',
    test: attempted,
    pattern: 'attempts that are recorded twice',
  },
  {
    name: 'failures of the URL from before a move count against the new one',
    file: 'src/gateway/delivery/webhooks/record/recorder.ts',
    find: 'if (attempt.generation === endpoint.generation) {',
    replace: 'if (attempt.generation <= endpoint.generation) {',
    test: attempted,
    pattern: 'what the URL from before a move did',
  },
  {
    name: 'an attempt from before undoes what an operator asked for',
    file: 'src/gateway/delivery/webhooks/record/recorder.ts',
    find: 'const isSameRound = delivery.round === attempt.round;',
    replace: 'const isSameRound = delivery.round >= attempt.round;',
    test: attempted,
    pattern: 'an event an operator asked for again',
  },
  {
    name: 'endpoints without work are read in each poll',
    file: 'src/gateway/delivery/webhooks/plan/endpoint-store.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
    find: 'sql`e.due_at <= ${new Date(now)}`;',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
    replace: 'sql`COALESCE(e.due_at, 0) <= ${new Date(now)}`;',
    test: stored,
    pattern: 'a poll for work reads nothing of endpoints that have none',
  },
  {
    name: 'an address that stands for another is not judged by that',
    file: 'src/gateway/delivery/webhooks/attempt/addresses.ts',
    find: 'if (embedded !== undefined) return embedded.every(isPublicIPv4);',
    replace: 'if (embedded !== undefined) return true;',
    test: 'test/gateway/delivery/webhooks/attempt/addresses.unit.test.ts',
    pattern: 'is never a special IPv4 address',
  },
  {
    name: 'the signature leaves out when an event is sent',
    file: 'src/gateway/delivery/webhooks/attempt/signature.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
    find: 'const head = `${id}.${timestampSeconds}.`;',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
    replace: 'const head = `${id}.${timestampSeconds > 0 ? 0 : 1}.`;',
    test: 'test/gateway/delivery/webhooks/attempt/signature.unit.test.ts',
    pattern: "is the reference vector's",
  },
];
