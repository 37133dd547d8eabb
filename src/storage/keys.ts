import { randomUUID } from 'node:crypto'
import { prefixEnd } from '../etcd/client.ts'
import type { EventKey, EventScope } from './storage.ts'

/** A range of etcd keys, the end exclusive. */
export interface KeyRange {
  readonly key: Buffer
  readonly rangeEnd: Buffer
}

/**
 * What is under the prefix, and nothing else is: `events/` with the events, `control/` with what
 * replicas tell each other. This file alone knows the layout.
 */
const eventsFolder = 'events'
const controlFolder = 'control'

/** Keys of replicas for each other, such as the one that the sweeper holds. */
export const controlKeys = ['sweeper', 'compaction', 'ages'] as const
export type ControlKey = (typeof controlKeys)[number]

export function controlKey(prefix: string, name: ControlKey): string {
  return `${prefix}/${controlFolder}/${name}`
}

/** The keys of replicas for each other. */
export function controlRange(prefix: string): KeyRange {
  return folderRange(prefix, controlFolder)
}

/** Everything under the prefix that is in neither folder: this server never writes there. */
export function outsideRanges(prefix: string): readonly KeyRange[] {
  const folders = [controlFolder, eventsFolder].map((folder) => folderRange(prefix, folder))
  const root = Buffer.from(`${prefix}/`)
  const starts = [root, ...folders.map(({ rangeEnd }) => rangeEnd)]
  const ends = [...folders.map(({ key }) => key), prefixEnd(root)]
  return starts.map((key, index) => ({ key, rangeEnd: ends[index] ?? key }))
}

/** Everything that is not under the prefix, which other programs may have written. */
export function foreignRanges(prefix: string): readonly KeyRange[] {
  const root = Buffer.from(`${prefix}/`)
  // For etcd a zero byte is the first key there can be, and as an end it means all there are.
  const edge = Buffer.from([0])
  return [
    { key: edge, rangeEnd: root },
    { key: prefixEnd(root), rangeEnd: edge },
  ]
}

function folderRange(prefix: string, folder: string): KeyRange {
  const key = Buffer.from(`${prefix}/${folder}/`)
  return { key, rangeEnd: prefixEnd(key) }
}

/** Where events are in etcd: `<prefix>/events/<namespace>/<name>`. The mark is at `<prefix>/events/`. */
export class EventKeys {
  readonly #root: string
  readonly #rootLength: number

  constructor(prefix: string) {
    this.#root = `${prefix}/${eventsFolder}/`
    this.#rootLength = Buffer.byteLength(this.#root)
  }

  /**
   * Where replicas put a value of their own now and then, by which a history can be recognised (see
   * etcd/history-proof.ts). It comes before all events and is none.
   */
  get mark(): Buffer {
    return Buffer.from(this.#root)
  }

  isMark(etcdKey: Buffer): boolean {
    return etcdKey.length === this.#rootLength
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

/** What is put at the mark: no other history has the same value at the same revision. */
export function markValue(): Buffer {
  return Buffer.from(randomUUID())
}

export function isMarkValue(value: Buffer): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value.toString('latin1'))
}

/** Whether this can be a namespace or a name in a key. */
export function isPart(text: string): boolean {
  return text !== '' && !text.includes('/')
}
