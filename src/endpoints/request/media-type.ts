/** The syntax of the Accept and Content-Type headers. */

/** The maximum of clauses and of parameters per clause: ten times what browsers send. */
const PARTS_MAX = 100

/** A media range of an Accept header, with its parameters. */
export interface AcceptClause {
  /** Lower case; `*` for any. */
  readonly type: string
  readonly subtype: string
  readonly quality: number
  readonly parameters: readonly AcceptParameter[]
}

export interface AcceptParameter {
  readonly name: string
  readonly value: string
}

/**
 * Returns the clauses of an Accept header, the most preferred first: by quality, then exact types
 * before ranges, then in the order sent. Ignores clauses without a type, clauses with quality 0,
 * and all after the first hundred.
 */
export function parseAccept(header: string): readonly AcceptClause[] {
  const clauses: AcceptClause[] = []
  for (const text of header.split(',', PARTS_MAX)) {
    const clause = parseClause(text)
    if (clause !== undefined && clause.quality > 0) clauses.push(clause)
  }
  return clauses.length < 2 ? clauses : clauses.sort(byPreference)
}

function parseClause(text: string): AcceptClause | undefined {
  const [range = '', ...rest] = text.split(';', PARTS_MAX + 1)
  const name = range.trim().toLowerCase()
  const slash = name.indexOf('/')
  if (slash < 0 && name !== '*') return undefined
  let quality = 1
  const parameters: AcceptParameter[] = []
  for (const parameter of rest) {
    const equals = parameter.indexOf('=')
    if (equals < 0) continue
    const name = parameter.slice(0, equals).trim()
    const value = parameter.slice(equals + 1).trim()
    if (name === 'q') quality = parseQuality(value)
    else parameters.push({ name, value })
  }
  const [type, subtype] = slash < 0 ? ['*', '*'] : [name.slice(0, slash), name.slice(slash + 1)]
  return { type, subtype, quality, parameters }
}

/** An invalid quality counts as 1, since a client that lists a type wants it. */
function parseQuality(text: string): number {
  const quality = text === '' ? Number.NaN : Number(text)
  return Number.isNaN(quality) ? 1 : quality
}

function byPreference(one: AcceptClause, other: AcceptClause): number {
  return other.quality - one.quality || stars(one) - stars(other)
}

function stars(clause: AcceptClause): number {
  return (clause.type === '*' ? 1 : 0) + (clause.subtype === '*' ? 1 : 0)
}

const token = "[\\w!#$%&'*+.^`|~-]+"
const mediaType: RegExp = new RegExp(
  `^\\s*(${token}/${token})\\s*(?:;\\s*${token}=(?:${token}|"(?:[^"\\\\]|\\\\.)*")\\s*)*(?:;\\s*)?$`,
)

/**
 * Returns the bare type of a Content-Type header in lower case, or undefined if it is malformed.
 */
export function parseContentType(header: string): string | undefined {
  return mediaType.exec(header)?.[1]?.toLowerCase()
}
