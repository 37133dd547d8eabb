/**
 * Reads a boolean in a query as Kubernetes does: everything but `0` and `false` is true, even an
 * empty value. Returns undefined when the parameter is missing.
 */
export function queryBoolean(query: URLSearchParams, name: string): boolean | undefined {
  const text = query.get(name)
  return text === null ? undefined : text !== '0' && text.toLowerCase() !== 'false'
}
