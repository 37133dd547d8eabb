import { randomUUID } from 'node:crypto'
import { prefixEnd } from '../../etcd/client.ts'
import type { EventKey, EventScope } from '../storage.ts'

/** A range of etcd keys, the end exclusive. */
export interface KeyRange {
  readonly key: Buffer
  readonly rangeEnd: Buffer
}

/**
 * The only two folders under the prefix: `events/` with the events, `control/` with the keys
 * through which replicas coordinate. Only this file knows the layout.
 */
const eventsFolder = 'events'
const controlFolder = 'control'

/** The keys through which replicas coordinate, such as the key of the elected sweeper. */
export const controlKeys = ['sweeper', 'compaction', 'ages'] as const
export type ControlKey = (typeof controlKeys)[number]

export function controlKey(prefix: string, name: ControlKey): string {
  return `${prefix}/${controlFolder}/${name}`
}

/** All control keys. */
export function controlRange(prefix: string): KeyRange {
  return folderRange(prefix, controlFolder)
}

/** All keys under the prefix that are in neither folder: this server never writes them. */
export function outsideRanges(prefix: string): readonly KeyRange[] {
  const folders = [controlFolder, eventsFolder].map((folder) => folderRange(prefix, folder))
  const root = Buffer.from(`${prefix}/`)
  const starts = [root, ...folders.map(({ rangeEnd }) => rangeEnd)]
  const ends = [...folders.map(({ key }) => key), prefixEnd(root)]
  return starts.map((key, index) => ({ key, rangeEnd: ends[index] ?? key }))
}

/** All keys that are not under the prefix, which other programs may have written. */
export function foreignRanges(prefix: string): readonly KeyRange[] {
  const root = Buffer.from(`${prefix}/`)
  // In etcd a zero byte is the first possible key, and as a range end it means no upper bound.
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

/** Keys of events: `<prefix>/events/<namespace>/<name>`. The mark is at `<prefix>/events/`. */
export class EventKeys {
  readonly #root: string
  readonly #rootLength: number

  constructor(prefix: string) {
    this.#root = `${prefix}/${eventsFolder}/`
    this.#rootLength = Buffer.byteLength(this.#root)
  }

  /**
   * The key where replicas write a unique value now and then, which identifies the history (see
   * etcd/history-proof.ts). It sorts before all events and is not an event.
   */
  get mark(): Buffer {
    return Buffer.from(this.#root)
  }

  isMark(etcdKey: Buffer): boolean {
    return etcdKey.length === this.#rootLength
  }

  /** Throws on names that cannot be part of a key; the caller must have checked them. */
  format(key: EventKey): string {
    const { namespace, name } = key
    if (!isPart(namespace) || !isPart(name)) {
      throw new RangeError(`not the key of an event: ${JSON.stringify(key)}`)
    }
    return `${this.#root}${namespace}/${name}`
  }

  /** Undefined for a key that does not have this form: another program wrote it. */
  parse(etcdKey: Buffer): EventKey | undefined {
    const text = etcdKey.toString('utf8', this.#rootLength)
    const slash = text.indexOf('/')
    const name = text.slice(slash + 1)
    if (slash < 1 || !isPart(name)) return undefined
    return { namespace: text.slice(0, slash), name }
  }

  /** The range of a scope, or the rest of it after a key. */
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

/** A value for the mark: no other history has the same value at the same revision. */
export function markValue(): Buffer {
  return Buffer.from(randomUUID())
}

export function isMarkValue(value: Buffer): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value.toString('latin1'))
}

/** Whether this text can be a namespace or a name in a key. */
export function isPart(text: string): boolean {
  return text !== '' && !text.includes('/')
}
