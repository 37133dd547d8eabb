import { prefixEnd } from '../etcd/client.ts'
import type { EventKey, EventScope } from './storage.ts'

/** A range of etcd keys, the end exclusive. */
export interface KeyRange {
  readonly key: Buffer
  readonly rangeEnd: Buffer
}

/** Where events are in etcd: `<prefix>/events/<namespace>/<name>`. */
export class EventKeys {
  readonly #root: string
  readonly #rootLength: number

  constructor(prefix: string) {
    this.#root = `${prefix}/events/`
    this.#rootLength = Buffer.byteLength(this.#root)
  }

  /** Throws on names that cannot be part of a key; that they can is for the caller to see to. */
  format(key: EventKey): string {
    const { namespace, name } = key
    if (!isPart(namespace) || !isPart(name)) {
      throw new RangeError(`not the key of an event: ${JSON.stringify(key)}`)
    }
    return `${this.#root}${namespace}/${name}`
  }

  /** Undefined for a key that is not of this form: somebody else put it there. */
  parse(etcdKey: Buffer): EventKey | undefined {
    const text = etcdKey.toString('utf8', this.#rootLength)
    const slash = text.indexOf('/')
    const name = text.slice(slash + 1)
    if (slash < 1 || !isPart(name)) return undefined
    return { namespace: text.slice(0, slash), name }
  }

  /** What a scope covers, or what is left of it after a key. */
  range(scope: EventScope, after?: EventKey): KeyRange {
    const { namespace } = scope
    if (namespace !== undefined && !isPart(namespace)) {
      throw new RangeError(`not a namespace: ${JSON.stringify(namespace)}`)
    }
    const first = Buffer.from(namespace === undefined ? this.#root : `${this.#root}${namespace}/`)
    const rangeEnd = prefixEnd(first)
    if (after === undefined) return { key: first, rangeEnd }
    const next = Buffer.from(`${this.format(after)}\0`)
    return { key: Buffer.compare(next, first) < 0 ? first : next, rangeEnd }
  }
}

/** Whether this can be a namespace or a name in a key. */
export function isPart(text: string): boolean {
  return text !== '' && !text.includes('/')
}
