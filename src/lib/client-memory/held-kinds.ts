/** Kinds of memory held for clients. */

/** `watch` is reported but not limited in bytes: the number of watches is limited elsewhere. */
export const HELD_KINDS = [
  'headers',
  'body',
  'response',
  'selector',
  'credentials',
  'audit',
  'request',
  'watch',
] as const
export type HeldKind = (typeof HELD_KINDS)[number]
export type HeldBytes = Record<HeldKind, number>

export const NOTHING_HELD: Readonly<HeldBytes> = {
  headers: 0,
  body: 0,
  response: 0,
  selector: 0,
  credentials: 0,
  audit: 0,
  request: 0,
  watch: 0,
}

/** A switch, since property access by a variable name is several times slower. */
export function addHeld(held: HeldBytes, kind: HeldKind, bytes: number): void {
  switch (kind) {
    case 'headers':
      held.headers += bytes
      break
    case 'body':
      held.body += bytes
      break
    case 'response':
      held.response += bytes
      break
    case 'selector':
      held.selector += bytes
      break
    case 'credentials':
      held.credentials += bytes
      break
    case 'audit':
      held.audit += bytes
      break
    case 'request':
      held.request += bytes
      break
    case 'watch':
      held.watch += bytes
      break
  }
}
