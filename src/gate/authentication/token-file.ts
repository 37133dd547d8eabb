import { hash } from 'node:crypto'
import { readBounded } from '../../lib/bounded-file.ts'
import { CsvError, type CsvRecord, csvRecords } from '../../lib/csv.ts'
import type { User } from '../user.ts'

/** Room for ten thousand tokens. A much larger file would hold up requests while it is taken in. */
const FILE_BYTES_MAX = 1024 * 1024
/** Longer ones are not looked up, so that a stranger cannot make us hash much. */
const TOKEN_LENGTH_MAX = 8 * 1024
const COLUMNS_MIN = 3
const COLUMNS_MAX = 4
const AUTHENTICATED = 'system:authenticated'

/** A line that is not used as it stands, and why: for the log, so it never quotes the line. */
export interface TokenFileRemark {
  readonly line: number
  readonly text: string
}

/** What a token file says. */
export interface TokenTable {
  /** Undefined when it is nobody's. */
  userOf(token: string): User | undefined
  /** The file as it was read. */
  readonly content: Buffer
  readonly remarks: readonly TokenFileRemark[]
  /** How many tokens it knows. */
  readonly size: number
}

/**
 * Reads a file of tokens, one to a line: token, user, uid and, as one quoted field, groups with
 * commas between them. `current` comes back if the file still says what it says.
 */
export async function loadTokens(path: string, current?: TokenTable): Promise<TokenTable> {
  const content = await readBounded(path, FILE_BYTES_MAX)
  if (current?.content.equals(content) === true) return current
  return tokenTable(path, content)
}

/** Throws what is wrong with the file, by its name and line; `content` is not quoted anywhere. */
export function tokenTable(path: string, content: Buffer): TokenTable {
  const users = new Map<string, User>()
  const remarks: TokenFileRemark[] = []
  for (const { line, fields } of recordsOf(path, content)) {
    const remark = (text: string): number => remarks.push({ line, text })
    const [token = '', name = '', uid = '', groups = ''] = fields
    if (fields.length < COLUMNS_MIN) {
      throw new Error(
        `${path}, line ${line}: ${fields.length} columns where token, user and uid are needed`,
      )
    }
    if (name === '') throw new Error(`${path}, line ${line}: the user has no name`)
    if (!isSendable(token)) {
      remark(token === '' ? 'skipped: no token' : 'skipped: no request can carry such a token')
      continue
    }
    if (fields.length > COLUMNS_MAX) {
      remark('only the first group counts: quote the groups together, "one,two"')
    }
    const digest = digestOf(token)
    if (users.has(digest)) remark('takes the place of an earlier line with the same token')
    users.set(digest, { name, uid, groups: groupsOf(groups) })
  }
  return {
    content,
    remarks,
    size: users.size,
    userOf: (token) => (token.length > TOKEN_LENGTH_MAX ? undefined : users.get(digestOf(token))),
  }
}

/**
 * Tokens are told apart by digest: how long a comparison of digests takes says nothing about the
 * tokens behind them. Whoever measures it may learn how far the digest of a guess agrees with one of
 * ours, which is no step towards the token: a guess that is closer has no digest that is closer. The
 * digest itself takes a time that depends on the length of what was sent, and on nothing of ours.
 */
function digestOf(token: string): string {
  return hash('sha256', token, 'base64')
}

/** The scheme ends at a space, and so does a token; headers carry printable ASCII. */
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

/** Without the mark that some editors put first, which would become part of the first token. */
function textOf(path: string, content: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content)
  } catch {
    throw new Error(`${path} is not UTF-8`)
  }
}
