/** The nodes of pods, learned from events that name them, for the events that do not. */
import { BoundedMap } from '../lib/bounded-map.ts'
import { ownText } from '../lib/text/own-text.ts'
import { type NodeFields, nodeOf } from './node.ts'

const BYTES_MAX = 16 * 1024 * 1024
/** What an entry takes in addition to its texts. */
const ENTRY_BYTES = 200
const NODE_NAME_LENGTH_MAX = 253

interface Place {
  readonly node: string
  /** Of the pod: another one of the same name may run elsewhere. Empty if unknown. */
  readonly uid: string
}

export class KnownPlaces {
  readonly #places: BoundedMap<Place>

  constructor(bytesMax: number = BYTES_MAX) {
    this.#places = new BoundedMap(bytesMax, sizeOf)
  }

  get size(): number {
    return this.#places.size
  }

  get bytes(): number {
    return this.#places.bytes
  }

  /** The node of an event, learned for its pod if the event names it; empty if unknown. */
  placed(cluster: string, fields: NodeFields): string {
    const { kind, namespace, name, uid } = fields.regarding
    const node = nodeOf(fields)
    if (kind !== 'Pod' || name === '') return node
    const key = `${namespace}\n${name}`
    const known = this.#places.get(cluster, key)
    if (node === '') return known === undefined || isOther(known.uid, uid) ? '' : known.node
    const isNew = known?.node !== node || isOther(known.uid, uid)
    if (isNew && node.length <= NODE_NAME_LENGTH_MAX) {
      this.#places.set(cluster, ownText(key), { node: ownText(node), uid: ownText(uid) })
    }
    return node
  }
}

function isOther(uid: string, other: string): boolean {
  return uid !== other && uid !== '' && other !== ''
}

function sizeOf(key: string, { node, uid }: Place): number {
  return ENTRY_BYTES + key.length + node.length + uid.length
}
