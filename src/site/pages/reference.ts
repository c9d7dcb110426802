import type { DescMessage, DescService } from '@bufbuild/protobuf';
import { ApiError } from '../../gateway/edge/errors.ts';
import type { OperationRules } from '../../gateway/edge/operations.ts';
import { Feature, FeatureSchema } from '../../gen/marina/options/v1/options_pb.ts';
import { enumNames } from '../../kit/enums.ts';
import { codeBlock } from '../code-block.ts';
import { type Comments, commentOf, firstSentence } from '../comments.ts';
import type { Example } from '../examples.ts';
import { answerMembers, isObject, objectLink, requestFields } from '../fields.ts';
import { type Html, html } from '../html.ts';
import { objectHref, operationHref, referencePath, servicePath } from '../links.ts';
import { bareText, inlineMarkdown, markdown } from '../markdown.ts';
import { bindingOf, pathTemplate, scopeWord } from '../openapi/operations.ts';
import { isTimestamp } from '../openapi/schemas.ts';
import type { GatewayAddresses, Reference } from '../reference.ts';
import { curl } from '../samples/curl.ts';
import { grpcurlOf } from '../samples/grpcurl.ts';
import { languages } from '../samples/languages.ts';
import { titleOf } from '../samples/names.ts';
import { methodMark, type NavigationLink, type PageParts } from './layout.ts';
import { tryKey, tryPanel } from './try.ts';

/** The parts that a page of the reference is made of. */
export interface ReferencePage {
  readonly reference: Reference;
  readonly addresses: GatewayAddresses;
  /** Whether calls can be tried from the page. */
  readonly canTry: boolean;
}

/** Every operation and object with a line on each, and where it is described. */
export function referenceIndex(reference: Reference): PageParts {
  const { comments } = reference;
  const sections = servicesOf(reference).map((service) => {
    const path = servicePath(service);
    const operations = operationsOf(service, reference).map(
      ({ method, http }) =>
        html`<li id="${method.localName}"><a href="${operationHref(method)}">${methodMark(http?.method ?? 'RPC')}${titleOf(method.name)}</a> ${http !== undefined && html`<code>${pathTemplate(http)}</code>`} ${inlineMarkdown(firstSentence(commentOf(comments, method)))}</li>`,
    );
    const objects = objectsAt(service, reference).map(
      (desc) =>
        html`<li id="object-${desc.name}"><a href="${objectHref(desc)}">The ${lowerFirst(titleOf(desc.name))} object</a></li>`,
    );
    return html`<section class="where calls" id="${service.name}">
<h2><a href="${path}">${serviceTitle(service)}</a></h2>
<p>${inlineMarkdown(firstSentence(commentOf(comments, service)))}</p>
<ul>${operations}${objects}</ul>
</section>
`;
  });
  return {
    path: referencePath,
    title: 'API reference',
    lead: 'Every operation and object, made from the same descriptors the gateway answers by.',
    content: html`${sections}`,
  };
}

/** The operations and objects of one service. */
export function servicePage(service: DescService, page: ReferencePage): PageParts {
  const { reference, canTry } = page;
  const objects = objectsAt(service, reference).map((desc) => objectSection(desc, reference));
  const operations = operationsOf(service, reference).map((operation) => operationSection(operation, page));
  return {
    path: servicePath(service),
    title: serviceTitle(service),
    lead: bareText(firstSentence(commentOf(reference.comments, service))),
    content: html`${canTry && tryKey()}<div class="prose">${markdown(commentOf(reference.comments, service))}</div>
${[
  { title: 'Objects', sections: objects },
  { title: 'Operations', sections: operations },
].map(
  ({ title, sections }) =>
    sections.length > 0 &&
    html`<section class="service" id="${title.toLowerCase()}">
<h2><a class="anchor" href="#${title.toLowerCase()}">${title}</a></h2>
${sections}
</section>
`,
)}`,
    isWide: true,
  };
}

/** The links to the pages of the reference. */
export function referenceLinks(reference: Reference): NavigationLink[] {
  const services = servicesOf(reference).map((service) => ({
    title: serviceTitle(service),
    href: servicePath(service),
    inside: operationsOf(service, reference).map(({ method, http }) => ({
      title: titleOf(method.name),
      href: operationHref(method),
      method: http?.method ?? 'RPC',
    })),
  }));
  return [{ title: 'All operations', href: referencePath }, ...services];
}

function operationsOf(service: DescService, { operations }: Reference): OperationRules[] {
  return operations.filter(({ method }) => method.parent === service);
}

/** The objects that are described on a service's page: those that its file has. */
function objectsAt(service: DescService, { operations }: Reference): DescMessage[] {
  const all = new Set(operations.flatMap(({ output }) => objectsOf(output)));
  return [...all].filter((desc) => objectHref(desc).startsWith(`${servicePath(service)}#`));
}

/** The same within a sentence. */
export function lowerFirst(title: string): string {
  return /^[A-Z]{2}/.test(title) ? title : title.charAt(0).toLowerCase() + title.slice(1);
}

/** Returns the title of a service's page. */
function serviceTitle({ name }: DescService): string {
  return name === 'Reference' ? 'Market and reference data' : titleOf(name);
}

export function servicesOf({ operations }: Pick<Reference, 'operations'>): DescService[] {
  return [...new Set(operations.map(({ method }) => method.parent))];
}

/** The objects an answer is made of, its own first. */
export function objectsOf(desc: DescMessage): DescMessage[] {
  const inside = desc.fields.flatMap((field) =>
    field.message === undefined || isTimestamp(field) ? [] : objectsOf(field.message),
  );
  return [...new Set([...(isObject(desc) ? [desc] : []), ...inside])];
}

function objectSection(desc: DescMessage, { comments, examples }: Reference): Html {
  const recorded = Object.values(examples.operations)
    .flat()
    .map(({ answer }) => answer.body as Record<string, unknown>)
    .flatMap((body) => (Array.isArray(body.data) ? (body.data as Record<string, unknown>[]) : [body]))
    .find((body) => isOf(body, desc));
  return html`<section class="object split" id="object-${desc.name}">
<div class="text"><h3><a class="anchor" href="#object-${desc.name}">The ${lowerFirst(titleOf(desc.name))} object</a></h3>
${markdown(commentOf(comments, desc))}
${answerMembers(desc, comments)}</div>
<div class="aside">${recorded !== undefined && codeBlock(pretty(recorded), 'json', titleOf(desc.name))}</div>
</section>
`;
}

/** Whether a recorded body has just the members of an object. */
function isOf(body: Record<string, unknown>, desc: DescMessage): boolean {
  const names = Object.keys(body).filter((name) => name !== 'object');
  return names.join() === desc.members.map(({ name }) => name).join();
}

function operationSection(operation: OperationRules, page: ReferencePage): Html {
  const { comments, examples } = page.reference;
  const { method, http } = operation;
  const [opening = '', ...details] = commentOf(comments, method).split('\n\n');
  const recorded = examples.operations[method.localName] ?? [];
  return html`<section class="operation split" id="${method.localName}">
<div class="text">
<h3><a class="anchor" href="#${method.localName}">${titleOf(method.name)}</a></h3>
<p class="endpoint">${http === undefined ? rpcOnly(operation) : html`${methodMark(http.method)}<code>${pathTemplate(http)}</code>`}</p>
<p class="access">${access(operation)}</p>
${markdown(opening)}
${http !== undefined && inputs(operation, page)}
<h4>Answer</h4>
<p>${answerLine(operation)}</p>
${method.methodKind === 'server_streaming' && streamMessages(operation, comments)}
${details.length > 0 && html`<h4>Good to know</h4>${markdown(details.join('\n\n'))}`}
${http !== undefined && errorsLine(operation)}
</div>
<div class="aside">${http === undefined ? codeBlock(grpcurlOf(operation, page.addresses), 'sh', 'grpcurl') : recorded.map((example, index) => exampleBlock(example, index, operation, page.addresses))}${
    page.canTry && http !== undefined && tryPanel(operation, recorded[0])
  }</div>
</section>
`;
}

function rpcOnly({ method }: OperationRules): Html {
  return html`${methodMark('RPC')}<code>${method.parent.typeName}/${method.name}</code>`;
}

function access({ scope, feature, takesSlot, takesIdempotencyKey }: OperationRules): Html {
  const needed = enumNames(FeatureSchema).get(feature)?.replaceAll('_', ' ');
  return html`<span>scope <code>${scopeWord(scope)}</code></span>${
    feature !== Feature.UNSPECIFIED && html`<span>needs ${needed}</span>`
  }${takesIdempotencyKey && html`<span><a href="/docs/idempotency">Idempotency-Key</a></span>`}${
    takesSlot && html`<span><a href="/docs/limits">counts as in progress</a></span>`
  }`;
}

function inputs(operation: OperationRules, { reference: { comments } }: ReferencePage): Html {
  const { pathFields, queryFields, bodyFields, body } = bindingOf(operation);
  const part = (title: string, fields: typeof pathFields) =>
    fields.length > 0 && html`<h4>${title}</h4>${requestFields(fields, comments)}`;
  const { file } = operation;
  return html`${part('In the path', pathFields)}${part('In the query', queryFields)}${part('In the body', bodyFields)}${
    body === 'file' &&
    file !== undefined &&
    html`<h4>Body</h4><p>The file itself, as <code>${file.mediaTypes.join(' or ')}</code>, at most ${file.maxBytes.toLocaleString('en')} bytes.</p>`
  }`;
}

function answerLine({ output, location, takesIdempotencyKey, method }: OperationRules): Html {
  if (method.methodKind === 'server_streaming') return html`A stream of ${objectsOf(output).map(objectLink)} messages.`;
  const items = output.fields.find(({ name, fieldKind }) => name === 'data' && fieldKind === 'list')?.message;
  const what =
    items === undefined ? objectLink(output) : html`A <a href="/docs#lists">list</a> of ${objectLink(items)}`;
  if (location === undefined) return html`<span class="status good">200</span> ${what}`;
  const replayed =
    takesIdempotencyKey &&
    html`; <span class="status good">200</span> when an earlier request with the same key made it`;
  return html`<span class="status good">201</span> ${what}, with its path in <code>Location</code>${replayed}`;
}

/** Describes the messages of a stream. */
function streamMessages({ output, errors }: OperationRules, comments: Comments): Html {
  const ends = errors.map((code) => html`<li><a href="/docs/errors#${code}"><code>${code}</code></a></li>`);
  return html`<h4>Each message</h4>
${markdown(commentOf(comments, output))}
${answerMembers(output, comments)}
<h4>How it ends</h4>
<p>It ends with one of these errors, or when you close it. Open it again with the last cursor you received.</p>
<ul>${ends}</ul>`;
}

function errorsLine({ errors }: OperationRules): Html {
  const items = errors.map((code) => {
    const { status } = new ApiError(code);
    return html`<li><a href="/docs/errors#${code}"><span class="status bad">${status}</span><code>${code}</code></a></li>`;
  });
  return html`<details class="errors"><summary>${errors.length} errors</summary><ul>${items}</ul></details>`;
}

function exampleBlock(example: Example, index: number, operation: OperationRules, addresses: GatewayAddresses): Html {
  const { title, answer } = example;
  const answered = codeBlock(answerText(example), 'json', `Answer ${answer.status}`);
  if (index === 0) return html`<p class="example">${title}</p>${samples(operation, example, addresses)}${answered}`;
  const request = codeBlock(curl(example, addresses.baseUrl), 'sh', 'Request');
  return html`<details class="more"><summary><span class="status ${answer.status < 400 ? 'good' : 'bad'}">${answer.status}</span>${title}</summary>${request}${answered}</details>`;
}

/** The request in every language. The script makes tabs of them; without it each is opened by itself. */
function samples(operation: OperationRules, example: Example, addresses: GatewayAddresses): Html {
  const blocks = languages.map(({ label, highlighted, write }, index) => {
    const code = codeBlock(write({ operation, example, addresses }), highlighted);
    return html`<details class="sample" name="sample-${operation.method.localName}" data-language="${label}"${index === 0 && html` open`}><summary>${label}</summary>${code}</details>`;
  });
  return html`<div class="samples" data-label="${titleOf(operation.method.name)}, request">${blocks}</div>`;
}

function answerText({ answer }: Example): string {
  return pretty(answer.body);
}

/** JSON as people read it. */
export function pretty(value: unknown): string {
  return JSON.stringify(value, undefined, 2);
}
