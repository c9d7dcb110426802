import { type Html, html } from './html.ts';

/** Where a contact leads: an e-mail address or the URL of a page. */
export function contactHref(contact: string): string {
  return /^https?:\/\//.test(contact) ? contact : `mailto:${contact}`;
}

/** Whom partners ask, as a link. Without a contact the operator has told them in another way. */
export function contactLink(contact: string | undefined): Html {
  if (contact === undefined) return html`the operator who gave you your keys`;
  return html`<a href="${contactHref(contact)}">${contact}</a>`;
}
