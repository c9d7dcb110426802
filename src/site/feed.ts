import { createHash } from 'node:crypto';
import { html } from './html.ts';
import { markdown, slug } from './markdown.ts';

/** A version of the changelog. */
export interface Version {
  /** Its heading: a version and its day, `0.1.0 (2026-11-22)`, or `Unreleased`. */
  readonly heading: string;
  readonly text: string;
}

/** The versions that are out, newest first, as an Atom feed (RFC 4287). A version without a day is not out. */
export function changelogFeed(versions: readonly Version[], baseUrl: string): string {
  const page = `${baseUrl}/docs/changelog`;
  const released = versions.flatMap(({ heading, text }) => {
    const [, version, day] = /^(\S+) \((\d{4}-\d{2}-\d{2})\)$/.exec(heading) ?? [];
    return version === undefined || day === undefined ? [] : [{ heading, version, day, text }];
  });
  const entries = released.map(({ heading, version, day, text }) => {
    const link = `${page}#${slug(heading)}`;
    const content = markdown(text).text.replaceAll(/ href="(?=\/)/g, ` href="${baseUrl}`);
    return html`<entry><title>Marina ${version}</title><id>${idOf(version)}</id><link href="${link}"/><updated>${day}T00:00:00Z</updated><content type="html">${content}</content></entry>
`;
  });
  return html`<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><title>Marina: what partners notice of each version</title><id>${idOf('changelog')}</id><link href="${page}"/><link rel="self" href="${page}.atom"/><updated>${released[0]?.day ?? '1970-01-01'}T00:00:00Z</updated><author><name>Marina</name></author>
${entries}</feed>
`.text;
}

/** The id of an entry, which stays when the gateway gets another address. */
function idOf(name: string): string {
  const digest = createHash('sha256').update(`marina ${name}`).digest('hex');
  const parts = [
    digest.slice(0, 8),
    digest.slice(8, 12),
    `8${digest.slice(13, 16)}`,
    `a${digest.slice(17, 20)}`,
    digest.slice(20, 32),
  ];
  return `urn:uuid:${parts.join('-')}`;
}
