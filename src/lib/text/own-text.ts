/**
 * Copies a string so that it shares no memory with the string it was cut from. V8 stores a substring
 * as a view of the longer string, so a few characters of a query would retain the whole query.
 */
export function ownText(text: string): string {
  const encoding = /^[\0-\xff]*$/.test(text) ? 'latin1' : 'utf16le'
  return Buffer.from(text, encoding).toString(encoding)
}
