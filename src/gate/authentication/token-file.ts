import { hash } from 'node:crypto'
import { readBounded } from '../../lib/files/bounded-file.ts'
import { CsvError, type CsvRecord, csvRecords } from '../../lib/text/csv.ts'
import { ownText } from '../../lib/text/own-text.ts'
import type { User } from '../user.ts'

/** Enough for ten thousand tokens. Parsing a much larger file would delay requests. */
const FILE_BYTES_MAX = 1024 * 1024
/** Longer tokens are not looked up, so that no client can cause expensive hashing. */
const TOKEN_LENGTH_MAX = 8 * 1024
const COLUMNS_MIN = 3
const COLUMNS_MAX = 4
const AUTHENTICATED = 'system:authenticated'

/** A problem in a line, for the log. It never quotes the line. */
export interface TokenFileRemark {
  readonly line: number
  readonly text: string
}

/** The content of a token file. */
export interface TokenTable {
  /** Undefined when the token is not in the file. */
  userOf(token: string): User | undefined
  /** The bytes of the file. */
  readonly content: Buffer
  readonly remarks: readonly TokenFileRemark[]
  /** Number of tokens. */
  readonly size: number
}

/**
 * Reads a file with one token per line: token, user, uid and, as one quoted field, groups separated
 * by commas. Returns `current` itself when the content of the file is unchanged.
 */
export async function loadTokens(path: string, current?: TokenTable): Promise<TokenTable> {
  const content = await readBounded(path, FILE_BYTES_MAX)
  if (current?.content.equals(content) === true) return current
  return tokenTable(path, content)
}

/** Throws an error with path, line and problem. It never quotes the content. */
export function tokenTable(path: string, content: Buffer): TokenTable {
  const users = new Map<string, User>()
  const remarks: TokenFileRemark[] = []
  for (const { line, fields } of recordsOf(path, content)) {
    const remark = (text: string): number => remarks.push({ line, text })
    const [token = '', name = '', uid = '', groups = ''] = fields
    if (fields.length < COLUMNS_MIN) {
      throw new Error(
        `${path}, line ${line}: ${fields.length} columns, but token, user and uid are required`,
      )
    }
    if (name === '') throw new Error(`${path}, line ${line}: the user name is empty`)
    if (!isSendable(token)) {
      remark(token === '' ? 'skipped: no token' : 'skipped: a header cannot contain this token')
      continue
    }
    if (fields.length > COLUMNS_MAX) {
      remark('only the first group is used: quote the groups together, "one,two"')
    }
    const digest = digestOf(token)
    if (users.has(digest)) remark('replaces an earlier line with the same token')
    users.set(digest, { name, uid, groups: groupsOf(groups) })
  }
  const known = new KnownTokens()
  const userOf = (token: string): User | undefined => {
    if (token.length > TOKEN_LENGTH_MAX) return undefined
    const recent = known.find(token)
    if (recent !== undefined) return recent
    const user = users.get(digestOf(token))
    if (user !== undefined) known.note(token, user)
    return user
  }
  return { content, remarks, size: users.size, userOf }
}

/**
 * The tokens that were used last: a digest is a good part of what authentication costs. The time
 * of a lookup tells at most whether a token of the same length and with the same hash of its last
 * four characters was used lately; a comparison takes as long wherever two tokens differ.
 */
class KnownTokens {
  readonly #entries: ({ readonly token: string; readonly user: User } | undefined)[] = new Array(
    KNOWN_TOKENS,
  ).fill(undefined)

  find(token: string): User | undefined {
    const entry = this.#entries[placeOf(token)]
    return entry !== undefined && isSame(entry.token, token) ? entry.user : undefined
  }

  note(token: string, user: User): void {
    this.#entries[placeOf(token)] = { token: ownText(token), user }
  }
}

const KNOWN_TOKENS = 256
/** At the end, since tokens often begin alike. */
const PLACE_CHARACTERS = 4

function placeOf(token: string): number {
  let place = token.length
  for (let at = Math.max(0, token.length - PLACE_CHARACTERS); at < token.length; at++) {
    place = (place * 31 + token.charCodeAt(at)) % KNOWN_TOKENS
  }
  return place
}

/** Compares all characters, whether they differ early or late. */
function isSame(one: string, other: string): boolean {
  if (one.length !== other.length) return false
  let difference = 0
  for (let at = 0; at < one.length; at++) {
    difference |= one.charCodeAt(at) ^ other.charCodeAt(at)
  }
  return difference === 0
}

/**
 * Tokens that were not used lately are looked up by digest, against timing attacks: the time to
 * compare digests reveals nothing of the tokens. A client that measures it may learn how many bytes
 * the digest of a guess has in common with one of ours. That does not help to find the token, since
 * similar tokens have unrelated digests. The time to compute the digest depends only on the length
 * of the token that was sent.
 */
function digestOf(token: string): string {
  return hash('sha256', token, 'base64')
}

/** A token in a header ends at a space, and a header has only printable ASCII. */
function isSendable(token: string): boolean {
  return token.length <= TOKEN_LENGTH_MAX && /^[\x21-\x7e]+$/.test(token)
}

function groupsOf(field: string): readonly string[] {
  const groups = field.split(',').filter((group) => group !== '' && group !== AUTHENTICATED)
  return [...groups, AUTHENTICATED]
}

function* recordsOf(path: string, content: Buffer): Generator<CsvRecord> {
  try {
    yield* csvRecords(textOf(path, content))
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new Error(`${path}, line ${error.line}: ${error.message}`)
  }
}

/** Without a byte order mark, which would become part of the first token. */
function textOf(path: string, content: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content)
  } catch {
    throw new Error(`${path} is not UTF-8`)
  }
}
