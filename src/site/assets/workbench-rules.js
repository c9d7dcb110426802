/** The rules of the workbench: the orders, events, texts and times that it shows. They need no browser, so that tests run them as they are. */

const maxOrders = 100;
const maxEvents = 200;
const finalStates = new Set(['filled', 'rejected', 'refused', 'cancelled', 'expired']);
const tones = {
  good: ['filled', 'delivered', 'opened', 'booked', 'completed'],
  bad: ['rejected', 'refused', 'endpoint_failed', 'event_failed'],
  warn: ['uncertain', 'waiting', 'sending'],
  plain: ['cancelled', 'expired', 'unplaced', 'returned'],
};

/** The sentence about a key that could not be opened, or that is good no longer. */
export function sentenceFor({ status, code, message }) {
  if (status === 401) {
    return 'The gateway does not take this key. Check that it is whole, was made in this sandbox, was not revoked, and may be used from your address.';
  }
  if (code === 'insufficient_scope') return 'This key may not read. The workbench needs a key with the scope read.';
  return message;
}

/** The events and orders after events came, oldest first, and those of them that are new. An order is as its last event tells. */
export function withEvents({ events, orders }, incoming) {
  const known = new Set(events.map(({ id }) => id));
  const fresh = incoming.filter(({ id }) => !known.has(id));
  const merged = new Map(orders);
  for (const { data } of fresh) if (data.object === 'order') merged.set(data.id, data);
  return { fresh, events: [...fresh.toReversed(), ...events].slice(0, maxEvents), orders: merged };
}

/** The newest orders, newest first. Their ids grow with the time. */
export function newestOrders(orders) {
  return [...orders.values()].sort((one, other) => (one.id < other.id ? 1 : -1)).slice(0, maxOrders);
}

/** One sentence for all events that came since the last one. */
export function newsText(news) {
  const { type } = news.at(-1);
  return news.length === 1 ? `New event: ${type}.` : `${news.length} new events, the last one ${type}.`;
}

/**
 * Chooses an order, and reads it with its steps and events, or the problem with it. Undefined if another order was chosen, this one
 * was read again, or the key was forgotten, before the answers came: `current` gives the session that is open now.
 */
export async function readOrder(session, id, current) {
  session.chosen.orders = id;
  const read = {};
  session.lastRead = read;
  const isChosen = () => current() === session && session.chosen.orders === id && session.lastRead === read;
  const { gateway } = session;
  try {
    const [order, history, events] = await Promise.all([
      gateway.read(`/v1/orders/${id}`),
      gateway.read(`/v1/orders/${id}/history?limit=100`),
      gateway.read(`/v1/orders/${id}/events?limit=100`),
    ]);
    return isChosen() ? { order, steps: history.data, events: events.data } : undefined;
  } catch (error) {
    return isChosen() ? { problem: error.message } : undefined;
  }
}

/** Whether nothing can become of an order any more. */
export function isOver({ state }) {
  return finalStates.has(state);
}

/** The name of the colour in which a state is shown. */
export function toneOf(state) {
  return Object.keys(tones).find((name) => tones[name].includes(state)) ?? 'going';
}

/** The steps of an order, each followed by the event that it made: the first one left that tells of its state. */
export function timelineOf(steps, events) {
  const left = [...events];
  return steps.flatMap((step) => {
    const at = left.findIndex(({ data }) => data.state === step.state);
    const made = at < 0 || step.kind === 'stored' || step.kind === 'sent' ? [] : left.splice(at, 1);
    const isLast = step === steps.at(-1);
    return [{ step }, ...[...made, ...(isLast ? left : [])].map((event) => ({ event }))];
  });
}

export function stepText({ detail, price_kobo: price }) {
  return price === null ? detail : `${detail.replace(/\.$/, '')} at ${naira(price)}`;
}

/** An order's limit, or its type if it has none, and how long it stands. */
export function priceText({ price_kobo: price, type, time_in_force: timeInForce }) {
  return `${price === null ? type : naira(price)}, ${timeInForce}`;
}

/** The body of a call that fills an order: all that is left of it, if no number of shares is given. */
export function fillBody(shares) {
  return shares.trim() === '' ? {} : { quantity: Number(shares) };
}

/** A sentence about the answer to a call that steers an order. */
export function saidBy({ object, kind, quantity, price_kobo: price, state }) {
  if (object !== 'sandbox_report') return `The order is ${state}.`;
  if (kind === 'trade') return `The exchange reported a trade of ${quantity} at ${naira(price)}.`;
  return `The exchange reported: ${kind}.`;
}

/** The market's session; undefined stands for a market that could not be read. */
export function marketText({ session, trading_paused: isPaused } = {}) {
  return isPaused ? 'paused by the operator' : (session ?? 'not known');
}

/** The place of a request's operation in the reference; undefined if it had none. */
export function operationHref({ operation }) {
  const [service, local] = operation?.split('.') ?? [];
  if (local === undefined) return undefined;
  return `/docs/reference/${service.toLowerCase()}#${local[0].toLowerCase()}${local.slice(1)}`;
}

export function methodText({ method, protocol }) {
  if (protocol === 'grpc') return 'RPC';
  return method === 'DELETE' ? 'DEL' : method;
}

export function cameOver({ protocol }) {
  return { rest: 'over REST', grpc: 'over gRPC', connect: 'over Connect' }[protocol] ?? protocol;
}

/** The endpoint's answer to an attempt; undefined stands for no attempt yet. */
export function answerText(attempt) {
  if (attempt === undefined) return 'not sent yet';
  if (attempt.status !== null) return `answered ${attempt.status}`;
  return `no answer: ${attempt.error ?? 'not known'}`;
}

/** The sentence about a test event. */
export function testText(test) {
  const answer = test.status === null ? `gave ${answerText(test)}` : answerText(test);
  return `Your endpoint ${answer} in ${test.duration_ms} ms.`;
}

/** The time of day of a timestamp, in UTC. */
export function timeOfDay(timestamp) {
  return timestamp.slice(11, 19);
}

export function dateAndTime(at) {
  return at
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z/, ' UTC');
}

export function naira(kobo) {
  return `₦${Math.floor(kobo / 100).toLocaleString('en')}.${String(kobo % 100).padStart(2, '0')}`;
}
