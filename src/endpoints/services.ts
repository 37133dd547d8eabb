import type { Caller } from '../gate/gate.ts'
import type { Request, Response } from '../http/exchange.ts'

/** Answers a request of somebody who has been let in. */
export type ServiceHandler = (request: Request, caller: Caller) => Promise<Response>

/** A family of paths that is served together and becomes available together. */
export interface Service {
  readonly name: string
  /** Callers on this host need no credentials for it. */
  readonly isOpenToHost: boolean
  /** Callers on this host need no permission for it either, whosever credentials they show. */
  readonly isOpenToHostUsers?: boolean
  /** The handler for a path of this family; undefined for anybody else's path. */
  find(path: string): ServiceHandler | undefined
}

/**
 * The paths this server serves. Which services there will be is known from the start; each is
 * installed when it can answer. Until all are, a path nobody knows may still become known, so it
 * is not yet "not found".
 */
export class Services {
  readonly #expected: readonly string[]
  readonly #installed: Service[] = []

  constructor(expected: readonly string[]) {
    this.#expected = expected
  }

  install(service: Service): void {
    if (!this.missing().includes(service.name)) {
      throw new Error(`unexpected service: ${service.name}`)
    }
    this.#installed.push(service)
  }

  /** Names of the services that cannot answer yet. */
  missing(): readonly string[] {
    return this.#expected.filter(
      (name) => !this.#installed.some((service) => service.name === name),
    )
  }

  find(path: string): { readonly service: Service; readonly handler: ServiceHandler } | undefined {
    for (const service of this.#installed) {
      const handler = service.find(path)
      if (handler !== undefined) return { service, handler }
    }
    return undefined
  }
}
