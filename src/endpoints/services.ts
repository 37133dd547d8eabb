import type { Caller } from '../gate/gate.ts'
import type { Target } from '../gate/target.ts'
import type { Request, Response } from '../http/exchange.ts'

/** Handles a request that the gate has admitted. */
export type ServiceHandler = (request: Request, caller: Caller) => Promise<Response>

/** A family of paths that is served together and becomes available together. */
export interface Service {
  readonly name: string
  /** Listed at `/`. Metrics label requests by the first part of these paths. */
  readonly paths: readonly string[]
  /** Whether clients on this host need no credentials. */
  readonly isOpenToHost: boolean
  /** Whether clients on this host need no permission either, whatever credentials they send. */
  readonly isOpenToHostUsers?: boolean
  /**
   * Whether it is the same for everybody and open to all clients, whatever credentials they send.
   */
  readonly isPublic?: boolean
  /** The largest body that it accepts, if less than the default. */
  readonly bodyBytesMax?: number
  /** Whether its bodies are credentials, which are not logged at any level. */
  readonly hasSecretBodies?: boolean
  /** Whether it shows data of all clusters, so that it is not served under `/clusters/<name>`. */
  readonly isServerWide?: boolean
  /** Whether it reports on the server itself and has slots that other requests cannot take. */
  readonly isAboutServer?: boolean
  /** Whether it reports on the shutdown and is served until the end of it. */
  readonly isServedAtShutdown?: boolean
  /** A resource that no other service serves. */
  readonly resource?: { readonly group: string; readonly name: string }
  /** Returns the handler for a target of this family, and undefined for any other. */
  find(target: Target): ServiceHandler | undefined
}

/**
 * The services of this server. Their names are known from the start; each is installed when it can
 * respond. Until all are installed, an unknown path may become known, so it is not a 404 yet.
 */
export class Services {
  readonly #expected: readonly string[]
  readonly #installed: Service[] = []
  readonly #roots = new Set<string>()
  /** Keyed by `<group>/<name>`. A lookup costs less than asking each service. */
  readonly #byResource = new Map<string, Service>()

  constructor(expected: readonly string[]) {
    this.#expected = expected
  }

  install(service: Service): void {
    if (!this.missing().includes(service.name)) {
      throw new Error(`unexpected service: ${service.name}`)
    }
    this.#installed.push(service)
    for (const path of service.paths) this.#roots.add(firstPart(path))
    const { resource } = service
    if (resource === undefined) return
    const name = `${resource.group}/${resource.name}`
    if (this.#byResource.has(name)) throw new Error(`two services of ${name}`)
    this.#byResource.set(name, service)
  }

  /** Names of the services that cannot respond yet. */
  missing(): readonly string[] {
    return this.#expected.filter(
      (name) => !this.#installed.some((service) => service.name === name),
    )
  }

  /** The paths of all installed services, sorted. */
  paths(): readonly string[] {
    return this.#installed.flatMap(({ paths }) => paths).sort()
  }

  /** Returns the first part of a path if a service has paths that begin with it, otherwise ''. */
  rootOf(path: string): string {
    const root = firstPart(path)
    return this.#roots.has(root) ? root : ''
  }

  find(target: Target): FoundService | undefined {
    const owner = target.isResource
      ? this.#byResource.get(`${target.group}/${target.resource}`)
      : undefined
    const found = owner && findIn(owner, target)
    if (found !== undefined) return found
    for (const service of this.#installed) {
      const other = findIn(service, target)
      if (other !== undefined) return other
    }
    return undefined
  }
}

interface FoundService {
  readonly service: Service
  readonly handler: ServiceHandler
}

function findIn(service: Service, target: Target): FoundService | undefined {
  if (target.isPrefixed && service.isServerWide === true) return undefined
  const handler = service.find(target)
  return handler && { service, handler }
}

/** The first part of `/livez/ping` is `/livez`. */
function firstPart(path: string): string {
  const end = path.indexOf('/', 1)
  return end === -1 ? path : path.slice(0, end)
}
