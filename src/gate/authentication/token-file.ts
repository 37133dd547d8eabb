import { readBounded } from '../../lib/files/bounded-file.ts'
import { follow, type OnPoll } from '../../lib/files/follow.ts'
import type { Log } from '../../lib/log/log.ts'
import { CsvError, type CsvRecord, csvRecords } from '../../lib/text/csv.ts'
import { ownText } from '../../lib/text/own-text.ts'
import { digestOf } from '../expiring-cache.ts'
import { AUTHENTICATED, type User } from '../user.ts'
import type { TokenAuthenticator } from './bearer-token.ts'

/** Enough for ten thousand tokens. Parsing a much larger file would delay requests. */
const FILE_BYTES_MAX = 1024 * 1024
/** Longer tokens are not looked up, so that no client can cause expensive hashing. */
const TOKEN_LENGTH_MAX = 8 * 1024
const COLUMNS_MIN = 3
const COLUMNS_MAX = 4

/** A problem in a line, for the log. It never quotes the content. */
export interface TokenFileRemark {
  readonly line: number
  readonly text: string
}

export interface TokenTable {
  userOf(token: string): User | undefined
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
  const recent = new RecentTokens()
  const userOf = (token: string): User | undefined => {
    if (token.length > TOKEN_LENGTH_MAX) return undefined
    const known = recent.find(token)
    if (known !== undefined) return known
    const user = users.get(digestOf(token))
    if (user !== undefined) recent.add(token, user)
    return user
  }
  return { content, remarks, size: users.size, userOf }
}

/**
 * Caches recently used tokens, since a digest is a good part of the cost of authentication. The
 * time of a lookup reveals at most whether a token of the same length and with the same hash of its
 * last four characters was used recently: a comparison takes as long wherever two tokens differ.
 */
class RecentTokens {
  readonly #entries: ({ readonly token: string; readonly user: User } | undefined)[] = new Array(
    RECENT_TOKENS,
  ).fill(undefined)

  find(token: string): User | undefined {
    const entry = this.#entries[placeOf(token)]
    return entry !== undefined && isSame(entry.token, token) ? entry.user : undefined
  }

  add(token: string, user: User): void {
    this.#entries[placeOf(token)] = { token: ownText(token), user }
  }
}

const RECENT_TOKENS = 256
/** How many of the last characters are hashed. The first ones are often alike. */
const PLACE_CHARACTERS = 4

function placeOf(token: string): number {
  let place = token.length
  for (let at = Math.max(0, token.length - PLACE_CHARACTERS); at < token.length; at++) {
    place = (place * 31 + token.charCodeAt(at)) % RECENT_TOKENS
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

/** Whether the token fits in a header, which has only printable ASCII and separates by spaces. */
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

/** Drops a byte order mark, which would become part of the first token. */
function textOf(path: string, content: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content)
  } catch {
    throw new Error(`${path} is not UTF-8`)
  }
}

/**
 * Authenticates the tokens of `--token-auth-file`, which is polled once a second. While the file is
 * unusable after a change, the previous tokens stay valid.
 */
export class FileTokens implements TokenAuthenticator {
  #table: TokenTable
  readonly #follower: { stop(): void }

  /** Rejects if the file is unusable, with an error that names path and line. */
  static async open(path: string, log: Log, onPoll?: OnPoll): Promise<FileTokens> {
    const table = await loadTokens(path)
    logRemarks(path, table, log)
    return new FileTokens(path, table, log, onPoll)
  }

  private constructor(path: string, table: TokenTable, log: Log, onPoll: OnPoll | undefined) {
    this.#table = table
    this.#follower = follow({
      inUse: table,
      load: (current) => loadTokens(path, current),
      onChange: (found) => {
        this.#table = found
        logRemarks(path, found, log)
        log.info('Token file reloaded', { file: path, count: found.size })
      },
      onProblem: (err) => log.warn('Token file not reloaded', { err }),
      onRecovered: () => log.info('Token file valid again, unchanged', { file: path }),
      onPoll,
    })
  }

  userOf(token: string): User | undefined {
    return this.#table.userOf(token)
  }

  stop(): void {
    this.#follower.stop()
  }
}

/** Enough to find the problem; a file with thousands of problems must not fill the log. */
const REMARKS_LOGGED_MAX = 20

function logRemarks(path: string, { remarks }: TokenTable, log: Log): void {
  for (const { line, text } of remarks.slice(0, REMARKS_LOGGED_MAX)) {
    log.warn('Problem in a line of the token file', { file: path, line, reason: text })
  }
  const more = remarks.length - REMARKS_LOGGED_MAX
  if (more > 0) log.warn('More problems in the token file', { file: path, count: more })
}
