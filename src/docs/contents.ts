import { readComments } from './comments.ts';
import { readExamples } from './examples.ts';
import { openApiDocument } from './openapi/document.ts';
import type { Reference } from './reference.ts';
import type { Content, SiteOptions } from './site.ts';

/** Every document of the site by its path, each made when it is asked for. */
export function siteContents({ operations, baseUrl }: SiteOptions): ReadonlyMap<string, () => Content> {
  const reference: Reference = { operations, comments: readComments(), examples: readExamples(baseUrl()) };
  return new Map([
    [
      '/openapi.json',
      () => ({ contentType: 'application/json', text: JSON.stringify(openApiDocument(reference, baseUrl())) }),
    ],
  ]);
}
