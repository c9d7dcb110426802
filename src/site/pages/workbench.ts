import { codeBlock } from '../code-block.ts';
import { type Html, html } from '../html.ts';
import { operationHref } from '../links.ts';
import type { Reference } from '../reference.ts';
import { titleOf } from '../samples/names.ts';
import type { PageParts } from './layout.ts';
import { servicesOf } from './reference.ts';
import { tryPanel } from './try.ts';

export const workbenchPath = '/docs/workbench';

/** Whether the gateway serves what the workbench shows: only a sandbox does. */
export function hasWorkbench({ operations }: Pick<Reference, 'operations'>): boolean {
  return operations.some(({ name }) => name === 'Sandbox.ListRequests');
}

interface Pane {
  readonly id: string;
  readonly title: string;
  readonly content: Html;
}

/** The page on which a partner sees what its programs do in the sandbox. Its script fills in what is the partner's. */
export function workbenchPage(reference: Reference): PageParts {
  const panes: readonly Pane[] = [
    { id: 'orders', title: 'Orders', content: ordersPane() },
    {
      id: 'events',
      title: 'Events',
      content: lists('events', 'Events, newest first', 'Choose an event to see its body.'),
    },
    {
      id: 'requests',
      title: 'Requests',
      content: html`${note(
        'Requests of the last hour with a valid key, at most 200, as they reached this replica of the gateway. Secrets and what describes a customer are left out.',
      )}${lists('requests', 'Requests, newest first', 'Choose a request to see it with its answer.')}`,
    },
    { id: 'webhooks', title: 'Webhooks', content: webhooksPane() },
    { id: 'try', title: 'Try a call', content: tryPane(reference) },
  ];
  const content = html`<noscript><p class="note">The workbench is a program in your browser. It needs JavaScript.</p></noscript>
${keySection()}
<div id="bench" hidden>
${factsSection()}
<div class="tabs" role="tablist" aria-label="Workbench">
${panes.map(
  ({ id, title }, index) =>
    html`<button type="button" role="tab" id="tab-${id}" aria-controls="pane-${id}" aria-selected="${index === 0 ? 'true' : 'false'}"${index > 0 && html` tabindex="-1"`}>${title}<span class="count" hidden></span></button>
`,
)}</div>
${panes.map(
  ({ id, content: inside }, index) =>
    html`<section class="pane" role="tabpanel" id="pane-${id}" aria-labelledby="tab-${id}"${index > 0 && html` hidden`}>
${inside}
</section>
`,
)}<p id="news" class="unseen" role="status" aria-live="polite"></p>
</div>`;
  return {
    path: workbenchPath,
    title: 'Workbench',
    lead: 'See what your integration does in this sandbox: orders, events, requests and webhooks as they happen.',
    content,
    isWide: true,
    assets: 'workbench',
  };
}

function keySection(): Html {
  return html`<section id="open" class="trykey" aria-label="Your key" hidden>
<form novalidate>
<label for="key">Your sandbox key</label>
<div class="line">
<input id="key" type="password" placeholder="marina_test_…" autocomplete="off" spellcheck="false" aria-describedby="key-hint key-problem">
<button type="submit">Open</button>
</div>
<p id="key-hint">It stays in the memory of this tab until you close or reload it, and is sent to this gateway only. It needs the scope <code>read</code>, and <code>trade</code> to steer orders.</p>
<p id="key-problem" class="problem" role="alert"></p>
</form>
</section>
`;
}

/** The facts about the whole sandbox, and the way to forget the key. */
function factsSection(): Html {
  const command = `grpcurl -plaintext -H "Authorization: Bearer $token" -d '{"by":"3600s"}' \\
  127.0.0.1:50052 marina.admin.v1.Clock/AdvanceClock   # an hour later`;
  return html`<div class="facts">
<dl>
<div><dt>Sandbox time</dt><dd id="time">…</dd></div>
<div><dt>Market</dt><dd id="market">…</dd></div>
<div><dt>Events</dt><dd><span id="live" role="status">…</span></dd></div>
</dl>
<button type="button" id="forget" class="plain">Forget the key</button>
</div>
<details class="clock"><summary>Move the clock</summary>
<p>The sandbox’s time is the same for everyone in it, so only its operator moves it, and only forward. With <code>make run</code> you are the operator: in the command, <code>$token</code> is the <code>operator_token</code> of <code>sandbox.json</code>, and <code>127.0.0.1:50052</code> its <code>admin_address</code>, if that is another one. The file is in <code>MARINA_DATA_DIR</code>, usually <code>.local</code>.</p>
${codeBlock(command, 'sh')}
</details>
`;
}

/** A list, and next to it what was chosen. */
function lists(name: string, label: string, hint: string, head?: Html): Html {
  return html`<div class="lists">
<div class="list">
${head ?? html``}<ul id="${name}" class="rows" aria-label="${label}"></ul>
<p class="empty" id="${name}-empty" hidden></p>
</div>
<div class="detail" id="${name}-detail" role="region" aria-label="${hint.replace(/^Choose (an? )/, 'The chosen ').replace(/ to see.*/, '')}" tabindex="-1"><p class="hint">${hint}</p></div>
</div>
`;
}

function ordersPane(): Html {
  return lists('orders', 'Orders, newest first', 'Choose an order to see its timeline and to steer it.');
}

function webhooksPane(): Html {
  const head = html`<div class="test">
<button type="button" id="test">Send a test event</button>
<p id="test-result" role="status"></p>
</div>
`;
  return lists('deliveries', 'Deliveries, newest first', 'Choose a delivery to see its attempts.', head);
}

/** One operation at a time, with the same form as on the reference page. */
function tryPane(reference: Reference): Html {
  const { operations, examples } = reference;
  const callable = operations.filter(({ http }) => http !== undefined);
  const services = servicesOf({ ...reference, operations: callable });
  const chosen = 'createOrder';
  const groups = services.map(
    (service) =>
      html`<optgroup label="${service.name}">${callable
        .filter(({ method }) => method.parent === service)
        .map(
          ({ method, http }) =>
            html`<option value="${method.localName}"${method.localName === chosen && html` selected`}>${titleOf(method.name)} (${http?.method ?? ''})</option>`,
        )}</optgroup>`,
  );
  const panels = callable.map(
    (
      operation,
    ) => html`<div class="call" id="call-${operation.method.localName}"${operation.method.localName !== chosen && html` hidden`}>
${tryPanel(operation, examples.operations[operation.method.localName]?.[0])}<p><a href="${operationHref(operation.method)}">${titleOf(operation.method.name)} in the reference</a></p>
</div>
`,
  );
  return html`<label class="choose" for="call">Operation<select id="call">${groups}</select></label>
${panels}`;
}

function note(text: string): Html {
  return html`<p class="note">${text}</p>
`;
}
