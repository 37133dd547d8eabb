/**
 * A boolean in a query, as Kubernetes parses it: everything but `0` and `false` is true, also an empty
 * value. Undefined when the parameter is missing.
 */
export function queryBoolean(query: URLSearchParams, name: string): boolean | undefined {
  const text = query.get(name)
  return text === null ? undefined : text !== '0' && text.toLowerCase() !== 'false'
}
