import { StatusError } from '../../api/status.ts'
import { headerValues, type Request } from '../../http/exchange.ts'
import { ownText } from '../../lib/text/own-text.ts'
import type { Authenticator } from '../gate.ts'
import { notIdentified } from '../refusal.ts'
import { authenticated, type User } from '../user.ts'

/** Authenticates one kind of bearer token. */
export interface TokenAuthenticator {
  /**
   * Returns undefined when the token is unknown or of another kind. Rejects with 401 when it is
   * invalid, and with 503 when it cannot be checked. `from` is the address of the client, `cluster`
   * the requested cluster.
   */
  userOf(token: string, from: string, cluster: string): User | undefined | Promise<User | undefined>
}

/**
 * Tries the authenticators in this order, and refuses a token that none of them knows. Tokens that
 * are unknown or invalid here go to `origins`: a token of a cluster may look like one of ours,
 * since most clusters use the same issuer name.
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
      return reauthenticatorOf(userOf, ownText(token), request.peer.address, cluster)
    },
  }
}

/** Throws or rejects when the token belongs to no user. */
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

/** A separate function, so that the closure does not retain the request. */
function reauthenticatorOf(userOf: UserOf, token: string, from: string, cluster: string) {
  return (): User | Promise<User> => userOf(token, from, cluster)
}

/** Enough for a signed token with hundreds of groups. Longer tokens are refused unread. */
const TOKEN_LENGTH_MAX = 16 * 1024

/**
 * Ignores the case of the scheme and any text after the token. Other schemes are not credentials
 * here. Refuses a request with two such headers, since a proxy may have checked only the other one.
 */
function bearerToken(request: Request): string | undefined {
  const [sent = '', ...more] = headerValues(request, 'authorization')
  if (more.length > 0) throw notIdentified('bad-token')
  const token = /^bearer\s+(\S+)/i.exec(sent)?.[1]
  if (token !== undefined && token.length > TOKEN_LENGTH_MAX) throw notIdentified('bad-token')
  return token
}
