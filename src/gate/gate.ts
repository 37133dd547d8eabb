import { forbidden, StatusError, unavailable } from '../api/status.ts'
import type { Request } from '../http/exchange.ts'
import type { AccessCheck } from './access-checks.ts'
import type { Attributes } from './attributes.ts'
import { type Authorizer, type Decision, firstDecision } from './decisions.ts'
import { type AuthenticationResult, firstUser } from './first-user.ts'
import { isFromHost } from './host.ts'
import { type Impersonation, impersonationMemory, impersonationOf } from './impersonation.ts'
import { notIdentified } from './refusal.ts'
import { ANONYMOUS, accountOf, HOST, type User, userMemory } from './user.ts'

/** Authenticates one kind of credentials. */
export interface Authenticator {
  /**
   * Returns undefined when the request has no credentials of this kind. Rejects with 401 when they
   * are invalid: a client that sends invalid credentials must get an error. Rejects with 503 when
   * they cannot be checked. A result that is known at once is not a promise, since awaiting one
   * costs a microtask.
   */
  authenticate(request: Request, attributes: Pick<Attributes, 'cluster'>): AuthenticationResult
  /**
   * Returns a function that authenticates the same credentials later, to recheck a watch. It
   * retains the credentials and nothing else of the request. Undefined when the request has none of
   * this kind.
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
 * While a cluster cannot be asked, watches of its users continue for this long. It is shorter than
 * for webhooks because decisions of clusters are cached for seconds, those of webhooks for minutes.
 */
const ORIGIN_GRACE_MS = 30_000

/** Is notified of what the gate learns about a request, even if it then refuses it. */
export interface Trail {
  /** Not called when credentials are invalid, or missing where they are needed. */
  identified(user: User): void
  impersonated(user: User): void
  /** `decision` is undefined when no authorizer could decide. */
  decided(decision: 'allow' | 'forbid' | undefined, reason: string): void
  /** Whether reasons are recorded. If not, the gate does not look for them. */
  readonly isRecorded: boolean
}

/** The caller of a request, as handlers see it. */
export interface Caller {
  readonly user: User
  /** The user that impersonates `user`, if any. Costs are charged to it. */
  readonly sender?: User
  /** Rejects with 403 unless this is permitted too. */
  authorize(attributes: Attributes): Promise<void>
  /**
   * Checks again whether a watch is permitted, and that its user is still the same. Present for
   * watches only. Retains the credentials, but not the request.
   */
  readonly recheck?: AccessCheck
  /** The memory that `recheck` retains, except the token. */
  readonly recheckBytes?: number
}

/** Properties of the requested service that the gate needs. */
export interface Access {
  /** Whether processes on this host need no credentials, as for health probes. */
  readonly isOpenToHost: boolean
  /** Whether processes on this host may also have the credentials of any user. */
  readonly isOpenToHostUsers?: boolean
  /** Whether all clients have access. Credentials are not read: everybody is the anonymous user. */
  readonly isPublic?: boolean
}

export interface GateOptions {
  /** Called in this order. The first one that returns a user decides. */
  readonly authenticators: readonly Authenticator[]
  /** Called in this order. The first one with an opinion decides. */
  readonly authorizers: readonly Authorizer[]
  /** Whether a client without credentials is the anonymous user instead of refused with 401. */
  readonly allowsAnonymous: boolean
  /** Returns whether a path that is not a resource is open to all clients, even anonymous ones. */
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

  /** Returns the user that sends the request. Throws or rejects with 401 when there is none. */
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
   * Returns the caller: `sender`, or the user that it impersonates. Throws or rejects with 403
   * unless the request and the impersonation are permitted. Headers are not read afterwards.
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

  /** Returns whether the path is open to all clients, even anonymous ones. */
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
    // The cluster that authenticated the sender also decides about the impersonated user.
    const { origin } = user
    const payer = accountOf(user)
    const actor = { ...impersonation.user, payer, ...(origin !== undefined && { origin }) }
    trail?.impersonated(actor)
    return actor
  }

  /** Collects the credentials for rechecks, which happen after the request is gone. */
  #credentialsOf(request: Request, attributes: Attributes): readonly Reauthenticate[] {
    const credentials: Reauthenticate[] = []
    for (const authenticator of this.#options.authenticators) {
      try {
        const reauthenticate = authenticator.reauthenticator?.(request, attributes)
        if (reauthenticate !== undefined) credentials.push(reauthenticate)
      } catch (error) {
        // Invalid credentials beside valid ones do not matter, as in `firstUser`.
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

  /** Throws or rejects with 403 or 503. Returns undefined when the user is permitted at once. */
  #authorize(user: User, attributes: Attributes, trail?: Trail): Promise<void> | undefined {
    const question = { user, attributes, isExplained: trail?.isRecorded === true }
    const decision = firstDecision(this.#options.authorizers, question)
    if (!(decision instanceof Promise)) {
      enforce(decision, user, attributes, trail)
      return undefined
    }
    return decision.then((late) => enforce(late, user, attributes, trail))
  }
}

/** Throws unless the user is permitted. */
function enforce(
  { verdict, reason, isUnsure }: Decision,
  user: User,
  attributes: Attributes,
  trail: Trail | undefined,
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

interface Authorizing {
  readonly sender: User
  readonly recheck: Recheck | undefined
  readonly isTrustedHost: boolean
  readonly trail: Trail | undefined
}

type Recheck = Required<Pick<Caller, 'recheck' | 'recheckBytes'>>

/** The part of an admitted watch that is retained for rechecks. */
interface Admitted {
  readonly sender: User
  readonly impersonation: Impersonation | undefined
  readonly attributes: Attributes
}

/** Counts the user twice: as it was admitted, and with its credentials. */
function recheckMemory({ sender, impersonation, attributes }: Admitted): number {
  const impersonated = impersonation === undefined ? 0 : impersonationMemory(impersonation)
  return 2 * userMemory(sender) + impersonated + Buffer.byteLength(attributes.path)
}
