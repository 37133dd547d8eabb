import { methodNotAllowed, onlyListed } from '../../api/status.ts'
import type { Place, Target } from '../../gate/target.ts'
import type { Endpoint, EventCollection, EventTarget, OneObject } from '../events/event-api.ts'
import { inTime } from '../request/timeout.ts'
import { compressed } from '../response/compress.ts'
import { unknownPathHandler } from '../response/respond.ts'
import type { Service } from '../services.ts'

export interface ResourcePath {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly resource: string
}

/** A read-only resource without namespaces. */
export interface ReadOnlyResource extends ResourcePath {
  readonly get: Endpoint<OneObject>
  readonly list: Endpoint<Everything>
  readonly watch: Endpoint<Everything | OneObject>
}

/** A namespaced resource whose objects are computed on each list and exist only there. */
export interface ListOnlyResource extends ResourcePath {
  readonly list: Endpoint<Everything | EventCollection>
}

export type Everything = { readonly kind: 'everything' }

/** The name that probes report while the service is missing. */
export function readOnlyServiceName({
  group,
  resource,
}: Pick<ResourcePath, 'group' | 'resource'>): string {
  return group === '' ? resource : `${resource}.${group}`
}

/** Serves everything under the path of the resource, but no other paths of its group. */
export function readOnlyService(options: ReadOnlyResource): Service {
  return serviceOf(options, isUnnamespaced, executor(options))
}

/** Serves a resource that can only be listed. */
export function listOnlyService(options: ListOnlyResource): Service {
  const list = inTime(options.list)
  return serviceOf(options, isNamespaced, (request, target, caller) => {
    const { place, verb } = target
    if (request.method !== 'GET' || verb !== 'list' || place.kind === 'object') {
      throw onlyListed(options.resource)
    }
    return list(request, { ...target, place }, caller)
  })
}

/** Serves the targets of a resource whose place is of this kind, and a 404 for any other. */
function serviceOf<At extends Place>(
  path: ResourcePath,
  isServed: (place: Place) => place is At,
  execute: Endpoint<At>,
): Service {
  const { group, version, resource } = path
  const isOwn = (target: Target): target is Target & { readonly isResource: true } =>
    target.isResource &&
    target.resource === resource &&
    target.group === group &&
    target.version === version
  return {
    name: readOnlyServiceName(path),
    isOpenToHost: false,
    paths: [],
    find: (target) => {
      if (!isOwn(target)) return undefined
      const { place } = target
      if (place === undefined || !isServed(place)) return unknownPathHandler
      const served: EventTarget<At> = { ...target, place }
      return (request, caller) => compressed(request, execute(request, served, caller))
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

function isUnnamespaced(place: Place): place is Everything | OneObject {
  return place.kind === 'everything' || place.kind === 'unnamespaced'
}

function isNamespaced(place: Place): place is Exclude<Place, OneObject> {
  return place.kind !== 'unnamespaced'
}
