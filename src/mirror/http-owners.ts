/** Reads the owners of objects in a Kubernetes API server: only their metadata is requested. */
import type { NamedObject } from '../incidents/workload.ts'
import { isObject, type Json, type JsonObject, memberOf, parsedJson, textOf } from '../lib/json.ts'
import { type HttpClient, HttpResource } from './http-resource.ts'
import type { ChangeOf, ListPageOptions, OriginWatchOptions, PageOf } from './origin.ts'
import { changeOf, type ItemDecoder, type OriginFailure, statusIn } from './origin-decoding.ts'
import {
  OWNED_RESOURCES,
  type OwnedObject,
  type OwnedResource,
  type OwnersOrigin,
} from './owners-origin.ts'

/** The metadata of an object that fits into etcd. */
const objectBytesMax = 2 * 1024 * 1024

export interface HttpOwnersOptions {
  readonly client: HttpClient
  readonly pageBytesMax?: (() => number) | undefined
}

export class HttpOwners implements OwnersOrigin {
  readonly #client: HttpClient
  readonly #resources: ReadonlyMap<OwnedResource, HttpResource<OwnedObject>>

  constructor({ client, pageBytesMax }: HttpOwnersOptions) {
    this.#client = client
    this.#resources = new Map(
      OWNED_RESOURCES.map((owned) => [
        owned,
        new HttpResource({
          client,
          group: owned.group,
          resource: owned.resource,
          accept: {
            list: metadataOnly('PartialObjectMetadataList'),
            watch: metadataOnly('PartialObjectMetadata'),
          },
          decode: ownedDecoder,
          pageBytesMax,
          itemBytesMax: objectBytesMax,
          frameBytesMax: objectBytesMax,
        }),
      ]),
    )
  }

  listPage(resource: OwnedResource, options: ListPageOptions): Promise<PageOf<OwnedObject>> {
    return this.#resource(resource).listPage(options)
  }

  watch(
    resource: OwnedResource,
    options: OriginWatchOptions,
  ): AsyncIterable<ChangeOf<OwnedObject>> {
    return this.#resource(resource).watch(options)
  }

  close(): void {
    this.#client.close()
  }

  #resource(owned: OwnedResource): HttpResource<OwnedObject> {
    const resource = this.#resources.get(owned)
    if (resource === undefined) throw new Error(`${owned.resource} has no owners`)
    return resource
  }
}

function metadataOnly(kind: string): string {
  return `application/json;as=${kind};v=v1;g=meta.k8s.io`
}

const ownedDecoder: ItemDecoder<OwnedObject> = {
  item: (bytes) => ownedIn(parsedJson(bytes)),
  change: changeIn,
}

function changeIn(frame: Buffer): ChangeOf<OwnedObject> | OriginFailure {
  const value = parsedJson(frame)
  const object = isObject(value) ? memberOf(value, 'object') : undefined
  if (!isObject(value) || !isObject(object)) return { type: 'unreadable' }
  const type = textOf(value, 'type')
  if (type === 'ERROR') return { type: 'error', status: statusIn(object) }
  const owned = ownedIn(object)
  return owned === undefined ? { type: 'unreadable' } : changeOf(type, owned)
}

function ownedIn(object: Json | undefined): OwnedObject | undefined {
  const metadata = isObject(object) ? memberOf(object, 'metadata') : undefined
  if (!isObject(metadata)) return undefined
  return {
    namespace: textOf(metadata, 'namespace'),
    name: textOf(metadata, 'name'),
    resourceVersion: textOf(metadata, 'resourceVersion'),
    owner: controllerIn(metadata),
  }
}

function controllerIn(metadata: JsonObject): NamedObject | undefined {
  const references = memberOf(metadata, 'ownerReferences')
  if (!Array.isArray(references)) return undefined
  const controller = references.find(
    (reference) => isObject(reference) && memberOf(reference, 'controller') === true,
  )
  if (!isObject(controller)) return undefined
  return { kind: textOf(controller, 'kind'), name: textOf(controller, 'name') }
}
