import { type DescField, getOption } from '@bufbuild/protobuf';
import type { OperationRules } from '../../gateway/edge/operations.ts';
import { field as fieldOption } from '../../gen/marina/options/v1/options_pb.ts';
import { enumNames } from '../../kit/enums.ts';
import type { Example } from '../examples.ts';
import { type Html, html } from '../html.ts';
import { bindingOf, pathTemplate } from '../openapi/operations.ts';

/** Where one's own key is entered once for all calls. The script keeps it in the memory of the tab, and nowhere else. */
export function tryKey(): Html {
  return html`<section class="trykey" aria-label="Your key" hidden>
<label for="key">Your sandbox key</label>
<input id="key" type="password" placeholder="marina_test_…" autocomplete="off" spellcheck="false">
<p>With it you can try each call on this page. It stays in the memory of this page until you leave it, and is sent to this gateway only. In the <a href="/docs/workbench">workbench</a> you enter it once for all calls.</p>
</section>
`;
}

/** A form that makes a call. It is of use with the script only, which shows it. */
export function tryPanel(operation: OperationRules, example: Example | undefined): Html {
  const http = bindingOf(operation);
  const id = `try-${operation.method.localName}`;
  const input = (field: DescField, place: string) => parameterInput(field, place, id, example);
  return html`<details class="try" hidden data-method="${http.method}" data-path="${pathTemplate(http)}">
<summary>Try it</summary>
<form>
${http.pathFields.map((field) => input(field, 'path'))}${http.queryFields.map((field) => input(field, 'query'))}${
  operation.takesIdempotencyKey &&
  html`<label>Idempotency-Key<input name="Idempotency-Key" data-place="header" data-fresh="uuid" autocomplete="off" spellcheck="false"></label>`
}${http.body === 'json' && bodyInput(example)}${
  http.body === 'file' &&
  html`<label>File<input type="file" data-place="file" accept="${operation.file?.mediaTypes.join(',') ?? ''}"></label>`
}
<button type="submit">Send</button>
</form>
<div class="result" role="status" aria-live="polite"></div>
</details>
`;
}

function bodyInput(example: Example | undefined): Html {
  const text = JSON.stringify(example?.request.body ?? {}, undefined, 2);
  const rows = Math.min(text.split('\n').length, 18);
  return html`<label>Body<textarea data-place="body" rows="${rows}" spellcheck="false" autocomplete="off">${text}</textarea></label>`;
}

function parameterInput(field: DescField, place: string, id: string, example: Example | undefined): Html {
  const { required } = getOption(field, fieldOption);
  if (field.enum !== undefined) {
    const options = [...enumNames(field.enum).values()].map((word) => html`<option>${word}</option>`);
    return html`<label>${field.name}<select name="${field.name}" data-place="${place}">${!required && html`<option value="">any</option>`}${options}</select></label>`;
  }
  const value = place === 'query' && example !== undefined ? queryValue(example, field.name) : '';
  return html`<label for="${id}-${field.name}">${field.name}<input id="${id}-${field.name}" name="${field.name}" data-place="${place}" value="${value}"${required && html` required`} autocomplete="off" spellcheck="false"></label>`;
}

function queryValue({ request }: Example, name: string): string {
  return new URLSearchParams(request.path.split('?')[1]).get(name) ?? '';
}
