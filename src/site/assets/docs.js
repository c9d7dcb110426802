/**
 * What the pages do beyond being read: search, copying code, tabs of languages, where one is, and trying calls. Without it they lose nothing else. The key one
 * tries calls with lives in its field, in this tab's memory: it is stored nowhere, and sent to this gateway only.
 */
import {
  headersShown,
  indented,
  isSandboxKey,
  nameIn,
  nearestLanguage,
  requestOf,
  stepTo,
  withAccount,
} from './docs-rules.js';
import { excerpt, prepare, search } from './search.js';

/** What stands before every path, where the gateway is reached below one. */
export const { base } = document.documentElement.dataset;
export const all = (selector, root = document) => [...root.querySelectorAll(selector)];
/** Ends the calls that are being tried. */
let trying = new AbortController();

openMenu();
addCopyButtons();
markWhereOneIs();
openTarget();
addEventListener('hashchange', openTarget);
startSearch(document.querySelector('.search'));
startTrying();
startTabs();
addEventListener('beforeprint', openAll);
addEventListener('afterprint', closeAgain);

/** On a wide page the menu is always open; on a phone it is opened by hand. */
function openMenu() {
  const menu = document.querySelector('.menu');
  const wide = matchMedia('(min-width: 56.01rem)');
  const follow = () => {
    menu.open = wide.matches;
  };
  wide.addEventListener('change', follow);
  follow();
  menu.addEventListener('click', ({ target }) => {
    if (!wide.matches && target.closest('a')) menu.open = false;
  });
}

function addCopyButtons() {
  if (navigator.clipboard === undefined) return;
  for (const figure of all('figure.code')) figure.append(copyButton(figure));
}

function copyButton(figure) {
  const button = element('button', { type: 'button', className: 'copy', textContent: 'Copy' });
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(figure.querySelector('code').textContent);
    button.textContent = 'Copied';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, 1500);
  });
  return button;
}

/** Marks the link of the part that is being read. */
function markWhereOneIs() {
  const links = new Map();
  for (const link of all('.side ul ul a')) {
    const target = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (target !== null) links.set(target, link);
  }
  let marked;
  const mark = (link) => {
    if (link === marked) return;
    marked?.removeAttribute('aria-current');
    link.setAttribute('aria-current', 'true');
    const side = link.closest('.side');
    const { top, bottom } = link.getBoundingClientRect();
    const frame = side.getBoundingClientRect();
    if (top < frame.top || bottom > frame.bottom) side.scrollTop += top - frame.top - frame.height / 2;
    marked = link;
  };
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) mark(links.get(target));
    },
    { rootMargin: '-15% 0px -75% 0px' },
  );
  for (const target of links.keys()) observer.observe(target);
}

/** On paper every part is open. Those with one name would close each other, so they have none meanwhile. */
const opened = [];
function openAll() {
  for (const details of all('#content details:not([open]):not(.try)')) {
    opened.push([details, details.getAttribute('name')]);
  }
  for (const details of all('#content details[name]')) {
    if (details.open) opened.push([details, details.getAttribute('name'), true]);
    details.removeAttribute('name');
  }
  for (const details of all('#content details:not(.try)')) details.open = true;
}

function closeAgain() {
  for (const [details, , wasOpen = false] of opened) details.open = wasOpen;
  for (const [details, name] of opened.splice(0)) if (name !== null) details.setAttribute('name', name);
}

/** A link may lead into something that is folded. */
function openTarget() {
  const target = document.getElementById(nameIn(location.hash));
  for (const details of target === null ? [] : all(':scope > details', target)) {
    if (!details.classList.contains('try')) details.open = true;
  }
}

function startSearch(box) {
  const input = box.querySelector('input');
  const list = box.querySelector('ul');
  let index;
  let chosen = -1;
  box.hidden = false;
  const load = () => {
    index ??= fetch(`${base}/docs/search.json`)
      .then((response) => response.json())
      .then(prepare);
    return index;
  };
  const choose = (position) => {
    const items = all('[role=option]:not(.none)', list);
    chosen = items.length === 0 ? -1 : (position + items.length) % items.length;
    for (const [at, item] of items.entries()) item.setAttribute('aria-selected', String(at === chosen));
    items[chosen]?.scrollIntoView({ block: 'nearest' });
    if (chosen === -1) input.removeAttribute('aria-activedescendant');
    else input.setAttribute('aria-activedescendant', items[chosen].id);
  };
  const close = () => {
    list.hidden = true;
    input.setAttribute('aria-expanded', 'false');
  };
  const show = async () => {
    const query = input.value;
    if (query.trim() === '') return close();
    const found = search(await load(), query).slice(0, 12);
    // The reader went on typing while the index was loaded.
    if (input.value !== query) return;
    list.replaceChildren(...found.map((entry, at) => foundItem(entry, at, query)));
    if (found.length === 0)
      list.append(
        element('li', { className: 'none', role: 'option', ariaDisabled: 'true', textContent: 'Nothing was found.' }),
      );
    list.hidden = false;
    input.setAttribute('aria-expanded', 'true');
    choose(0);
  };
  input.addEventListener('focus', load);
  input.addEventListener('input', show);
  input.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) choose(chosen + step);
    else if (event.key === 'Enter') all('a', list)[chosen]?.click();
    else if (event.key !== 'Escape') return;
    if (event.key === 'Escape') input.blur();
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') close();
    event.preventDefault();
  });
  list.addEventListener('click', close);
  document.addEventListener('click', ({ target }) => {
    if (!box.contains(target)) close();
  });
  document.addEventListener('keydown', (event) => {
    const writes = event.target.closest('input, textarea, select');
    if (event.key !== '/' || writes || event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    input.focus();
  });
}

function foundItem([title, href, kind, text], at, query) {
  const item = element('li', { id: `found-${at}`, role: 'option' });
  const link = element('a', { href: base + href, tabIndex: -1 });
  link.append(title, element('span', { textContent: kind }));
  const [before, match, after] = excerpt(text, query);
  const part = element('small');
  part.append(before, ...(match === '' ? [] : [element('mark', { textContent: match })]), after);
  link.append(part);
  item.append(link);
  return item;
}

function startTrying() {
  const key = document.getElementById('key');
  if (key === null) return;
  key.closest('section').hidden = false;
  key.addEventListener('change', () => nameOwnAccount(key.value.trim()));
  for (const panel of all('.try')) {
    panel.hidden = false;
    refresh(panel);
    panel.querySelector('form').addEventListener('submit', (event) => {
      event.preventDefault();
      send(panel, key);
    });
  }
}

/** Ends the calls that are being tried: no answer of theirs is shown any more. */
export function endTrying() {
  trying.abort();
  trying = new AbortController();
}

/** The examples' account is somebody else's: one of the reader's own takes its place, if the key may see it. */
export async function nameOwnAccount(secret) {
  if (!isSandboxKey(secret)) return;
  const { signal } = trying;
  const headers = { Authorization: `Bearer ${secret}`, 'Marina-Unlogged': 'true' };
  const response = await fetch(`${base}/v1/accounts?limit=1`, { headers });
  const account = response.ok ? (await response.json()).data[0]?.account : undefined;
  if (account === undefined || signal.aborted) return;
  for (const input of all('.try input[name=account][data-place=path]')) input.value ||= account;
  for (const body of all('.try textarea')) body.value = withAccount(body.value, account);
}

/** A key for a request that was not made yet. */
function refresh(panel) {
  for (const input of all('[data-fresh=uuid]', panel)) input.value = `try-${randomId()}`;
}

/** Outside https and this machine, browsers have no crypto.randomUUID. */
function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

async function send(panel, key) {
  const result = panel.querySelector('.result');
  const say = (text) => result.replaceChildren(element('p', { textContent: text }));
  const secret = key.value.trim();
  if (!isSandboxKey(secret)) {
    say('Enter a sandbox key at the top of the page first: it begins with marina_test_.');
    key.focus();
    return;
  }
  const button = panel.querySelector('button[type=submit]');
  const { signal } = trying;
  button.disabled = true;
  say('Sending…');
  try {
    const { url, options } = requestFrom(panel, secret, signal);
    const began = performance.now();
    const response = await fetch(url, options);
    const text = await response.text();
    signal.throwIfAborted();
    result.replaceChildren(...answerOf(response, text, Math.round(performance.now() - began)));
    if (response.status < 300) refresh(panel);
  } catch (error) {
    if (!signal.aborted) say(`No answer came: ${error.message}`);
  } finally {
    button.disabled = false;
  }
}

/** The request that the fields of a form make. */
function requestFrom(panel, secret, ending) {
  const fields = all('[data-place]', panel).map(({ name, value, files, dataset: { place } }) => ({
    place,
    name,
    value,
    file: files?.[0],
  }));
  const { method, path } = panel.dataset;
  const { url, ...options } = requestOf({ method, path, fields }, secret);
  const signal = AbortSignal.any([ending, AbortSignal.timeout(60_000)]);
  return { url: base + url, options: { ...options, signal } };
}

function answerOf(response, text, ms) {
  const line = element('p');
  const status = element('span', {
    className: `status ${response.ok ? 'good' : 'bad'}`,
    textContent: String(response.status),
  });
  line.append(status, `${ms} ms. ${headersShown(response.headers)}`);
  const figure = element('figure', { className: 'code' });
  const pre = element('pre', { tabIndex: 0 });
  pre.append(element('code', { textContent: indented(text) }));
  figure.append(pre);
  return [line, figure];
}

export function element(tag, { role, ...properties } = {}) {
  const made = Object.assign(document.createElement(tag), properties);
  if (role !== undefined) made.setAttribute('role', role);
  return made;
}

/** Makes tabs of each request's languages. The one that is chosen is chosen everywhere, and on later visits. */
function startTabs() {
  const groups = all('.samples').map(makeTabs);
  const show = (language, isByHand) => {
    for (const group of groups) group.show(language);
    if (isByHand) remember(language);
  };
  for (const { list } of groups) {
    list.addEventListener('click', ({ target }) => {
      const tab = target.closest('[role=tab]');
      if (tab !== null) stayInView(tab, () => show(tab.textContent, true));
    });
    list.addEventListener('keydown', (event) => {
      const tabs = all('[role=tab]', list);
      const at = tabs.indexOf(event.target);
      const next = stepTo(event.key, at, tabs.length);
      if (next === undefined) return;
      event.preventDefault();
      const tab = tabs[next];
      stayInView(tab, () => show(tab.textContent, true));
      tab.focus({ preventScroll: true });
    });
  }
  const known = remembered();
  if (known !== null) show(known, false);
}

/** Takes the place of the parts that are opened one by one, which is what there is without a script. */
function makeTabs(box, number) {
  const list = element('div', { role: 'tablist', className: 'code-tabs' });
  list.setAttribute('aria-label', box.dataset.label);
  const parts = all('.sample', box).map((details) => {
    const name = details.dataset.language;
    const id = `code-${number}-${name.toLowerCase().replace('#', 'sharp')}`;
    const tab = element('button', { role: 'tab', type: 'button', id: `${id}-tab`, textContent: name });
    tab.setAttribute('aria-controls', id);
    const panel = element('div', { role: 'tabpanel', id, className: 'tabpanel' });
    panel.setAttribute('aria-labelledby', tab.id);
    panel.dataset.language = name;
    panel.append(...all(':scope > figure', details));
    list.append(tab);
    return { name, tab, panel };
  });
  const names = parts.map(({ name }) => name);
  box.replaceChildren(list, ...parts.map(({ panel }) => panel));
  const show = (language) => {
    const nearest = nearestLanguage(names, language);
    if (nearest === undefined) return;
    for (const { name, tab, panel } of parts) {
      const isShown = name === nearest;
      tab.setAttribute('aria-selected', String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
      panel.hidden = !isShown;
    }
  };
  show(names[0]);
  return { list, show };
}

/** What is above changes its height too: what was clicked must not move away. */
function stayInView(node, change) {
  const { top } = node.getBoundingClientRect();
  change();
  scrollBy({ top: node.getBoundingClientRect().top - top, behavior: 'instant' });
}

/** A browser may forbid to keep anything. Then the choice lasts until the page is left. */
function remember(language) {
  try {
    localStorage.setItem('marina-language', language);
  } catch {
    return;
  }
}

function remembered() {
  try {
    return localStorage.getItem('marina-language');
  } catch {
    return null;
  }
}
