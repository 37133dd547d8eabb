import { headerValues, type Request } from '../../http/exchange.ts'
import { follow, type OnLook } from '../../lib/follow.ts'
import type { Log } from '../../lib/log.ts'
import type { Authenticator } from '../gate.ts'
import { notIdentified } from '../refusal.ts'
import { authenticated, type User } from '../user.ts'
import { loadTokens, type TokenTable } from './token-file.ts'

/** Knows whose a bearer token is. */
export interface TokenUsers {
  /**
   * Undefined when it is nobody's that this one knows. Rejects with 401 when it must not be used,
   * and with 503 when that cannot be found out. `from` is the address that it came from.
   */
  userOf(token: string, from: string): User | undefined | Promise<User | undefined>
}

/** Asks for a token's user one after the other; a token that nobody knows is refused. */
export function bearerTokens(known: readonly TokenUsers[]): Authenticator {
  return {
    authenticate: (request) => {
      const token = bearerToken(request)
      return token === undefined ? undefined : userOf(known, token, request.peer.address)
    },
    again: (request) => {
      const token = bearerToken(request)
      return token === undefined ? undefined : askAgain(known, copied(token), request.peer.address)
    },
  }
}

function userOf(
  known: readonly TokenUsers[],
  token: string,
  from: string,
  at = 0,
): User | Promise<User> {
  for (let index = at; index < known.length; index++) {
    const found = known[index]?.userOf(token, from)
    if (found instanceof Promise) {
      return found.then((user) =>
        user === undefined ? userOf(known, token, from, index + 1) : authenticated(user),
      )
    }
    if (found !== undefined) return authenticated(found)
  }
  throw notIdentified('bad-token')
}

function askAgain(known: readonly TokenUsers[], token: string, from: string) {
  return (): User | Promise<User> => userOf(known, token, from)
}

/** Without the header that it is a part of. */
function copied(token: string): string {
  return Buffer.from(token, 'latin1').toString('latin1')
}

/** Room for a signed token with hundreds of groups. Strangers cannot make us look at more. */
const TOKEN_LENGTH_MAX = 16 * 1024

/**
 * Any case of the scheme, any text after the token; other schemes are no credentials here. Two
 * such headers are refused: a proxy may have looked at the other one.
 */
function bearerToken(request: Request): string | undefined {
  const [sent = '', ...more] = headerValues(request, 'authorization')
  if (more.length > 0) throw notIdentified('bad-token')
  const token = /^bearer\s+(\S+)/i.exec(sent)?.[1]
  if (token !== undefined && token.length > TOKEN_LENGTH_MAX) throw notIdentified('bad-token')
  return token
}

/**
 * The tokens of `--token-auth-file`, as the file has them now: it is looked at once a second. While
 * a new one cannot be used, the tokens of the old one stay.
 */
export class FileTokens implements TokenUsers {
  #table: TokenTable
  readonly #follower: { stop(): void }

  /** Rejects, naming the file and the line, if the file cannot be used. */
  static async open(path: string, log: Log, onLook?: OnLook): Promise<FileTokens> {
    const table = await loadTokens(path)
    logRemarks(path, table, log)
    return new FileTokens(path, { table, log, onLook })
  }

  private constructor(
    path: string,
    {
      table,
      log,
      onLook,
    }: { readonly table: TokenTable; readonly log: Log; readonly onLook: OnLook | undefined },
  ) {
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
      onMended: () => log.info('Token file in use again, as it was', { file: path }),
      onLook,
    })
  }

  userOf(token: string): User | undefined {
    return this.#table.userOf(token)
  }

  stop(): void {
    this.#follower.stop()
  }
}

/** Enough to see what is wrong with a file; a file of nothing else must not fill the log. */
const REMARKS_LOGGED_MAX = 20

function logRemarks(path: string, { remarks }: TokenTable, log: Log): void {
  for (const { line, text } of remarks.slice(0, REMARKS_LOGGED_MAX)) {
    log.warn('Line of the token file not used as it stands', { file: path, line, reason: text })
  }
  const more = remarks.length - REMARKS_LOGGED_MAX
  if (more > 0) log.warn('More such lines in the token file', { file: path, count: more })
}
