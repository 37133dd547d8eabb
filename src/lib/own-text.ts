/**
 * A copy that shares no memory with the text it was cut from. V8 keeps a string that was cut from a
 * longer one as a view of it, so that a few characters of a query keep all of the query.
 */
export function ownText(text: string): string {
  const encoding = /^[\0-\xff]*$/.test(text) ? 'latin1' : 'utf16le'
  return Buffer.from(text, encoding).toString(encoding)
}
