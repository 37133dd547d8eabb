import { methodNotAllowed, unknownPath } from '../../api/status.ts'
import type { Target } from '../../gate/target.ts'
import type { Endpoint, EventTarget, OneObject } from '../events/event-api.ts'
import { inTime } from '../request/timeout.ts'
import { compressed } from '../response/compress.ts'
import type { Service, ServiceHandler } from '../services.ts'

/** A resource without namespaces, of which nothing can be written. */
export interface ReadOnlyResource {
  /** Empty for core. */
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly get: Endpoint<OneObject>
  readonly list: Endpoint<Everything>
  readonly watch: Endpoint<Everything | OneObject>
}

export type Everything = { readonly kind: 'everything' }

/** The name that probes show while the service is missing. */
export function readOnlyServiceName({
  group,
  resource,
}: Pick<ReadOnlyResource, 'group' | 'resource'>): string {
  return group === '' ? resource : `${resource}.${group}`
}

/** Everything under the path of the resource. Other paths of its group are left to others. */
export function readOnlyService(options: ReadOnlyResource): Service {
  const { group, version, resource } = options
  const isOwn = (target: Target): target is Target & { readonly isResource: true } =>
    target.isResource &&
    target.resource === resource &&
    target.group === group &&
    target.version === version
  const execute = executor(options)
  return {
    name: readOnlyServiceName(options),
    isOpenToHost: false,
    paths: [],
    find: (target) => {
      if (!isOwn(target)) return undefined
      if (!hasPlace(target)) return unknown
      return async (request, caller) => compressed(request, await execute(request, target, caller))
    },
  }
}

function executor(resource: ReadOnlyResource): Endpoint<Everything | OneObject> {
  const get = inTime(resource.get)
  const list = inTime(resource.list)
  return (request, target, caller) => {
    if (request.method !== 'GET') throw methodNotAllowed()
    const { place } = target
    if (target.verb === 'watch') return resource.watch(request, target, caller)
    if (place.kind === 'everything') return list(request, { ...target, place }, caller)
    return get(request, { ...target, place }, caller)
  }
}

function hasPlace(target: Target): target is EventTarget<Everything | OneObject> {
  if (!target.isResource || target.place === undefined) return false
  return target.place.kind === 'everything' || target.place.kind === 'unnamespaced'
}

const unknown: ServiceHandler = async () => {
  throw unknownPath()
}
