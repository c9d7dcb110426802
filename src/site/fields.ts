import { type DescField, type DescMessage, getOption } from '@bufbuild/protobuf';
import { field as fieldOption, message as messageOption } from '../gen/marina/options/v1/options_pb.ts';
import { enumNames } from '../kit/enums.ts';
import { type Comments, commentOf } from './comments.ts';
import { type Html, html } from './html.ts';
import { objectHref } from './links.ts';
import { inlineMarkdown, markdown } from './markdown.ts';
import { canBeNull, enumValues, isTimestamp, plainSchema } from './openapi/schemas.ts';

/** So many words are shown at once. */
const fewWords = 4;

/** The fields of a request, with what each must be. */
export function requestFields(fields: readonly DescField[], comments: Comments): Html {
  return list(
    fields.map((field) => {
      const { required, onlyWith, defaultValue } = getOption(field, fieldOption);
      const isRequired = required ? 'required' : onlyWith !== '' ? 'sometimes required' : 'optional';
      const standard = defaultValue !== undefined && html`<span class="default">default ${defaultText(field)}</span>`;
      return entry(
        field,
        comments,
        html`<span class="${isRequired.split(' ').join('-')}">${isRequired}</span>${standard}`,
      );
    }),
  );
}

/** The members of an object in an answer. */
export function answerMembers(desc: DescMessage, comments: Comments): Html {
  const { object } = getOption(desc, messageOption);
  const kind =
    object !== '' &&
    html`<li><div class="field"><code>object</code><span class="type">text</span></div><p>Always <code>${object}</code>.</p></li>`;
  const members = desc.members.map((member) => {
    if (member.kind === 'field') {
      return entry(member, comments, canBeNull(member) && html`<span class="optional">or null</span>`);
    }
    const choices = member.fields.flatMap(({ message }) => message ?? []);
    const links = choices.map((choice, index) => html`${index > 0 && ', '}${objectLink(choice)}`);
    return html`<li><div class="field"><code>${member.name}</code><span class="type">one of ${links}</span></div></li>`;
  });
  return list([kind, ...members]);
}

/** A link to where an object is described. */
export function objectLink(desc: DescMessage): Html {
  return html`<a href="${objectHref(desc)}">${desc.name}</a>`;
}

/** Whether a message is described by itself, rather than inside what holds it. */
export function isObject(desc: DescMessage): boolean {
  return !['', 'list'].includes(getOption(desc, messageOption).object);
}

function list(entries: readonly (Html | false)[]): Html {
  return html`<ul class="fields">${entries}</ul>`;
}

function entry(field: DescField, comments: Comments, notes: Html | false): Html {
  const inside =
    field.message !== undefined && !isTimestamp(field) && !isObject(field.message) ? field.message : undefined;
  return html`<li><div class="field"><code>${field.name}</code><span class="type">${typeText(field, comments)}</span>${notes}</div>
${markdown(commentOf(comments, field))}${values(field, comments)}${
  inside !== undefined &&
  html`<details><summary>Members of <code>${field.name}</code></summary>${answerMembers(inside, comments)}</details>`
}</li>`;
}

function typeText(field: DescField, comments: Comments): Html {
  const one = oneType(field, comments);
  return field.fieldKind === 'list' ? html`list of ${one}` : one;
}

function oneType(field: DescField, comments: Comments): Html {
  if (field.enum !== undefined) {
    const words = [...enumNames(field.enum).values()];
    if (words.length > fewWords) return html`one of ${words.length}`;
    return html`${words.map((word, index) => html`${index > 0 && ' or '}<code>${word}</code>`)}`;
  }
  if (isTimestamp(field)) return html`timestamp`;
  if (field.message !== undefined) return isObject(field.message) ? objectLink(field.message) : html`object`;
  if (field.name.endsWith('_decimal')) return html`decimal text`;
  const { type, format } = plainSchema(field, commentOf(comments, field));
  if (format === 'date') return html`date`;
  return html`${type === 'string' ? 'text' : String(type)}`;
}

function values(field: DescField, comments: Comments): Html | false {
  if (field.enum === undefined) return false;
  const all = enumValues(field.enum, comments);
  const items = all.map(({ word, meaning }) => html`<li><code>${word}</code> ${inlineMarkdown(meaning)}</li>`);
  return html`<details><summary>${all.length} values</summary><ul class="values">${items}</ul></details>`;
}

function defaultText(field: DescField): Html {
  const { defaultValue } = getOption(field, fieldOption);
  const word = field.enum && enumNames(field.enum).get(Number(defaultValue));
  return html`<code>${word ?? String(defaultValue)}</code>`;
}
