/** The workbench: what a partner's programs do in the sandbox, as they do it. All it knows is in the memory of this page. */
import { all, base, element, endTrying, nameOwnAccount } from './docs.js';
import { indented, isSandboxKey, stepTo } from './docs-rules.js';
import { Gateway } from './workbench-gateway.js';
import {
  answerText,
  cameOver,
  dateAndTime,
  fillBody,
  isOver,
  marketText,
  methodText,
  newestOrders,
  newsText,
  operationHref,
  priceText,
  readOrder,
  saidBy,
  sentenceFor,
  stepText,
  testText,
  timelineOf,
  timeOfDay,
  toneOf,
  withEvents,
} from './workbench-rules.js';

const requestsEveryMs = 2_000;
const deliveriesEveryMs = 3_000;
/** New events are told to a screen reader together, at most so often. */
const newsEveryMs = 6_000;

const byId = (id) => document.getElementById(id);
const keyInput = byId('key');
const bench = byId('bench');

/** What is shown of one key; undefined while none is open. */
let session;

byId('open').hidden = false;
byId('open').querySelector('form').addEventListener('submit', open);
byId('forget').addEventListener('click', () => close());
byId('test').addEventListener('click', sendTest);
byId('call').addEventListener('change', showCall);
startTabs();
showCall();

async function open(event) {
  event.preventDefault();
  const problem = byId('key-problem');
  problem.textContent = '';
  const key = keyInput.value.trim();
  if (!isSandboxKey(key)) {
    refuseKey('This is not a key of a sandbox. Such a key begins with marina_test_.');
    return;
  }
  const button = byId('open').querySelector('button');
  button.disabled = true;
  const gateway = new Gateway(key, base);
  try {
    // The first read shows whether the key is good.
    const latest = await gateway.read('/v1/sandbox/events?limit=50');
    const [orders, clock] = await Promise.all([gateway.read('/v1/orders?limit=50'), gateway.read('/v1/sandbox/clock')]);
    begin(gateway, latest, orders.data, clock);
    nameOwnAccount(key);
  } catch (error) {
    gateway.close();
    refuseKey(sentenceFor(error));
  } finally {
    button.disabled = false;
  }
}

function refuseKey(text) {
  byId('key-problem').textContent = text;
  keyInput.setAttribute('aria-invalid', 'true');
  keyInput.focus();
}

function begin(gateway, latest, orders, clock) {
  session = {
    gateway,
    orders: new Map(orders.map((order) => [order.id, order])),
    events: latest.data,
    requests: [],
    deliveries: [],
    chosen: {},
    timers: [],
    unseen: 0,
    news: [],
    newsAt: 0,
  };
  keyInput.removeAttribute('aria-invalid');
  byId('open').hidden = true;
  bench.hidden = false;
  const began = performance.now();
  const now = Date.parse(clock.now);
  const tick = () => {
    byId('time').textContent = dateAndTime(new Date(now + performance.now() - began));
  };
  tick();
  every(1_000, tick);
  every(30_000, showMarket, { now: true });
  every(requestsEveryMs, () => isShown('requests') && showRequests());
  every(deliveriesEveryMs, () => isShown('webhooks') && showDeliveries());
  every(newsEveryMs, tellNews);
  renderOrders();
  renderEvents();
  chooseTab(byId('tab-orders'));
  byId('tab-orders').focus();
  const own = session;
  gateway.follow(latest.feed_cursor, onEvents, showLive).catch((error) => {
    if (session === own) close(sentenceFor(error));
  });
}

/** Forgets the key and all that it showed. */
function close(problem = '') {
  if (session === undefined) return;
  session.gateway.close();
  endTrying();
  for (const timer of session.timers) clearInterval(timer);
  session = undefined;
  keyInput.value = '';
  bench.hidden = true;
  byId('open').hidden = false;
  for (const list of all('.rows', bench)) list.replaceChildren();
  for (const name of ['orders', 'events', 'requests', 'deliveries']) resetDetail(name);
  for (const result of all('.result, #test-result, #news', bench)) result.replaceChildren();
  for (const body of all('.try form', bench)) body.reset();
  byId('key-problem').textContent = problem;
  keyInput.focus();
}

function every(ms, work, { now = false } = {}) {
  const own = session;
  const run = () => {
    if (session === own && !document.hidden) work();
  };
  session.timers.push(setInterval(run, ms));
  if (now) run();
}

/** Tabs as the ARIA practices describe them: the arrows move, and what has the focus is shown. */
function startTabs() {
  const tabs = all('[role=tab]', bench);
  for (const [at, tab] of tabs.entries()) {
    tab.addEventListener('click', () => chooseTab(tab));
    tab.addEventListener('keydown', ({ key }) => {
      const to = stepTo(key, at, tabs.length);
      if (to === undefined) return;
      const next = tabs[to];
      next.focus();
      chooseTab(next);
    });
  }
}

function chooseTab(chosen) {
  for (const tab of all('[role=tab]', bench)) {
    const isChosen = tab === chosen;
    tab.setAttribute('aria-selected', String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
    byId(tab.getAttribute('aria-controls')).hidden = !isChosen;
  }
  if (session === undefined) return;
  if (isShown('events')) countUnseen(0);
  if (isShown('requests')) showRequests();
  if (isShown('webhooks')) showDeliveries();
}

function isShown(name) {
  return !byId(`pane-${name}`).hidden;
}

function countUnseen(count) {
  session.unseen = count;
  const mark = byId('tab-events').querySelector('.count');
  mark.hidden = count === 0;
  mark.textContent = ` ${count} new`;
}

function showLive(state) {
  const text = { live: 'live', waiting: 'connecting again …' }[state];
  const place = byId('live');
  if (place.textContent !== text) place.textContent = text;
  place.dataset.state = state;
}

async function showMarket() {
  const own = session;
  const market = await session.gateway.read('/v1/market').catch(() => undefined);
  if (session !== own) return;
  byId('market').textContent = marketText(market);
}

function onEvents(events) {
  if (session === undefined) return;
  const { fresh, ...merged } = withEvents(session, events);
  if (fresh.length === 0) return;
  Object.assign(session, merged);
  session.news.push(...fresh);
  if (performance.now() - session.newsAt >= newsEveryMs) tellNews();
  if (!isShown('events')) countUnseen(session.unseen + fresh.length);
  renderEvents(new Set(fresh.map(({ id }) => id)));
  renderOrders();
  const { orders: chosen } = session.chosen;
  if (fresh.some(({ data }) => data.id === chosen)) showOrder(chosen);
}

/** One sentence for all that came since the last one. */
function tellNews() {
  const { news } = session;
  if (news.length === 0) return;
  byId('news').textContent = newsText(news);
  session.news = [];
  session.newsAt = performance.now();
}

function renderOrders() {
  const orders = newestOrders(session.orders);
  session.orders = new Map(orders.map((order) => [order.id, order]));
  const rows = orders.map((order) => ({
    id: order.id,
    parts: [
      chip(order.state),
      element('strong', { textContent: `${order.side} ${order.quantity} ${order.symbol}` }),
      small(order.client_reference ?? order.account),
    ],
    at: order.created_at,
    choose: () => showOrder(order.id),
  }));
  renderRows('orders', rows, 'There is no order yet. Place one with your program, or with “Try a call”.');
}

function renderEvents(fresh = new Set()) {
  const rows = session.events.map((event) => ({
    id: event.id,
    isFresh: fresh.has(event.id),
    at: event.timestamp,
    parts: [chip(event.data.state, event.type), small(event.data.id)],
    choose: () => showEvent(event),
  }));
  renderRows(
    'events',
    rows,
    'There is no event yet. Each change to an order, an application, an allocation or a withdrawal makes one.',
  );
}

async function showRequests() {
  const own = session;
  const page = await session.gateway.read('/v1/sandbox/requests?limit=100').catch(() => undefined);
  if (session !== own || page === undefined) return;
  session.requests = page.data;
  const rows = page.data.map((request) => ({
    id: request.id,
    parts: [
      statusOf(request.status),
      methodOf(request),
      element('strong', { textContent: request.path }),
      small(`${request.code ?? ''} ${request.duration_ms} ms`.trim()),
    ],
    at: request.at,
    choose: () => showRequest(request),
  }));
  renderRows('requests', rows, 'There was no request in the last hour.');
}

async function showDeliveries() {
  const own = session;
  let page;
  try {
    page = await session.gateway.read('/v1/sandbox/webhook/deliveries?limit=50');
  } catch (error) {
    if (session === own) renderRows('deliveries', [], error.message);
    return;
  }
  if (session !== own) return;
  session.deliveries = page.data;
  const rows = page.data.map((delivery) => ({
    id: delivery.event,
    parts: [
      chip(delivery.state),
      element('strong', { textContent: delivery.type }),
      small(answerText(delivery.attempts.at(-1))),
    ],
    at: delivery.created_at,
    choose: () => showDelivery(delivery),
  }));
  renderRows('deliveries', rows, 'No event was sent to your endpoint yet.');
  const chosen = page.data.find(({ event }) => event === session.chosen.deliveries);
  if (chosen !== undefined) showDelivery(chosen);
}

/** Shows rows, and keeps those that are there already, so that the focus stays where it is. */
function renderRows(name, rows, emptyText) {
  const list = byId(name);
  const shown = new Map([...list.children].map((item) => [item.dataset.id, item]));
  const items = rows.map(({ id, parts, at, choose, isFresh }) => {
    const item = shown.get(id) ?? element('li');
    const button = item.querySelector('button') ?? item.appendChild(element('button', { type: 'button' }));
    item.dataset.id = id;
    if (isFresh) item.classList.add('fresh');
    button.replaceChildren(what(...parts), time(at));
    button.onclick = () => {
      choice(name, id);
      choose();
      showDetailOnNarrow(name);
    };
    return item;
  });
  const isSame = items.length === list.children.length && items.every((item, at) => list.children[at] === item);
  const focused = list.contains(document.activeElement) ? document.activeElement : undefined;
  if (!isSame) list.replaceChildren(...items);
  focused?.focus({ preventScroll: true });
  const empty = byId(`${name}-empty`);
  empty.hidden = rows.length > 0;
  empty.textContent = emptyText;
  choice(name, session.chosen[name]);
}

function choice(name, id) {
  session.chosen[name] = id;
  for (const item of byId(name).children) {
    const button = item.querySelector('button');
    if (item.dataset.id === id) button.setAttribute('aria-current', 'true');
    else button.removeAttribute('aria-current');
  }
}

/** Where list and detail stand below each other, the reader is led to the detail. */
function showDetailOnNarrow(name) {
  if (matchMedia('(min-width: 60.01rem)').matches) return;
  const detail = byId(`${name}-detail`);
  detail.focus({ preventScroll: true });
  detail.scrollIntoView({ block: 'start' });
}

const hints = new Map(all('.detail', bench).map((detail) => [detail.id, detail.textContent]));

function resetDetail(name) {
  const detail = byId(`${name}-detail`);
  delete detail.dataset.shown;
  detail.replaceChildren(element('p', { className: 'hint', textContent: hints.get(detail.id) }));
}

/** An order with its steps and events, and the buttons that decide what becomes of it. */
async function showOrder(id) {
  const detail = byId('orders-detail');
  const read = await readOrder(session, id, () => session);
  if (read === undefined) return;
  const { order, steps, events, problem } = read;
  if (problem !== undefined) {
    detail.replaceChildren(element('p', { className: 'problem', textContent: problem }));
    return;
  }
  session.orders.set(id, order);
  if (detail.dataset.shown !== id || detail.querySelector('.steer') === null) {
    detail.replaceChildren(
      element('h2', { className: 'name' }),
      element('dl', { className: 'properties' }),
      steering(id),
      element('h3', { textContent: 'Timeline' }),
      element('ol', { className: 'timeline' }),
      element('details', { className: 'body' }),
    );
    detail.dataset.shown = id;
  }
  fillOrderDetail(detail, order, steps, events);
}

function fillOrderDetail(detail, order, steps, events) {
  const name = element('code', { textContent: order.id });
  detail.querySelector('.name').replaceChildren(`${order.side} ${order.quantity} ${order.symbol} `, chip(order.state));
  detail
    .querySelector('.properties')
    .replaceChildren(
      ...property('Id', name),
      ...property('Account', order.account),
      ...property('Price', priceText(order)),
      ...property('Filled', `${order.filled_quantity} of ${order.quantity}`),
      ...(order.reason === null ? [] : property('Reason', order.reason)),
    );
  for (const button of all('[data-ends]', detail)) button.disabled = isOver(order);
  detail
    .querySelector('.timeline')
    .replaceChildren(
      ...timelineOf(steps, events).map(({ step, event }) => (step === undefined ? eventItem(event) : stepItem(step))),
    );
  const body = detail.querySelector('.body');
  body.replaceChildren(element('summary', { textContent: 'The order as JSON' }), code(order));
}

function stepItem(step) {
  const { at, kind, state } = step;
  const item = element('li', { className: 'step' });
  const name = element('strong', { textContent: kind.replaceAll('_', ' ') });
  item.append(what(name, chip(state)), time(at), element('p', { textContent: stepText(step) }));
  return item;
}

function eventItem(event) {
  const item = element('li', { className: 'event-step' });
  const link = element('button', { type: 'button', className: 'link', textContent: event.type });
  link.addEventListener('click', () => {
    const tab = byId('tab-events');
    chooseTab(tab);
    choice('events', event.id);
    showEvent(event);
    byId('events-detail').focus();
  });
  item.append(what('event', link, small(`version ${event.version}`)), time(event.timestamp));
  return item;
}

/** What can be done to an order. The exchange reports it, and the order changes a moment later. */
function steering(id) {
  const group = element('div', { className: 'steer', role: 'group' });
  group.setAttribute('aria-label', 'Steer this order');
  const shares = element('input', { type: 'text', inputMode: 'numeric', placeholder: 'all that is left', size: 12 });
  const label = element('label', { textContent: 'Shares ' });
  label.append(shares);
  const result = element('p', { className: 'said', role: 'status' });
  const button = (text, work, isEnd = true) => {
    const made = element('button', { type: 'button', textContent: text });
    if (isEnd) made.dataset.ends = '';
    made.addEventListener('click', () => steer(made, result, id, work));
    return made;
  };
  const { gateway } = session;
  const path = `/v1/sandbox/orders/${id}`;
  const [fill, others] = [element('div', { className: 'line' }), element('div', { className: 'line' })];
  fill.append(
    label,
    button('Fill', () => gateway.act('POST', `${path}/fill`, fillBody(shares.value)), false),
  );
  others.append(
    button('Expire', () => gateway.act('POST', `${path}/expire`, {})),
    button('Reject', () => gateway.act('POST', `${path}/reject`, {})),
    button('Repeat the report', () => gateway.act('POST', `${path}/repeat`, {}), false),
    button('Cancel', () => gateway.act('DELETE', `/v1/orders/${id}`)),
  );
  group.append(fill, others, result);
  return group;
}

async function steer(button, result, id, work) {
  const own = session;
  button.disabled = true;
  result.className = 'said';
  result.textContent = 'Sending…';
  try {
    const answer = await work();
    result.textContent = saidBy(answer);
  } catch (error) {
    result.className = 'said problem';
    result.textContent = error.message;
  }
  button.disabled = false;
  if (session === own) showOrder(id);
}

function showEvent(event) {
  const detail = byId('events-detail');
  const name = element('h2', { className: 'name', textContent: `${event.type} ` });
  const about = element('button', { type: 'button', className: 'link', textContent: event.data.id });
  const isOrder = event.data.object === 'order';
  about.addEventListener('click', () => {
    chooseTab(byId('tab-orders'));
    choice('orders', event.data.id);
    showOrder(event.data.id);
    byId('orders-detail').focus();
  });
  const delivery = element('button', { type: 'button', className: 'link', textContent: 'its delivery' });
  delivery.addEventListener('click', () => {
    session.chosen.deliveries = event.id;
    chooseTab(byId('tab-webhooks'));
    byId('deliveries-detail').focus();
  });
  const properties = element('dl', { className: 'properties' });
  properties.append(
    ...property('Id', element('code', { textContent: event.id })),
    ...property('About', isOrder ? about : element('code', { textContent: event.data.id })),
    ...property('Version', String(event.version)),
    ...property('Time', dateAndTime(new Date(event.timestamp))),
    ...property('Webhook', delivery),
  );
  detail.replaceChildren(name, properties, code(event));
}

function showRequest(request) {
  const detail = byId('requests-detail');
  const name = element('h2', { className: 'name' });
  name.append(methodOf(request), `${request.path} `, statusOf(request.status));
  const properties = element('dl', { className: 'properties' });
  const link = (href, text) => element('a', { href: base + href, textContent: text });
  const href = operationHref(request);
  const operation = href === undefined ? 'none at this path' : link(href, request.operation);
  properties.append(
    ...property('Request id', element('code', { textContent: request.id })),
    ...property('Operation', operation),
    ...(request.code === null ? [] : property('Error', link(`/docs/errors#${request.code}`, request.code))),
    ...(request.about === null ? [] : property('About', element('code', { textContent: request.about }))),
    ...property('Key', element('code', { textContent: request.key })),
    ...property('Came', `${cameOver(request)}, answered in ${request.duration_ms} ms`),
    ...property('Time', dateAndTime(new Date(request.at))),
  );
  detail.replaceChildren(
    name,
    properties,
    element('h3', { textContent: 'Request' }),
    bodyOf(request.request_body, 'It has no body, or its body is not kept.'),
    element('h3', { textContent: 'Answer' }),
    bodyOf(request.answer_body, 'The body of this answer is not kept.'),
  );
}

function bodyOf(text, none) {
  return text === null ? element('p', { className: 'hint', textContent: none }) : codeOf(indented(text));
}

function showDelivery(delivery) {
  const detail = byId('deliveries-detail');
  const name = element('h2', { className: 'name', textContent: `${delivery.type} ` });
  name.append(chip(delivery.state));
  const properties = element('dl', { className: 'properties' });
  const next = delivery.next_attempt_at;
  properties.append(
    ...property('Event', element('code', { textContent: delivery.event })),
    ...(delivery.about === null ? [] : property('About', element('code', { textContent: delivery.about }))),
    ...(next === null ? [] : property('Next attempt', dateAndTime(new Date(next)))),
  );
  const list = element('ol', { className: 'attempts' });
  list.append(
    ...delivery.attempts.map((attempt) => {
      const item = element('li');
      const took = `${attempt.duration_ms} ms${attempt.is_probe ? ', a probe of the paused endpoint' : ''}`;
      const answered = element('strong', { textContent: answerText(attempt) });
      item.append(what(chip(attempt.outcome), answered, small(took)), time(attempt.at));
      return item;
    }),
  );
  const none = element('p', { className: 'hint', textContent: 'It was not sent yet.' });
  detail.replaceChildren(
    name,
    properties,
    element('h3', { textContent: 'Attempts' }),
    delivery.attempts.length === 0 ? none : list,
  );
}

async function sendTest() {
  const own = session;
  const [button, result] = [byId('test'), byId('test-result')];
  button.disabled = true;
  result.className = '';
  result.textContent = 'Sending…';
  try {
    const test = await session.gateway.act('POST', '/v1/sandbox/webhook/test', {});
    if (session !== own) return;
    result.replaceChildren(chip(test.outcome), `${testText(test)} `, small(test.id));
  } catch (error) {
    if (session !== own) return;
    result.className = 'problem';
    result.textContent = error.message;
  } finally {
    button.disabled = false;
  }
}

function showCall() {
  for (const panel of all('.call', bench)) {
    panel.hidden = panel.id !== `call-${byId('call').value}`;
    panel.querySelector('details').open = true;
  }
}

/** A state in its colour, or another text in the colour of that state. */
function chip(state, text = String(state).replaceAll('_', ' ')) {
  return element('span', { className: `chip ${toneOf(state)}`, textContent: text });
}

/** What a row says, before its time. */
function what(...parts) {
  const made = element('span', { className: 'what' });
  made.append(...parts);
  return made;
}

function statusOf(status) {
  return element('span', { className: `status ${status < 400 ? 'good' : 'bad'}`, textContent: String(status) });
}

function methodOf(request) {
  return element('span', { className: `method ${request.method.toLowerCase()}`, textContent: methodText(request) });
}

function small(text) {
  return element('small', { textContent: text });
}

function time(text) {
  const at = new Date(text);
  return element('time', { dateTime: text, title: dateAndTime(at), textContent: timeOfDay(text) });
}

function property(name, value) {
  const definition = element('dd');
  definition.append(value);
  return [element('dt', { textContent: name }), definition];
}

function code(value) {
  return codeOf(JSON.stringify(value, undefined, 2));
}

function codeOf(text) {
  const figure = element('figure', { className: 'code' });
  const pre = element('pre', { tabIndex: 0 });
  pre.append(element('code', { textContent: text }));
  figure.append(pre);
  return figure;
}
