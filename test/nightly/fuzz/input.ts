/** One input for the server: a complete request, and how it can be repeated. */

export const KINDS = [
  'body',
  'patch',
  'selector',
  'token',
  'query',
  'yaml',
  'accept',
  'delete-options',
] as const

export type Kind = (typeof KINDS)[number]

export interface FuzzInput {
  readonly kind: Kind
  /** What is special about it, in a few words. */
  readonly about: string
  readonly method: string
  /** Path and query as in a request line. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** The input as a file that `readInput` reads. */
export function writeInput(input: FuzzInput): string {
  return `${JSON.stringify({ ...input, body: input.body.toString('base64') }, undefined, 2)}\n`
}

export function readInput(text: string): FuzzInput {
  const input = JSON.parse(text)
  return { ...input, body: Buffer.from(input.body, 'base64') }
}

/** Describes an input in one line, however large it is. */
export function describeInput({ kind, about, method, target, body }: FuzzInput): string {
  const shown = target.length <= 200 ? target : `${target.slice(0, 200)}… (${target.length})`
  return `${kind}: ${about}: ${method} ${shown}, body of ${body.length} bytes`
}
