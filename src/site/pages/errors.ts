import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { status as grpcStatus } from '@grpc/grpc-js';
import { ApiError, catalogue, type ErrorCode } from '../../gateway/edge/errors.ts';
import { rpcStatus } from '../../gateway/edge/rpc.ts';
import { type Html, html } from '../html.ts';
import { operationHref } from '../links.ts';
import { inlineMarkdown, slug } from '../markdown.ts';
import type { Reference } from '../reference.ts';
import { titleOf } from '../samples/names.ts';
import { methodMark, type NavigationLink, type PageParts } from './layout.ts';

/** The advice about an error, and its group. */
interface Advice {
  readonly group: string;
  readonly text: string;
}

/** Every code of the catalogue, at the anchor its `doc_url` names. */
export function errorsPage(reference: Reference): PageParts {
  const advice = readAdvice();
  const codes = Object.keys(catalogue) as ErrorCode[];
  const groups = [...new Set([...advice.values()].map(({ group }) => group))];
  const sections = groups.map((group) => {
    const own = codes.filter((code) => advice.get(code)?.group === group);
    return html`<h2 id="${slug(group)}"><a class="anchor" href="#${slug(group)}">${group}</a></h2>
${own.map((code) => entry(code, advice.get(code)?.text ?? '', reference))}`;
  });
  return {
    path: '/docs/errors',
    title: 'Errors',
    lead: 'Every code the gateway answers with, what it means, and what to do about it.',
    content: html`<div class="prose">${introduction()}${table(groups.flatMap((group) => codes.filter((code) => advice.get(code)?.group === group)))}</div>
${sections}`,
  };
}

function introduction(): Html {
  return html`<p>Decide by <code>code</code>: it never changes its meaning. Treat a code you do not know by its status: below 500 the request has to change, at 429 and from 500 on the same request may be sent again. <code>message</code> is for people.</p>
<p>When an error leaves an object behind, such as an order that was rejected, the header <code>Location</code> of the answer is its path: read it there. Over gRPC look for it in the list of its kind; orders, allocations and withdrawals are found by <code>client_reference</code>.</p>
<p>“The same request” means exactly the same request with the same <code>Idempotency-Key</code>. It can never place a second order. A new key means a new order.</p>`;
}

/** All codes on one screen, each with a link to what to do about it. */
function table(codes: readonly ErrorCode[]): Html {
  const titles = ['Code', 'HTTP', 'gRPC', 'Type', 'Retry after'];
  const rows = codes.map((code) => {
    const error = new ApiError(code);
    const { status, type, retryAfterSeconds } = error;
    const cells = [
      html`<a href="#${code}"><code>${code}</code></a>`,
      html`${status}`,
      html`${grpcStatus[rpcStatus(error)]}`,
      html`<code>${type}</code>`,
      html`${retryAfterSeconds !== undefined && `${retryAfterSeconds} s`}`,
    ];
    return html`<tr role="row">${cells.map((cell, column) => html`<td role="cell" data-title="${titles[column]}">${cell}</td>`)}</tr>
`;
  });
  return html`<h2 id="all"><a class="anchor" href="#all">All errors</a></h2>
<div class="table" tabindex="0"><table role="table"><thead role="rowgroup"><tr role="row">${titles.map((title) => html`<th role="columnheader">${title}</th>`)}</tr></thead><tbody role="rowgroup">${rows}</tbody></table></div>`;
}

function entry(code: ErrorCode, advice: string, { operations }: Reference): Html {
  const error = new ApiError(code);
  const { status, type, message, retryAfterSeconds } = error;
  const answered = operations.filter(({ errors, http }) => http !== undefined && errors.includes(code));
  const where = answered.map(
    ({ method, http }) =>
      html`<li><a href="${operationHref(method)}">${methodMark(http?.method ?? '')}${titleOf(method.name)}</a></li>`,
  );
  const isEverywhere = answered.length === operations.filter(({ http }) => http !== undefined).length;
  return html`<section class="error" id="${code}">
<h3><a class="anchor" href="#${code}"><code>${code}</code></a></h3>
<p class="access"><span class="status bad">${status}</span><span>gRPC ${grpcStatus[rpcStatus(error)]}</span><span>${type}</span>${
    retryAfterSeconds !== undefined && html`<span>Retry-After ${retryAfterSeconds}</span>`
  }</p>
<p class="cause">${message}</p>
<p><strong>What to do.</strong> ${inlineMarkdown(advice)}</p>
${
  isEverywhere || answered.length === 0
    ? html`<p class="where">Any request can be answered with it.</p>`
    : html`<details class="where"><summary>${answered.length === 1 ? 'One operation' : `${answered.length} operations`} can answer with it</summary><ul>${where}</ul></details>`
}
</section>
`;
}

/** The links to the groups of errors. */
export function errorLinks(): NavigationLink[] {
  const groups = new Set([...readAdvice().values()].map(({ group }) => group));
  const links = [...groups].map((group) => ({ title: group, href: `/docs/errors#${slug(group)}` }));
  return [{ title: 'All errors', href: '/docs/errors#all' }, ...links];
}

/** Reads the advice of `docs/ERRORS.md`, by code. */
export function readAdvice(): ReadonlyMap<string, Advice> {
  const advice = new Map<string, Advice>();
  let group = '';
  for (const line of readFileSync(join(import.meta.dirname, '../../../docs/ERRORS.md'), 'utf8').split('\n')) {
    group = /^## (.*)/.exec(line)?.[1] ?? group;
    const code = /^\| <a id="(\w+)">/.exec(line)?.[1];
    const text = line.split('|').at(-2)?.trim();
    if (code !== undefined && text !== undefined) advice.set(code, { group, text });
  }
  return advice;
}
