/** Makes a value the latest one of a map, and drops the oldest if the map then has more than so many. */
export function remember<Key, Value>(values: Map<Key, Value>, key: Key, value: Value, most: number): void {
  values.delete(key);
  values.set(key, value);
  if (values.size <= most) return;
  const [oldest] = values.keys();
  values.delete(oldest as Key);
}
