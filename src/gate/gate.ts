import { forbidden, StatusError, unavailable } from '../api/status.ts'
import type { Request } from '../http/exchange.ts'
import type { AccessCheck } from './access-checks.ts'
import type { Attributes } from './attributes.ts'
import { isFromHost } from './host.ts'
import { type Impersonation, impersonationMemory, impersonationOf } from './impersonation.ts'
import { notIdentified } from './refusal.ts'
import { ANONYMOUS, HOST, type User, userMemory } from './user.ts'

/** Knows one kind of credentials. */
export interface Authenticator {
  /**
   * Undefined when the request shows none of this kind. Rejects with 401 when it does and they are
   * wrong: a client that sends wrong credentials must hear of it. Rejects with 503 when nobody can
   * say. What is known at once is no promise, as each takes a turn of its own.
   */
  authenticate(request: Request): Found
  /**
   * The same question for later, when the request is gone: it keeps no more of it than credentials.
   * Undefined when the request shows none of this kind.
   */
  again?(request: Request): (() => Found) | undefined
}

type Found = User | undefined | Promise<User | undefined>

export type Verdict = 'allow' | 'deny' | 'no-opinion'

export interface Decision {
  readonly verdict: Verdict
  /** Told to whoever is refused. */
  readonly reason?: string
  /** Whoever should know could not be asked: a later answer may be another. */
  readonly isUnsure?: boolean
}

/** What Kubernetes puts down where nobody knows. */
const REASON_UNSURE = 'internal error'
/** A refusal for want of an answer is worth another try soon. */
const RETRY_UNSURE_SECONDS = 1

/** Knows who may do what. Fails closed: what it cannot find out it has no opinion on. */
export interface Authorizer {
  decide(user: User, attributes: Attributes): Promise<Decision>
  /** Why it allows what it has just allowed, for the audit log; may cost more than the decision. */
  reasonFor?(user: User, attributes: Attributes): string | undefined
}

/** Hears what the gate finds out about a request, also about one that it then refuses. */
export interface Trail {
  /** Whose credentials it shows. Not called when they are wrong, or missing where they are needed. */
  identified(user: User): void
  /** As whom it is done instead. */
  impersonated(user: User): void
  /** Undefined when whoever decides could not be asked. */
  decided(decision: 'allow' | 'forbid' | undefined, reason: string): void
  /** Whether anybody will read it. */
  readonly isKept: boolean
}

/** What else happens on the way through the gate. */
export interface Admitting {
  readonly trail?: Trail | undefined
  /**
   * Called when it is known who asks, and before anybody is asked whether they may: what it rejects
   * with is the answer. The headers of the request are not looked at after this.
   */
  readonly arrived?: (sender: User, arrival: Arrival) => Promise<void> | undefined
}

/** What is known of a request when it is known who sent it. */
export interface Arrival {
  /** To everybody, without credentials too. */
  readonly isOpen: boolean
  /** Of a watch: the memory that is held to check again whether it may go on, but for its token. */
  readonly recheckBytes: number
}

/** What a service's handler knows of whoever asks. */
export interface Caller {
  readonly user: User
  /** Who speaks for that user, if it is somebody else: what that costs is theirs. */
  readonly sender?: User
  /** Rejects with 403 unless this is permitted as well. */
  authorize(attributes: Attributes): Promise<void>
  /**
   * Of a watch: whether what was permitted still is, to be asked as often as wanted. Holds the
   * credentials, but not the request; the user must still be the same one.
   */
  readonly recheck?: AccessCheck
}

/** What the gate needs to know of the thing asked for. */
export interface Access {
  /** Open to processes on this host without credentials, as health probes are. */
  readonly isOpenToHost: boolean
  /** Open to processes on this host with credentials too, whosever they are. */
  readonly isOpenToHostUsers?: boolean
}

export interface GateOptions {
  /** In the order in which they are asked; the first that knows the caller decides. */
  readonly authenticators: readonly Authenticator[]
  /** The first with an opinion decides. */
  readonly authorizers: readonly Authorizer[]
  /** Whether a caller without credentials is somebody. */
  readonly allowsAnonymous: boolean
  /** Paths that stand for no object and are open to everybody, without credentials too. */
  readonly isOpenToAll?: (path: string) => boolean
  /** Whether a process on this host needs credentials like anybody else. */
  readonly distrustsHost?: boolean
}

/** Decides who may come in. Identity belongs to the request, never to its connection. */
export class Gate {
  readonly #options: GateOptions

  constructor(options: GateOptions) {
    this.#options = options
  }

  /** Rejects with 401 when the caller has not shown who it is, and with 403 when it may not. */
  async admit(
    request: Request,
    attributes: Attributes,
    access: Access,
    { trail, arrived }: Admitting = {},
  ): Promise<Caller> {
    const isOpen = !attributes.isResource && this.#options.isOpenToAll?.(attributes.path) === true
    const shown = (await this.#identify(request)) ?? this.#stranger(request, access, isOpen)
    trail?.identified(shown)
    const credentials = attributes.verb === 'watch' ? this.#credentialsOf(request) : undefined
    const impersonation = impersonationOf(request)
    const isTrustedHost = access.isOpenToHostUsers === true && this.#isTrustedHost(request)
    const recheckBytes =
      credentials === undefined ? 0 : recheckMemory({ shown, impersonation, attributes })
    const arriving = arrived?.(shown, { isOpen, recheckBytes })
    if (arriving !== undefined) await arriving
    const user =
      impersonation === undefined ? shown : await this.#actingAs(shown, impersonation, trail)
    const recheck = credentials && this.#recheck(credentials, { shown, impersonation, attributes })
    const caller = this.#caller(user, shown, recheck)
    if (user === HOST || isOpen || isTrustedHost) {
      trail?.decided('allow', '')
    } else await this.#authorize(user, attributes, trail)
    return caller
  }

  /** What all who are asked come to: the first with an opinion decides. */
  decide(user: User, attributes: Attributes): Promise<Decision> {
    return this.#decide(user, attributes, false)
  }

  async #decide(user: User, attributes: Attributes, isExplained: boolean): Promise<Decision> {
    let reason: string | undefined
    let isUnsure = false
    for (const authorizer of this.#options.authorizers) {
      const decision = await authorizer.decide(user, attributes)
      if (decision.verdict === 'allow') {
        const why = isExplained ? authorizer.reasonFor?.(user, attributes) : undefined
        return why === undefined ? decision : { ...decision, reason: why }
      }
      reason = decision.reason ?? reason
      isUnsure ||= decision.isUnsure === true
      if (decision.verdict === 'deny') return { ...decision, ...(reason && { reason }) }
    }
    return { verdict: 'no-opinion', isUnsure, ...(reason && { reason }) }
  }

  #isTrustedHost(request: Request): boolean {
    return this.#options.distrustsHost !== true && isFromHost(request)
  }

  /** Who somebody without credentials is. */
  #stranger(request: Request, access: Access, isOpen: boolean): User {
    // Probes ask from the host itself, and have nothing to show.
    if (access.isOpenToHost && this.#isTrustedHost(request)) return HOST
    if (this.#options.allowsAnonymous || isOpen) return ANONYMOUS
    throw notIdentified('no-credentials')
  }

  /** The one whom a request names instead of the one who sent it. */
  async #actingAs(user: User, impersonation: Impersonation, trail?: Trail): Promise<User> {
    for (const need of impersonation.needs) {
      // Nobody is asked on behalf of those who may send as many of these as they like.
      if (user === ANONYMOUS || user === HOST) throw forbidden(user.name, need)
      await this.#authorize(user, need)
    }
    trail?.impersonated(impersonation.user)
    return impersonation.user
  }

  #identify(request: Request): Promise<User | undefined> {
    return firstUser(this.#options.authenticators, (one) => one.authenticate(request))
  }

  /** To be asked about when the request is gone. */
  #credentialsOf(request: Request): readonly Again[] {
    const credentials: Again[] = []
    for (const authenticator of this.#options.authenticators) {
      try {
        const again = authenticator.again?.(request)
        if (again !== undefined) credentials.push(again)
      } catch (error) {
        // Something wrong beside what was right, which made no difference then either.
        if (!(error instanceof StatusError) || error.reason !== 'Unauthorized') throw error
      }
    }
    return credentials
  }

  #recheck(credentials: readonly Again[], admitted: Admitted): AccessCheck {
    const { shown, impersonation, attributes } = admitted
    return async () => {
      // A stranger has nothing that could be taken away.
      const user = shown === ANONYMOUS ? shown : await firstUser(credentials, (again) => again())
      if (user?.name !== shown.name || user.uid !== shown.uid) throw notIdentified('bad-token')
      const actor = impersonation === undefined ? user : await this.#actingAs(user, impersonation)
      await this.#authorize(actor, attributes)
    }
  }

  #caller(user: User, sender: User, recheck: AccessCheck | undefined): Caller {
    const authorize = (attributes: Attributes): Promise<void> => this.#authorize(user, attributes)
    if (sender === user && recheck === undefined) return { user, authorize }
    return {
      user,
      authorize,
      ...(sender === user ? undefined : { sender }),
      ...(recheck === undefined ? undefined : { recheck }),
    }
  }

  async #authorize(user: User, attributes: Attributes, trail?: Trail): Promise<void> {
    const isExplained = trail?.isKept === true
    const { verdict, reason, isUnsure } = await this.#decide(user, attributes, isExplained)
    if (verdict === 'allow') {
      trail?.decided('allow', reason ?? '')
      return
    }
    if (verdict === 'no-opinion' && isUnsure === true) {
      trail?.decided(undefined, REASON_UNSURE)
      throw unavailable('whether this is permitted cannot be found out now', RETRY_UNSURE_SECONDS)
    }
    trail?.decided('forbid', reason ?? '')
    throw forbidden(user.name, attributes, reason)
  }
}

/** What was let in, as far as it is needed to ask again. */
interface Admitted {
  readonly shown: User
  readonly impersonation: Impersonation | undefined
  readonly attributes: Attributes
}

/** The user is kept twice: as it was let in, and with its credentials. */
function recheckMemory({ shown, impersonation, attributes }: Admitted): number {
  const impersonated = impersonation === undefined ? 0 : impersonationMemory(impersonation)
  return 2 * userMemory(shown) + impersonated + attributes.path.length
}

type Again = () => Found

/**
 * The first to recognise the caller decides, even if it shows something else that is wrong. But
 * whoever shows something wrong and nothing right is refused, and never taken for a stranger.
 */
async function firstUser<T>(all: readonly T[], ask: (one: T) => Found): Promise<User | undefined> {
  let refusal: StatusError | undefined
  for (const one of all) {
    try {
      const found = ask(one)
      const user = found instanceof Promise ? await found : found
      if (user !== undefined) return user
    } catch (error) {
      if (!(error instanceof StatusError) || error.reason !== 'Unauthorized') throw error
      refusal ??= error
    }
  }
  if (refusal !== undefined) throw refusal
  return undefined
}
