import { StatusError } from '../../api/status.ts'
import { headerValues, type Request } from '../../http/exchange.ts'
import { follow, type OnLook } from '../../lib/files/follow.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Authenticator } from '../gate.ts'
import { notIdentified } from '../refusal.ts'
import { authenticated, type User } from '../user.ts'
import { loadTokens, type TokenTable } from './token-file.ts'

/** Authenticates one kind of bearer tokens. */
export interface TokenAuthenticator {
  /**
   * Undefined when the token is not of this kind or not known. Rejects with 401 when it is invalid,
   * and with 503 when it cannot be checked. `from` is the address of the client, `cluster` is the
   * cluster that is requested.
   */
  userOf(token: string, from: string, cluster: string): User | undefined | Promise<User | undefined>
}

/**
 * Calls the authenticators in this order; a token that none of them knows is refused. `origins`
 * gets the tokens that are unknown or invalid here: those of a cluster may look like ours, since
 * most clusters use the same name for the issuer of their tokens.
 */
export function bearerTokens(
  kinds: readonly TokenAuthenticator[],
  origins?: TokenAuthenticator,
): Authenticator {
  const userOf = origins === undefined ? ownUser(kinds) : ownOrOriginUser(ownUser(kinds), origins)
  return {
    authenticate: (request, { cluster }) => {
      const token = bearerToken(request)
      if (token === undefined) return undefined
      return userOf(token, request.peer.address, cluster)
    },
    reauthenticator: (request, { cluster }) => {
      const token = bearerToken(request)
      if (token === undefined) return undefined
      return reauthenticatorOf(userOf, copied(token), request.peer.address, cluster)
    },
  }
}

/** Throws or rejects when there is no such user. */
type UserOf = (token: string, from: string, cluster: string) => User | Promise<User>

function ownUser(kinds: readonly TokenAuthenticator[]): UserOf {
  const userOf = (token: string, from: string, cluster: string, at = 0): User | Promise<User> => {
    for (let index = at; index < kinds.length; index++) {
      const found = kinds[index]?.userOf(token, from, cluster)
      if (found instanceof Promise) {
        return found.then((user) =>
          user === undefined ? userOf(token, from, cluster, index + 1) : authenticated(user),
        )
      }
      if (found !== undefined) return authenticated(found)
    }
    throw notIdentified('bad-token')
  }
  return (token, from, cluster) => userOf(token, from, cluster)
}

function ownOrOriginUser(own: UserOf, origins: TokenAuthenticator): UserOf {
  return (token, from, cluster) => {
    const originUser = async (refusal: unknown): Promise<User> => {
      const isUnknown = refusal instanceof StatusError && refusal.reason === 'Unauthorized'
      const user = isUnknown ? await origins.userOf(token, from, cluster) : undefined
      if (user === undefined) throw refusal
      return authenticated(user)
    }
    try {
      const found = own(token, from, cluster)
      return found instanceof Promise ? found.catch(originUser) : found
    } catch (refusal) {
      return originUser(refusal)
    }
  }
}

/** A function of its own, so that the closure does not hold the request. */
function reauthenticatorOf(userOf: UserOf, token: string, from: string, cluster: string) {
  return (): User | Promise<User> => userOf(token, from, cluster)
}

/** A copy, since a substring would hold the whole header in memory. */
function copied(token: string): string {
  return Buffer.from(token, 'latin1').toString('latin1')
}

/** Enough for a signed token with hundreds of groups. Longer ones are refused unread. */
const TOKEN_LENGTH_MAX = 16 * 1024

/**
 * The scheme may have any case, and text after the token is ignored. Other schemes are not
 * credentials here. Two such headers are refused: a proxy may have checked the other one.
 */
function bearerToken(request: Request): string | undefined {
  const [sent = '', ...more] = headerValues(request, 'authorization')
  if (more.length > 0) throw notIdentified('bad-token')
  const token = /^bearer\s+(\S+)/i.exec(sent)?.[1]
  if (token !== undefined && token.length > TOKEN_LENGTH_MAX) throw notIdentified('bad-token')
  return token
}

/**
 * The tokens of `--token-auth-file`, which is polled once a second. While the changed file cannot
 * be used, the last usable tokens stay valid.
 */
export class FileTokens implements TokenAuthenticator {
  #table: TokenTable
  readonly #follower: { stop(): void }

  /** Rejects if the file cannot be used; the error has path and line. */
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
      onMended: () => log.info('Token file valid again, unchanged', { file: path }),
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

/** Enough to find the problem; a file with thousands of problems must not fill the log. */
const REMARKS_LOGGED_MAX = 20

function logRemarks(path: string, { remarks }: TokenTable, log: Log): void {
  for (const { line, text } of remarks.slice(0, REMARKS_LOGGED_MAX)) {
    log.warn('Problem in a line of the token file', { file: path, line, reason: text })
  }
  const more = remarks.length - REMARKS_LOGGED_MAX
  if (more > 0) log.warn('More problems in the token file', { file: path, count: more })
}
