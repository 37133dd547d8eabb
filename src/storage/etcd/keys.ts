import { randomUUID } from 'node:crypto'
import { prefixEnd } from '../../etcd/client.ts'
import { isPart, parsePath, pathOf, scopePath } from '../event-scope.ts'
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
const controlKeys = ['sweeper', 'compaction', 'ages', 'account', 'archiver', 'archive'] as const
type ControlKey = (typeof controlKeys)[number]

export function controlKey(prefix: string, name: ControlKey): string {
  return `${prefix}/${controlFolder}/${name}`
}

/** Folders among the control keys, with a key for each mirrored cluster. */
const mirrorsFolder = `${controlFolder}/mirrors`
const mirrorLeadersFolder = `${controlFolder}/mirror-leaders`
const mirrorKinds = ['mirrors', 'mirror-leaders'] as const

/** What a control key is for: its name, or its folder. */
export type ControlKind = ControlKey | (typeof mirrorKinds)[number]

/**
 * The name of a control key, without the folder of all of them. Undefined for a key that no version
 * of this server writes: later ones store what is not an event under a name, or a folder
 * and a name, so that earlier ones start beside it (docs/explanation/versions.md).
 */
export function controlName(prefix: string, etcdKey: Buffer): string | undefined {
  const name = etcdKey.toString('utf8', Buffer.byteLength(`${prefix}/${controlFolder}/`))
  return /^[a-z][a-z0-9-]*(\/[a-z0-9][a-z0-9.-]*)?$/.test(name) ? name : undefined
}

/** Undefined for a name that this version does not know. */
export function controlKind(name: string): ControlKind | undefined {
  const [folder, rest] = name.split('/')
  const kinds: readonly ControlKind[] = rest === undefined ? controlKeys : mirrorKinds
  return kinds.find((kind) => kind === folder)
}

/** The key of the record of a mirror: how far it has come, and how it is. */
export function mirrorKey(prefix: string, cluster: string): string {
  return `${prefix}/${mirrorsFolder}/${cluster}`
}

/** The records of all mirrors. */
export function mirrorRange(prefix: string): KeyRange {
  return folderRange(prefix, mirrorsFolder)
}

/** The cluster whose record is at this key. */
export function clusterOfMirrorKey(prefix: string, etcdKey: Buffer): string {
  return etcdKey.toString('utf8', Buffer.byteLength(`${prefix}/${mirrorsFolder}/`))
}

/** The key of the replica that is elected to mirror a cluster. */
export function mirrorLeaderKey(prefix: string, cluster: string): string {
  return `${prefix}/${mirrorLeadersFolder}/${cluster}`
}

/** All control keys. */
export function controlRange(prefix: string): KeyRange {
  return folderRange(prefix, controlFolder)
}

/** All keys under the prefix that are in neither folder: this server never writes them. */
export function outsideRanges(prefix: string): readonly KeyRange[] {
  const root = Buffer.from(`${prefix}/`)
  const folders = [controlFolder, eventsFolder].map((folder) => folderRange(prefix, folder))
  return rangesBetween({ key: root, rangeEnd: prefixEnd(root) }, folders)
}

/** A range without the ranges inside it, which are given in order. */
function rangesBetween(whole: KeyRange, inside: readonly KeyRange[]): readonly KeyRange[] {
  const starts = [whole.key, ...inside.map(({ rangeEnd }) => rangeEnd)]
  const ends = [...inside.map(({ key }) => key), whole.rangeEnd]
  return starts.map((key, index) => ({ key, rangeEnd: ends[index] ?? key }))
}

/** All keys that are not under the prefix, which other programs may have written. */
export function foreignRanges(prefix: string): readonly KeyRange[] {
  const root = Buffer.from(`${prefix}/`)
  // To etcd a zero byte is the first possible key, and as a range end it means no upper bound.
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

/**
 * Keys of events: `<prefix>/events/<cluster>/<namespace>/<name>`. The mark is at
 * `<prefix>/events/`.
 */
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
    const { cluster, namespace, name } = key
    if (!isPart(cluster) || !isPart(namespace) || !isPart(name)) {
      throw new RangeError(`not the key of an event: ${JSON.stringify(key)}`)
    }
    return this.#root + pathOf(key)
  }

  /** Undefined for a key that does not have this form: another program wrote it. */
  parse(etcdKey: Buffer): EventKey | undefined {
    return parsePath(etcdKey.toString('utf8', this.#rootLength))
  }

  /** The range of a scope, or the rest of it after a key. */
  range(scope: EventScope, after?: EventKey): KeyRange {
    for (const part of [scope.cluster, scope.namespace]) {
      if (part !== undefined && !isPart(part)) {
        throw new RangeError(`not a scope: ${JSON.stringify(scope)}`)
      }
    }
    const first = Buffer.from(this.#root + scopePath(scope))
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
