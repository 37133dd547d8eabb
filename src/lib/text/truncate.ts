/** Enough characters to recognise a text. */
export const TRUNCATED_MAX = 256

/** Bounds a text from a request, which may have any length, for a response or log line. */
export function truncate(text: string): string {
  return text.slice(0, TRUNCATED_MAX)
}
