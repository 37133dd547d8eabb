/** An origin that is a Kubernetes API server, or another tidings. */
import { isObject, memberOf, parsedJson } from '../lib/json.ts'
import type { OriginEvent } from '../registry/origin-version.ts'
import {
  collected,
  type HttpClient,
  HttpResource,
  type HttpResourceOptions,
  readFrom,
} from './http-resource.ts'
import {
  type ListPageOptions,
  type Origin,
  type OriginChange,
  OriginError,
  type OriginPage,
  type OriginWatchOptions,
} from './origin.ts'
import { eventDecoder } from './origin-decoding.ts'

const protobuf = 'application/vnd.kubernetes.protobuf'
const uidTimeoutMs = 10_000
const namespaceBytesMax = 1024 * 1024
/** A UUID, except of version 8: Kubernetes uses version 4, and used version 1 before 1.16. */
const clusterUid = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-79a-f][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export type HttpOriginOptions = Pick<
  HttpResourceOptions<OriginEvent>,
  'client' | 'clock' | 'random' | 'pageBytesMax' | 'itemBytesMax'
>

export class HttpOrigin implements Origin {
  readonly #client: HttpClient
  readonly #events: HttpResource<OriginEvent>

  constructor(options: HttpOriginOptions) {
    this.#client = options.client
    this.#events = new HttpResource({
      ...options,
      group: '/api/v1',
      resource: 'events',
      accept: {
        list: `${protobuf}, application/json`,
        watch: `${protobuf};stream=watch, application/json`,
      },
      decode: eventDecoder,
    })
  }

  listPage(options: ListPageOptions): Promise<OriginPage> {
    return this.#events.listPage(options)
  }

  watch(options: OriginWatchOptions): AsyncIterable<OriginChange> {
    return this.#events.watch(options)
  }

  async clusterUid(signal: AbortSignal): Promise<string | undefined> {
    try {
      const response = await readFrom(this.#client, '/api/v1/namespaces/kube-system', {
        accept: 'application/json',
        timeoutMs: uidTimeoutMs,
        idleTimeoutMs: uidTimeoutMs,
        signal,
      })
      const body = await collected(response, namespaceBytesMax, signal)
      return body === 'too-long' ? undefined : uidIn(body)
    } catch (error) {
      if (error instanceof OriginError && error.kind === 'refused') return undefined
      throw error
    }
  }

  close(): void {
    this.#client.close()
  }
}

/**
 * Undefined for a uid of version 8: tidings derives those of its namespaces from their names, so they
 * are equal in all installations. Also undefined for anything but JSON, such as the page of a proxy.
 */
function uidIn(namespace: Buffer): string | undefined {
  const object = parsedJson(namespace)
  const metadata = isObject(object) ? memberOf(object, 'metadata') : undefined
  const uid = isObject(metadata) ? memberOf(metadata, 'uid') : undefined
  return typeof uid === 'string' && clusterUid.test(uid) ? uid : undefined
}
