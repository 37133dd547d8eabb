import { forbidden, StatusError, unavailable } from '../api/status.ts'
import type { Request } from '../http/exchange.ts'
import type { AccessCheck } from './access-checks.ts'
import type { Attributes } from './attributes.ts'
import type { Authorizer, Decision } from './decisions.ts'
import { firstDecision } from './first-decision.ts'
import { type AuthenticationResult, firstUser } from './first-user.ts'
import { isFromHost } from './host.ts'
import { type Impersonation, impersonationMemory, impersonationOf } from './impersonation.ts'
import { notIdentified } from './refusal.ts'
import { ANONYMOUS, accountOf, HOST, type User, userMemory } from './user.ts'

/** Authenticates one kind of credentials. */
export interface Authenticator {
  /**
   * Undefined when the request has no credentials of this kind. Rejects with 401 when it has some
   * and they are invalid: a client that sends invalid credentials must get an error. Rejects with
   * 503 when they cannot be checked. A result that is known at once is not a promise, since
   * awaiting one costs a microtask.
   */
  authenticate(request: Request, attributes: Pick<Attributes, 'cluster'>): AuthenticationResult
  /**
   * A function that authenticates the same credentials later, for rechecks of a watch. It holds the
   * credentials and nothing else of the request. Undefined when the request has none of this kind.
   */
  reauthenticator?(
    request: Request,
    attributes: Pick<Attributes, 'cluster'>,
  ): Reauthenticate | undefined
}

type Reauthenticate = () => AuthenticationResult

/** The reason that Kubernetes writes to the audit log when authorization fails. */
const REASON_UNSURE = 'internal error'
/** Retry-After when no authorizer could decide. */
const RETRY_UNSURE_SECONDS = 1

/**
 * A watch of a user of a cluster continues for this long while the cluster cannot be asked: its
 * decisions are cached for seconds, those of a webhook for minutes.
 */
const ORIGIN_GRACE_MS = 30_000

/** Is notified of what the gate finds out about a request, also about one that it then refuses. */
export interface Trail {
  /** The authenticated user. Not called when credentials are invalid, or missing where needed. */
  identified(user: User): void
  impersonated(user: User): void
  /** Undefined when no authorizer could decide. */
  decided(decision: 'allow' | 'forbid' | undefined, reason: string): void
  /** Whether reasons are recorded; if not, the gate does not look for them. */
  readonly isKept: boolean
}

/** The caller of a request, as handlers see it. */
export interface Caller {
  readonly user: User
  /** The user that impersonates `user`, if any: costs are charged to it. */
  readonly sender?: User
  /** Rejects with 403 unless this is permitted as well. */
  authorize(attributes: Attributes): Promise<void>
  /**
   * Of a watch: checks again whether it is permitted; may be called any number of times. Holds the
   * credentials, but not the request. The user must still be the same.
   */
  readonly recheck?: AccessCheck
  /** The memory that `recheck` retains, except the token. */
  readonly recheckBytes?: number
}

/** What the gate needs to know of the service that is requested. */
export interface Access {
  /** Open to processes on this host without credentials, as health probes are. */
  readonly isOpenToHost: boolean
  /** Open to processes on this host with credentials too, of any user. */
  readonly isOpenToHostUsers?: boolean
  /** Open to all clients. Credentials are not read: everybody is the anonymous user. */
  readonly isPublic?: boolean
}

export interface GateOptions {
  /** Called in this order; the first that returns a user decides. */
  readonly authenticators: readonly Authenticator[]
  /** The first with an opinion decides. */
  readonly authorizers: readonly Authorizer[]
  /** Whether a client without credentials is the anonymous user, instead of refused with 401. */
  readonly allowsAnonymous: boolean
  /** Paths without objects that are open to all clients, also without credentials. */
  readonly isOpenToAll?: (path: string) => boolean
  /** Whether processes on this host need credentials like all other clients. */
  readonly distrustsHost?: boolean
}

/** Authenticates and authorizes requests. Identity belongs to a request, not to a connection. */
export class Gate {
  readonly #options: GateOptions

  constructor(options: GateOptions) {
    this.#options = options
  }

  /** The user that sends the request. Throws or rejects with 401 when there is none. */
  authenticate(
    request: Request,
    attributes: Attributes,
    access: Access,
    trail?: Trail,
  ): User | Promise<User> {
    if (access.isPublic === true) return identified(ANONYMOUS, trail)
    const known = firstUser(this.#options.authenticators, (one) =>
      one.authenticate(request, attributes),
    )
    const sender = (user: User | undefined): User =>
      identified(user ?? this.#withoutCredentials(request, access, attributes), trail)
    return known instanceof Promise ? known.then(sender) : sender(known)
  }

  /**
   * The caller of a request of `sender`, who may act as another user. Throws or rejects with 403
   * unless both are permitted. The headers of the request are not read afterwards.
   */
  authorize(
    request: Request,
    attributes: Attributes,
    access: Access,
    { sender, trail }: { readonly sender: User; readonly trail?: Trail | undefined },
  ): Caller | Promise<Caller> {
    const impersonation =
      access.isPublic === true ? undefined : impersonationOf(request, attributes)
    const credentials =
      attributes.verb === 'watch' ? this.#credentialsOf(request, attributes) : undefined
    const recheck = credentials && this.#recheck(credentials, { sender, impersonation, attributes })
    const isTrustedHost = this.#isTrustedUser(sender, request, access)
    if (impersonation !== undefined) {
      return this.#impersonate(sender, impersonation, trail).then((user) =>
        this.#permitted(user, attributes, access, { sender, recheck, isTrustedHost, trail }),
      )
    }
    return this.#permitted(sender, attributes, access, { sender, recheck, isTrustedHost, trail })
  }

  #permitted(
    user: User,
    attributes: Attributes,
    access: Access,
    { sender, recheck, isTrustedHost, trail }: Authorizing,
  ): Caller | Promise<Caller> {
    const caller = this.#caller(user, sender, recheck)
    if (user === HOST || isTrustedHost || this.isOpen(attributes, access)) {
      trail?.decided('allow', '')
      return caller
    }
    const authorizing = this.#authorize(user, attributes, trail)
    return authorizing === undefined ? caller : authorizing.then(() => caller)
  }

  /** Whether the path is open to all clients, also without credentials. */
  isOpen(attributes: Attributes, access: Access): boolean {
    if (access.isPublic === true) return true
    return !attributes.isResource && this.#options.isOpenToAll?.(attributes.path) === true
  }

  /** The decision of the first authorizer with an opinion. */
  decide(user: User, attributes: Attributes): Decision | Promise<Decision> {
    return firstDecision(this.#options.authorizers, { user, attributes, isExplained: false })
  }

  #isTrustedUser({ origin }: User, request: Request, access: Access): boolean {
    return access.isOpenToHostUsers === true && origin === undefined && this.#isTrustedHost(request)
  }

  #isTrustedHost(request: Request): boolean {
    return this.#options.distrustsHost !== true && isFromHost(request)
  }

  /** The user of a request without credentials. */
  #withoutCredentials(request: Request, access: Access, attributes: Attributes): User {
    // Probes come from the host itself, and have no credentials.
    if (access.isOpenToHost && this.#isTrustedHost(request)) return HOST
    if (this.#options.allowsAnonymous || this.isOpen(attributes, access)) return ANONYMOUS
    throw notIdentified('no-credentials')
  }

  /** Rejects with 403 unless `user` may impersonate. */
  async #impersonate(user: User, impersonation: Impersonation, trail?: Trail): Promise<User> {
    for (const need of impersonation.needs) {
      // Unauthenticated clients must not cause requests to an authorization webhook.
      if (user === ANONYMOUS || user === HOST) throw forbidden(user.name, need)
      await this.#authorize(user, need)
    }
    // What a user of a cluster may do by impersonation is decided by the same cluster.
    const { origin } = user
    const payer = accountOf(user)
    const actor = { ...impersonation.user, payer, ...(origin !== undefined && { origin }) }
    trail?.impersonated(actor)
    return actor
  }

  /** For rechecks after the request is gone. */
  #credentialsOf(request: Request, attributes: Attributes): readonly Reauthenticate[] {
    const credentials: Reauthenticate[] = []
    for (const authenticator of this.#options.authenticators) {
      try {
        const reauthenticate = authenticator.reauthenticator?.(request, attributes)
        if (reauthenticate !== undefined) credentials.push(reauthenticate)
      } catch (error) {
        // Invalid credentials beside valid ones, which did not matter in `firstUser` either.
        if (!(error instanceof StatusError) || error.reason !== 'Unauthorized') throw error
      }
    }
    return credentials
  }

  #recheck(credentials: readonly Reauthenticate[], admitted: Admitted): Recheck {
    const { sender, impersonation, attributes } = admitted
    const check = async (): Promise<void> => {
      // The anonymous user has no credentials that could become invalid.
      const user = sender === ANONYMOUS ? sender : await firstUser(credentials, (one) => one())
      if (user === undefined || !isSameUser(user, sender)) throw notIdentified('bad-token')
      const actor =
        impersonation === undefined ? user : await this.#impersonate(user, impersonation)
      await this.#authorize(actor, attributes)
    }
    return {
      recheck:
        sender.origin === undefined ? check : Object.assign(check, { graceMs: ORIGIN_GRACE_MS }),
      recheckBytes: recheckMemory(admitted),
    }
  }

  #caller(user: User, sender: User, recheck: Recheck | undefined): Caller {
    const authorize = async (attributes: Attributes): Promise<void> =>
      this.#authorize(user, attributes)
    if (sender === user && recheck === undefined) return { user, authorize }
    return {
      user,
      authorize,
      ...(sender === user ? undefined : { sender }),
      ...recheck,
    }
  }

  /** Throws or rejects with 403 or 503. Undefined when the user is permitted at once. */
  #authorize(user: User, attributes: Attributes, trail?: Trail): Promise<void> | undefined {
    const question = { user, attributes, isExplained: trail?.isKept === true }
    const decision = firstDecision(this.#options.authorizers, question)
    if (!(decision instanceof Promise)) {
      enforce(decision, { user, attributes, trail })
      return undefined
    }
    return decision.then((late) => enforce(late, { user, attributes, trail }))
  }
}

/** Throws unless the user is permitted. */
function enforce(
  { verdict, reason, isUnsure }: Decision,
  {
    user,
    attributes,
    trail,
  }: { readonly user: User; readonly attributes: Attributes; readonly trail: Trail | undefined },
): void {
  if (verdict === 'allow') {
    trail?.decided('allow', reason ?? '')
    return
  }
  if (isUnsure === true) {
    trail?.decided(undefined, REASON_UNSURE)
    throw unavailable('the permission cannot be checked now', RETRY_UNSURE_SECONDS)
  }
  trail?.decided('forbid', reason ?? '')
  throw forbidden(user.name, attributes, reason, accountOf(user))
}

function isSameUser(one: User, other: User): boolean {
  return one.name === other.name && one.uid === other.uid && one.origin === other.origin
}

function identified(user: User, trail: Trail | undefined): User {
  trail?.identified(user)
  return user
}

/** What decides about a request besides its user. */
interface Authorizing {
  readonly sender: User
  readonly recheck: Recheck | undefined
  readonly isTrustedHost: boolean
  readonly trail: Trail | undefined
}

type Recheck = Required<Pick<Caller, 'recheck' | 'recheckBytes'>>

/** What is retained of an admitted watch for rechecks. */
interface Admitted {
  readonly sender: User
  readonly impersonation: Impersonation | undefined
  readonly attributes: Attributes
}

/** The user is retained twice: as it was admitted, and with its credentials. */
function recheckMemory({ sender, impersonation, attributes }: Admitted): number {
  const impersonated = impersonation === undefined ? 0 : impersonationMemory(impersonation)
  return 2 * userMemory(sender) + impersonated + Buffer.byteLength(attributes.path)
}
