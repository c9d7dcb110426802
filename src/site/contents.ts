import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OperationRules } from '../gateway/edge/operations.ts';
import { collection } from './collection.ts';
import { readComments } from './comments.ts';
import { readExamples } from './examples.ts';
import { changelogFeed } from './feed.ts';
import { referencePath, servicePath } from './links.ts';
import { missingPage, missingPath } from './missing.ts';
import { openApiDocument } from './openapi/document.ts';
import { errorLinks, errorsPage } from './pages/errors.ts';
import { eventLinks, eventsPage } from './pages/events.ts';
import {
  changelogLinks,
  changelogPage,
  changelogVersions,
  guideLinks,
  guidePage,
  guides,
  sandboxPage,
} from './pages/guides.ts';
import { feedPath, type NavigationGroup, type PageFrame, type PageParts, wholePage } from './pages/layout.ts';
import { referenceIndex, referenceLinks, servicePage, servicesOf } from './pages/reference.ts';
import { searchIndex } from './pages/search.ts';
import { hasWorkbench, workbenchPage, workbenchPath } from './pages/workbench.ts';
import { descriptorSet, protoZip } from './protos.ts';
import type { GatewayAddresses, Reference } from './reference.ts';

export interface SiteOptions {
  /** The operations that the gateway serves, in the order in which they are shown. */
  readonly operations: readonly OperationRules[];
  readonly environment: 'sandbox' | 'live';
  /** Where partners reach the gateway. */
  readonly baseUrl: () => string;
  /** Where they reach it over gRPC: a host and a port. */
  readonly grpcAddress: () => string;
  /** Whom partners ask: an e-mail address or a URL. */
  readonly support?: string | undefined;
}

/** A document before it is served. */
export interface Content {
  readonly contentType: string;
  readonly body: string | Uint8Array;
}

/** Every document of the site by its path, each made when it is asked for. */
export function siteContents(options: SiteOptions): ReadonlyMap<string, () => Content> {
  const { operations, environment } = options;
  const baseUrl = options.baseUrl();
  const addresses: GatewayAddresses = { baseUrl, grpcAddress: options.grpcAddress(), support: options.support };
  const reference: Reference = { operations, comments: readComments(), examples: readExamples(baseUrl) };
  const frame: PageFrame = {
    environment,
    navigation: navigation(reference),
    basePath: new URL(baseUrl).pathname.replace(/\/$/, ''),
  };
  const page = (make: () => PageParts) => () => ({
    contentType: 'text/html; charset=utf-8',
    body: wholePage(make(), frame),
  });
  const canTry = environment === 'sandbox';
  const guideOf = (guide: (typeof guides)[number]) =>
    guide.path === '/docs/sandbox' ? sandboxPage(guide, addresses, reference) : guidePage(guide, addresses);
  return new Map<string, () => Content>([
    ['/openapi.json', () => json(openApiDocument(reference, addresses))],
    ...guides.map((guide) => [guide.path, page(() => guideOf(guide))] as const),
    [referencePath, page(() => referenceIndex(reference))],
    ...servicesOf(reference).map(
      (service) => [servicePath(service), page(() => servicePage(service, { reference, addresses, canTry }))] as const,
    ),
    ['/docs/events', page(() => eventsPage(reference))],
    ['/docs/errors', page(() => errorsPage(reference))],
    ['/docs/changelog', page(() => changelogPage(addresses))],
    [
      feedPath,
      () => ({ contentType: 'application/atom+xml; charset=utf-8', body: changelogFeed(changelogVersions(), baseUrl) }),
    ],
    ['/docs/marina.postman_collection.json', () => json(collection(reference, addresses))],
    [missingPath, page(missingPage)],
    ...(canTry && hasWorkbench(reference)
      ? ([
          [workbenchPath, page(() => workbenchPage(reference))],
          ['/docs/workbench.css', asset('workbench.css', 'text/css; charset=utf-8')],
          ['/docs/workbench.js', asset('workbench.js', 'text/javascript; charset=utf-8')],
          ['/docs/workbench-gateway.js', asset('workbench-gateway.js', 'text/javascript; charset=utf-8')],
          ['/docs/workbench-rules.js', asset('workbench-rules.js', 'text/javascript; charset=utf-8')],
        ] as const)
      : []),
    ['/docs/search.json', () => json(searchIndex(reference))],
    ['/docs/marina-protos.zip', () => ({ contentType: 'application/zip', body: protoZip(operations) })],
    ['/docs/marina.binpb', () => ({ contentType: 'application/x-protobuf', body: descriptorSet(operations) })],
    ['/docs/docs.css', asset('docs.css', 'text/css; charset=utf-8')],
    ['/docs/docs.js', asset('docs.js', 'text/javascript; charset=utf-8')],
    ['/docs/docs-rules.js', asset('docs-rules.js', 'text/javascript; charset=utf-8')],
    ['/docs/search.js', asset('search.js', 'text/javascript; charset=utf-8')],
    ['/docs/icon.svg', asset('icon.svg', 'image/svg+xml')],
  ]);
}

function navigation(reference: Reference): NavigationGroup[] {
  return [
    {
      title: 'Guides',
      links: guides.map((guide) => ({ title: guide.title, href: guide.path, inside: guideLinks(guide) })),
    },
    ...(hasWorkbench(reference) ? [{ title: 'Sandbox', links: [{ title: 'Workbench', href: workbenchPath }] }] : []),
    {
      title: 'Reference',
      links: [
        ...referenceLinks(reference),
        { title: 'Events', href: '/docs/events', inside: eventLinks() },
        { title: 'Errors', href: '/docs/errors', inside: errorLinks() },
        { title: 'Changelog', href: '/docs/changelog', inside: changelogLinks() },
      ],
    },
  ];
}

function json(value: unknown): Content {
  return { contentType: 'application/json', body: JSON.stringify(value) };
}

function asset(name: string, contentType: string): () => Content {
  return () => ({ contentType, body: readFileSync(join(import.meta.dirname, 'assets', name), 'utf8') });
}
