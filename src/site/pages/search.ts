import { status as grpcStatus } from '@grpc/grpc-js';
import { ApiError, catalogue, type ErrorCode } from '../../gateway/edge/errors.ts';
import { rpcStatus } from '../../gateway/edge/rpc.ts';
import { commentOf, firstSentence } from '../comments.ts';
import { objectHref, operationHref, referencePath } from '../links.ts';
import { bareText, textByPart } from '../markdown.ts';
import { pathTemplate } from '../openapi/operations.ts';

import type { Reference } from '../reference.ts';
import { titleOf } from '../samples/names.ts';
import { readAdvice } from './errors.ts';
import { eventTypes } from './events.ts';
import { guideLinks, guides, guideText } from './guides.ts';
import { lowerFirst, objectsOf } from './reference.ts';
import { hasWorkbench, workbenchPath } from './workbench.ts';

/** Something that can be found: its title, where it is, what kind it is, its text, and what others call it. */
type Found = readonly [title: string, href: string, kind: string, text: string, aliases?: string];

/** Words that newcomers type, by the place that answers them. Phrases are separated by commas. */
export const aliases: Readonly<Record<string, string>> = {
  '/docs': 'quickstart, quick start, begin, hello world, tutorial',
  '/docs#a-first-call': 'test key, get a key, get a test key, first key',
  '/docs#code-from-the-descriptors': 'ruby, dotnet, .net, rust, kotlin, generate, other languages',
  '/docs#what-can-grow': 'deprecation, deprecated, versioning, breaking change, compatibility',
  '/docs/changelog': 'versions, release notes, news, deprecation, rss, atom',
  '/docs/errors#all': 'error codes, list of errors, list all errors, status codes',
  '/docs/errors#unauthorized': '401, unauthenticated',
  '/docs/sandbox#forms-of-numbers':
    'bvn format, nin format, phone format, bank code format, account number format, nuban',
  '/docs/reference/orders#object-Order': 'order state, order status, reject reason, insufficient funds, fill price',
  '/docs/reference/applications#sendDocument':
    'jpeg, jpg, png, photo, picture, upload, document size, document size limit, file size',
  '/docs#keys-and-scopes':
    'ip allowlist, allowlist ip, ip whitelist, whitelist ip, api key, api keys, apikey, access token, authentication, auth, bearer, login, permission, role',
  '/docs#money-and-numbers': 'naira, kobo, ngn, currency, amount, big number',
  '/docs#money-in-and-out': 'withdraw, withdrawal, payout, cash out, deposit, refund',
  '/docs#times-and-days': 'timezone, time zone, date format, timestamp',
  '/docs#lists': 'pagination, paging, next page, cursor, page',
  '/docs#when-something-is-odd': 'support, contact, help, request id, trace',
  '/docs#postman-bruno-and-other-tools': 'postman, bruno, insomnia, swagger, openapi, collection',
  '/docs/idempotency#what-to-send-again': 'retry, retries, resend, send again, repeat, backoff, timeout',
  '/docs/idempotency#the-key': 'idempotency key, duplicate, twice',
  '/docs/idempotency#when-an-order-is-uncertain': 'uncertain, unknown outcome, no answer',
  '/docs/webhooks': 'webhook, callback, notification, push',
  '/docs/webhooks#verify-before-you-read': 'php, java, c#, csharp, signature, hmac, verify, whsec',
  '/docs/clients': 'python, typescript, javascript, node, nodejs, sdk, library, npm, pip',
  '/docs/clients#webhooks-without-a-public-address': 'ngrok, tunnel, localhost, marina-listen',
  '/docs/grpc#a-client': 'go, golang, protobuf, grpcurl',
  '/docs/prices#when-it-trades': 'opening hours, trading hours, holiday',
  '/docs/prices#when-it-settles': 't+1, t+2, t1, settle, settlement, settlement date, clearing',
  '/docs/go-live': 'go live, going live, production, launch, checklist, live key',
  '/docs/limits': 'rate limit, quota, throttling',
  '/docs/sandbox': 'test mode, simulator, fake, demo',
  '/docs/reference/orders#cancelOrder':
    'cancel, cancel order, cancel an order, revoke order, amend order, modify order, change order, replace order',
  '/docs/reference/orders#createOrder': 'buy, sell, place order, buy shares, sell shares, trade',
  '/docs/reference/allocations#createAllocation': 'fund, fund account, top up, transfer',
  '/docs/reference/withdrawals#createWithdrawal': 'payout, pay out, cash out',
  '/docs/reference/applications#createApplication': 'open account, onboarding, kyc, bvn, nin, sign up',
  '/docs/reference/orders#estimateOrder': 'fee, fees, commission, charges, quote, preview',
  '/docs/reference/accounts#getBalance': 'balance, cash, buying power',
  '/docs/reference/accounts#listAccountTransactions': 'ledger, cash statement, account history, dividends, settlement',
  '/docs/reference/accounts#getAccountStatus': 'frozen account, blocked account, restriction, chn',
  '/docs/reference/accounts#listPositions': 'portfolio, holdings, shares owned',
  '/docs/reference/reference#listInstruments': 'symbols, tickers, stocks, securities, instrument list',
  '/docs/reference/keys#revokeKey': 'revoke key, delete key, leaked key',
  '/docs/reference/events#watchEvents': 'stream, websocket, sse, realtime',
};

const workbench: Found = [
  'Workbench',
  workbenchPath,
  'Sandbox',
  'console dashboard orders timeline requests log events live deliveries test webhook steer clock try a call',
];

/** All that can be found, as the script reads it. */
export function searchIndex(reference: Reference): readonly Found[] {
  return places(reference).map((found): Found => {
    const others = aliases[found[1]];
    return others === undefined ? found : [found[0], found[1], found[2], found[3], others];
  });
}

function places(reference: Reference): readonly Found[] {
  const { operations, comments } = reference;
  const advice = readAdvice();
  const objects = [...new Set(operations.flatMap(({ output }) => objectsOf(output)))];
  return [
    ...guides.flatMap((guide): Found[] => {
      const texts = textByPart(guideText(guide), 2);
      const parts = guideLinks(guide).map(({ title, href }): Found => {
        return [title, href, guide.title, texts.get(href.slice(href.indexOf('#') + 1)) ?? ''];
      });
      return [[guide.title, guide.path, 'Guide', `${guide.lead} ${texts.get('') ?? ''}`], ...parts];
    }),
    ...(hasWorkbench(reference) ? [workbench] : []),
    ['All operations', referencePath, 'Reference', 'list of every call, endpoint and object'],
    ['All errors', '/docs/errors#all', 'Errors', 'a table of every code with its status'],
    ['Changelog', '/docs/changelog', 'Reference', 'what partners notice of each version'],
    ...operations.map(({ method, http }): Found => {
      const words = [
        bareText(firstSentence(commentOf(comments, method))),
        http?.method,
        http && pathTemplate(http),
        method.localName,
      ];
      return [titleOf(method.name), operationHref(method), method.parent.name, words.join(' ')];
    }),
    ...objects.map((desc): Found => {
      const words = desc.fields.map(({ name }) => name).join(' ');
      return [`The ${lowerFirst(titleOf(desc.name))} object`, objectHref(desc), 'Object', words];
    }),
    ...eventTypes(reference).flatMap(({ types }) =>
      types.map(({ type, meaning }): Found => [type, `/docs/events#${type}`, 'Event', bareText(meaning)]),
    ),
    ['webhook.test', '/docs/events#webhook.test', 'Event', 'test event of a webhook endpoint, ping'],
    ...(Object.keys(catalogue) as ErrorCode[]).map((code): Found => {
      const error = new ApiError(code);
      const words = [
        bareText(error.message),
        bareText(advice.get(code)?.text ?? ''),
        error.status,
        grpcStatus[rpcStatus(error)],
      ];
      return [code, `/docs/errors#${code}`, 'Error', words.join(' ')];
    }),
  ];
}
