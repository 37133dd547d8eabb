/**
 * Which controller owns which pod, ReplicaSet and Job, by events and owner references. What they do
 * not say is derived from names. Nothing is assigned across namespaces or clusters.
 */
import { BoundedMap } from '../lib/bounded-map.ts'
import { ownText } from '../lib/text/own-text.ts'
import type { EventFields, ObjectReference } from '../storage/event-fields.ts'
import { COMBINED_PREFIX } from './pattern.ts'
import {
  type NamedObject,
  ownerByName,
  selfOf,
  type Workload,
  type WorkloadRule,
} from './workload.ts'

const BYTES_MAX = 16 * 1024 * 1024
/** What an entry takes in addition to its texts. */
const ENTRY_BYTES = 200
/** Those of Jobs that come and go must not displace those of pods that stay. */
const FORMER_PART = 1 / 8
/** A pod, its ReplicaSet or Job, and the owner of that. */
const LINKS_MAX = 3

type NamespacedObject = Pick<ObjectReference, 'kind' | 'namespace' | 'name'>

interface Link {
  /** Undefined when the object is known to have no controller. */
  readonly owner: NamedObject | undefined
  readonly rule: 'event' | 'owner'
}

export class KnownOwners {
  /** Owners of objects that may exist. Events do not change what owner references say. */
  readonly #links: BoundedMap<Link>
  /** Owners of objects that were deleted, for events that arrive late. */
  readonly #former: BoundedMap<Link>

  constructor(bytesMax: number = BYTES_MAX) {
    this.#links = new BoundedMap(bytesMax * (1 - FORMER_PART), sizeOf)
    this.#former = new BoundedMap(bytesMax * FORMER_PART, sizeOf)
  }

  get size(): number {
    return this.#links.size + this.#former.size
  }

  get bytes(): number {
    return this.#links.bytes + this.#former.bytes
  }

  /** How many objects that may exist were forgotten because there were too many. */
  get evicted(): number {
    return this.#links.evicted
  }

  /** Learns from the event of a controller that created or deleted an object. */
  learn(key: { readonly cluster: string; readonly namespace: string }, fields: EventFields): void {
    const { kind, name, namespace } = fields.regarding
    const form = FORMS.get(fields.reason)?.get(kind)
    if (form === undefined || namespace !== key.namespace || !isName(name)) return
    const child = form.child(fields.note, name)
    if (child === undefined || !child.startsWith(`${name}-`.slice(0, form.prefixLength))) return
    const home = homeOf(key.cluster, namespace)
    const place = keyOf(form.kind, child)
    const known = this.#links.get(home, place)
    if (known?.rule === 'owner') return
    if (known?.owner?.kind === kind && known.owner.name === name) return
    const owner = { kind, name: ownText(name) }
    this.#links.set(home, ownText(place), { owner, rule: 'event' })
  }

  /**
   * Learns from the owner references of an object; without a controller, it is its own workload.
   * Events do not change this until `disown`.
   */
  own(
    cluster: string,
    namespace: string,
    object: NamedObject,
    owner: NamedObject | undefined,
  ): void {
    const home = homeOf(cluster, namespace)
    const place = keyOf(object.kind, object.name)
    const known = this.#links.get(home, place)
    // A static pod belongs to its node, which is not a workload.
    const controller = owner?.kind === 'Node' ? undefined : owner
    const isSame =
      known?.owner?.kind === controller?.kind && known?.owner?.name === controller?.name
    if (known?.rule === 'owner' && isSame) return
    const stored = controller && { kind: ownText(controller.kind), name: ownText(controller.name) }
    this.#links.set(home, ownText(place), { owner: stored, rule: 'owner' })
  }

  /**
   * The object was deleted. Its owner is remembered for events that arrive late, until an event
   * names another.
   */
  disown(cluster: string, namespace: string, object: NamedObject): void {
    const home = homeOf(cluster, namespace)
    const place = keyOf(object.kind, object.name)
    const known = this.#links.get(home, place)
    if (known === undefined) return
    this.#links.delete(home, place)
    this.#former.set(home, ownText(place), known)
  }

  /** The workload of the object that an event is about. */
  resolve(cluster: string, { regarding }: { readonly regarding: NamespacedObject }): Workload {
    const { kind, namespace, name } = regarding
    const first = this.#linkOf(cluster, namespace, regarding)
    if (first === undefined) return selfOf(regarding)
    const { owner, rule } = first
    if (owner === undefined) return { kind, name, rule }
    let top = owner
    for (let links = 1; links < LINKS_MAX; links++) {
      const above: NamedObject | undefined = this.#linkOf(cluster, namespace, top)?.owner
      if (above === undefined) break
      top = above
    }
    return { kind: top.kind, name: top.name, rule }
  }

  #linkOf(
    cluster: string,
    namespace: string,
    object: NamedObject,
  ): { readonly owner: NamedObject | undefined; readonly rule: WorkloadRule } | undefined {
    const { kind, name } = object
    if (kind !== 'Pod' && kind !== 'ReplicaSet' && kind !== 'Job') return undefined
    const known = this.#get(homeOf(cluster, namespace), keyOf(kind, name))
    if (known !== undefined) return known
    const owner = ownerByName(object)
    if (owner === undefined) return undefined
    return { owner: this.#corrected(cluster, namespace, owner), rule: 'name' }
  }

  /** By its name, a pod of a Job or of a bare ReplicaSet seems to be one of a DaemonSet. */
  #corrected(cluster: string, namespace: string, owner: NamedObject): NamedObject {
    const { kind, name } = owner
    if (kind !== 'DaemonSet') return owner
    const home = homeOf(cluster, namespace)
    const other = OTHER_KINDS.find(
      (candidate) => this.#get(home, keyOf(candidate, name)) !== undefined,
    )
    return other === undefined ? owner : { kind: other, name }
  }

  #get(home: string, place: string): Link | undefined {
    return this.#links.get(home, place) ?? this.#former.get(home, place)
  }
}

const OTHER_KINDS = ['Job', 'ReplicaSet'] as const

/** How a controller names an object of its own in a note. */
interface Form {
  /** Of the object that is named. */
  readonly kind: 'Pod' | 'ReplicaSet' | 'Job'
  /** So many characters of the owner's name and a dash precede the rest of the object's name. */
  readonly prefixLength: number
  readonly child: (note: string, owner: string) => string | undefined
}

/** Names are cut to 58 characters, which may end with the index of a Job, up to 12 characters. */
const POD_PREFIX_LENGTH = 46

const POD: Form = {
  kind: 'Pod',
  prefixLength: POD_PREFIX_LENGTH,
  child: (note) => named(note, ['Created pod: ', 'Deleted pod: '], ''),
}
const STATEFUL_POD: Form = {
  kind: 'Pod',
  prefixLength: Number.POSITIVE_INFINITY,
  child: (note, owner) =>
    named(note, ['create Pod ', 'delete Pod '], ` in StatefulSet ${owner} successful`),
}
const JOB: Form = {
  kind: 'Job',
  prefixLength: Number.POSITIVE_INFINITY,
  child: (note) => named(note, ['Created job ', 'Deleted job '], ''),
}
const COMPLETED_JOB: Form = {
  ...JOB,
  child: (note) => named(note, ['Saw completed job: '], ', '),
}
const REPLICA_SET: Form = {
  kind: 'ReplicaSet',
  prefixLength: Number.POSITIVE_INFINITY,
  child: (note) => named(note, ['Scaled up replica set ', 'Scaled down replica set '], ' '),
}

/** By kind of the owner. */
type Forms = ReadonlyMap<string, Form>

const CHANGED: Forms = new Map([
  ['ReplicaSet', POD],
  ['ReplicationController', POD],
  ['DaemonSet', POD],
  ['Job', POD],
  ['StatefulSet', STATEFUL_POD],
  ['CronJob', JOB],
])

/** By reason. */
const FORMS: ReadonlyMap<string, Forms> = new Map([
  ['SuccessfulCreate', CHANGED],
  ['SuccessfulDelete', CHANGED],
  ['ScalingReplicaSet', new Map([['Deployment', REPLICA_SET]])],
  ['SawCompletedJob', new Map([['CronJob', COMPLETED_JOB]])],
])

/**
 * The name between one of these texts at the start of a note and `after`, which is at the end when it
 * is empty.
 */
function named(note: string, before: readonly string[], after: string): string | undefined {
  const start = note.startsWith(COMBINED_PREFIX) ? COMBINED_PREFIX.length : 0
  const prefix = before.find((text) => note.startsWith(text, start))
  if (prefix === undefined) return undefined
  const from = start + prefix.length
  const end = after === '' ? note.length : note.indexOf(after, from)
  if (end < 0 || end - from > NAME_LENGTH_MAX) return undefined
  const name = note.slice(from, end)
  return isName(name) ? name : undefined
}

const NAME_LENGTH_MAX = 253

function isName(text: string): boolean {
  return text.length <= NAME_LENGTH_MAX && /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/.test(text)
}

/** Whoever writes in one namespace must not displace what is known of others. */
function homeOf(cluster: string, namespace: string): string {
  return `${cluster}\n${namespace}`
}

function keyOf(kind: string, name: string): string {
  return `${kind}\n${name}`
}

function sizeOf(key: string, { owner }: Link): number {
  const ownerBytes = owner === undefined ? 0 : textBytes(owner.kind) + textBytes(owner.name)
  return ENTRY_BYTES + textBytes(key) + ownerBytes
}

/** V8 stores two bytes for each character if one is beyond Latin-1; an origin can send any names. */
function textBytes(text: string): number {
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) > 0xff) return 2 * text.length
  }
  return text.length
}
