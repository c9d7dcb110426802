/** A name of the contract as Python writes it: `create_order`. */
export function snakeCase(name: string): string {
  return name.replaceAll(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}

/** The words of Python that a name cannot be. */
const words = new Set(
  (
    'and as assert async await break class continue def del elif else except finally for from global if import in is lambda ' +
    'nonlocal not or pass raise return try while with yield None True False'
  ).split(' '),
);

/** A name of the contract where Python has an argument. */
export function pythonArgument(name: string): string {
  return isPythonWord(name) ? `${name}_` : name;
}

export function isPythonWord(name: string): boolean {
  return words.has(name);
}

/** An operation's name as words: `Create order`. */
export function titleOf(name: string): string {
  const words = name
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .replace(/\blga/, 'LGA');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
