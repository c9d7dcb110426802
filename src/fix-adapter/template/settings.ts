import { readFileSync, statSync } from 'node:fs';
import { orNone, reading, setting, text } from '../../kit/settings.ts';
import { checkedLookups, checkNoLookups, maxLookupBytes } from './lookup-file.ts';
import { noTemplate, type OrderTemplate, parseFieldList, parseTemplate } from './parse.ts';

const file = orNone(text(/./, 'the path of a file'));

/** The settings of the fields that a broker asks for in each message about an order. */
export const templateSettings = {
  orderFields: setting(
    'MARINA_FIX_ORDER_FIELDS',
    "fields of every order, cancel and status request as tag=value with | between them, such as the firm's parties: 453=1|448=FIRM|447=D|452=1",
    '',
    reading('tag=value with | between them', parseFieldList),
  ),
  orderTemplateFile: setting(
    'MARINA_FIX_ORDER_TEMPLATE_FILE',
    'a file with the fields that the broker asks for in orders, cancels and status requests, one a line, in place of MARINA_FIX_ORDER_FIELDS: docs/FIX.md has its form',
    '',
    file,
  ),
  orderLookupFile: setting(
    'MARINA_FIX_ORDER_LOOKUP_FILE',
    "a file with values by account, partner or symbol for the template's placeholders, one account, partner or symbol a line; read again when it changes",
    '',
    file,
  ),
};

interface TemplateFiles {
  readonly orderFields: OrderTemplate;
  readonly orderTemplateFile: string | undefined;
  readonly orderLookupFile: string | undefined;
}

/** The template that is set, checked together with the lookup file. */
export function readTemplate(files: TemplateFiles, problems: string[]): OrderTemplate {
  const { orderFields, orderTemplateFile, orderLookupFile } = files;
  let template = orderFields ?? noTemplate;
  if (orderTemplateFile !== undefined) {
    if (template.order.length > 0) {
      problems.push('MARINA_FIX_ORDER_FIELDS and MARINA_FIX_ORDER_TEMPLATE_FILE must not both be set');
    }
    template = tried(
      'MARINA_FIX_ORDER_TEMPLATE_FILE',
      problems,
      () => parseTemplate(read(orderTemplateFile)),
      noTemplate,
    );
  }
  const name = 'MARINA_FIX_ORDER_LOOKUP_FILE';
  tried(
    name,
    problems,
    () => {
      if (orderLookupFile === undefined) checkNoLookups(template);
      else checkedLookups(read(orderLookupFile), template);
    },
    undefined,
  );
  return template;
}

function tried<T>(name: string, problems: string[], work: () => T, otherwise: T): T {
  try {
    return work();
  } catch (error) {
    problems.push(`${name} ${(error as Error).message}`);
    return otherwise;
  }
}

function read(path: string): string {
  const found = statSync(path);
  if (!found.isFile() || found.size > maxLookupBytes) {
    throw new Error(`must name a regular file of at most ${maxLookupBytes} bytes`);
  }
  return readFileSync(path, 'utf8');
}
