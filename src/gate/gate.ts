import { forbidden, unauthorized } from '../api/status.ts'
import type { Request } from '../http/exchange.ts'
import type { Attributes } from './attributes.ts'
import { isFromHost } from './host.ts'
import { ANONYMOUS, HOST, type User } from './user.ts'

/** Knows one kind of credentials. */
export interface Authenticator {
  /**
   * Undefined when the request shows none of this kind. Rejects with 401 when it does and they are
   * wrong: a client that sends wrong credentials must hear of it.
   */
  authenticate(request: Request): Promise<User | undefined>
}

export type Verdict = 'allow' | 'deny' | 'no-opinion'

export interface Decision {
  readonly verdict: Verdict
  /** Told to whoever is refused. */
  readonly reason?: string
}

/** Knows who may do what. Fails closed: what it cannot find out it has no opinion on. */
export interface Authorizer {
  decide(user: User, attributes: Attributes): Promise<Decision>
}

/** A place among the requests under way; given back when it is disposed of. */
export type Place = Disposable

/** Knows how much is too much. */
export interface Limits {
  /** Rejects with 429 and a time to come back. */
  enter(user: User, attributes: Attributes): Promise<Place>
}

/** What a service's handler knows of whoever asks. */
export interface Caller {
  readonly user: User
  /** Rejects with 403 unless this is permitted as well. */
  authorize(attributes: Attributes): Promise<void>
}

/** What the gate needs to know of the thing asked for. */
export interface Access {
  /** Open to processes on this host without credentials, as health probes are. */
  readonly isOpenToHost: boolean
}

export interface GateOptions {
  /** In the order in which they are asked; the first that knows the caller decides. */
  readonly authenticators: readonly Authenticator[]
  /** The first with an opinion decides. */
  readonly authorizers: readonly Authorizer[]
  /** Whether a caller without credentials is somebody. */
  readonly allowsAnonymous: boolean
}

/** Decides who may come in. Identity belongs to the request, never to its connection. */
export class Gate {
  readonly #options: GateOptions

  constructor(options: GateOptions) {
    this.#options = options
  }

  /** Rejects with 401 when the caller has not shown who it is, and with 403 when it may not. */
  async admit(request: Request, attributes: Attributes, access: Access): Promise<Caller> {
    const user = await this.#identify(request)
    if (user === undefined) {
      // Probes ask from the host itself, and have nothing to show.
      if (access.isOpenToHost && isFromHost(request)) return this.#caller(HOST)
      if (!this.#options.allowsAnonymous) throw unauthorized()
    }
    const caller = this.#caller(user ?? ANONYMOUS)
    await caller.authorize(attributes)
    return caller
  }

  async #identify(request: Request): Promise<User | undefined> {
    for (const authenticator of this.#options.authenticators) {
      const user = await authenticator.authenticate(request)
      if (user !== undefined) return user
    }
    return undefined
  }

  #caller(user: User): Caller {
    return { user, authorize: (attributes) => this.#authorize(user, attributes) }
  }

  async #authorize(user: User, attributes: Attributes): Promise<void> {
    let reason: string | undefined
    for (const authorizer of this.#options.authorizers) {
      const decision = await authorizer.decide(user, attributes)
      if (decision.verdict === 'allow') return
      reason = decision.reason ?? reason
      if (decision.verdict === 'deny') break
    }
    throw forbidden(user.name, attributes, reason)
  }
}
