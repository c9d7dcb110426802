import type { DescEnum } from '@bufbuild/protobuf';

/**
 * An enumeration's values as JSON writes them: in lower case, without the enumeration's own name in front, so that
 * `ORDER_STATE_PENDING` is `pending`. The value 0 (`…_UNSPECIFIED`) has no name: it stands for "none".
 */
export function enumNames(desc: DescEnum): ReadonlyMap<number, string> {
  const prefix = `${desc.name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toUpperCase()}_`;
  const names = new Map<number, string>();
  for (const { name, number } of desc.values) {
    if (!name.startsWith(prefix)) throw new Error(`${name} does not begin with ${prefix}`);
    if (number !== 0) names.set(number, name.slice(prefix.length).toLowerCase());
  }
  return names;
}
