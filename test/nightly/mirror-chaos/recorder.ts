import type { WatchEvent } from '../../../src/etcd/client.ts'
import { EtcdFollower } from '../../worlds/etcd-follower.ts'
import type { OriginChange, TargetChange } from './history.ts'

const versionName = 'tidings.dev/origin-resource-version'
const epochName = 'tidings.dev/origin-epoch'

/** The part of an event that the recorder reads. */
export interface MirroredEvent {
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid: string
    readonly resourceVersion?: string
    readonly annotations?: Readonly<Record<string, string>>
  }
}

/** Records each change of the events of one cluster in an etcd, once. */
export class Recorder<Change extends OriginChange | TargetChange> extends EtcdFollower {
  readonly changes: readonly Change[]

  /** Records what is at the origin: versions are those of the etcd. */
  static ofOrigin(endpoint: string, folder: string): Recorder<OriginChange> {
    return new Recorder(endpoint, folder, originChange)
  }

  /** Records what was mirrored: versions are those in the annotations. */
  static ofTarget(endpoint: string, folder: string): Recorder<TargetChange> {
    return new Recorder(endpoint, folder, (event) => targetChange(event))
  }

  private constructor(
    endpoint: string,
    folder: string,
    read: (event: WatchEvent, last: Change | undefined) => Change,
  ) {
    const changes: Change[] = []
    const onChange = (event: WatchEvent): void => {
      changes.push(read(event, changes.at(-1)))
    }
    super({ endpoints: [endpoint], folder, onChange })
    this.changes = changes
  }
}

/**
 * The rule for versions implemented once more, independently, so that a bug of the product is not
 * repeated here: thousands are the revision; a put contains its index, a delete has the next one.
 */
function originChange(event: WatchEvent, last: OriginChange | undefined): OriginChange {
  const revision = event.kv.modRevision
  if (event.type === 'delete') {
    const isFollowing = last !== undefined && Math.floor(last.version / 1000) === revision
    const version = revision * 1000 + (isFollowing ? (last.version % 1000) + 1 : 0)
    return { ...stateOf(event.prevKv?.value), type: 'delete', version }
  }
  const { index } = openValue(event.kv.value)
  return { ...stateOf(event.kv.value), type: 'put', version: revision * 1000 + index }
}

function targetChange({ type, kv, prevKv }: WatchEvent): TargetChange {
  const value = type === 'put' ? kv.value : prevKv?.value
  const { body } = openValue(value)
  return { ...stateOf(value), ...originOf(body), type }
}

/** What an event says about its origin. */
export function originOf({ metadata }: MirroredEvent): {
  readonly version: number
  readonly epoch: number
} {
  const { annotations = {} } = metadata
  return { version: Number(annotations[versionName]), epoch: Number(annotations[epochName] ?? 0) }
}

/** Namespace and name, as the checker uses them. */
export function nameOf({ metadata: { namespace, name } }: MirroredEvent): string {
  return `${namespace}/${name}`
}

function stateOf(value: Buffer | undefined): Pick<OriginChange, 'name' | 'uid' | 'content'> {
  const { body } = openValue(value)
  return { name: nameOf(body), uid: body.metadata.uid, content: contentOf(body) }
}

function openValue(value: Buffer | undefined): {
  readonly index: number
  readonly body: MirroredEvent
} {
  const text = value?.toString() ?? ''
  const header = /^\{"w":\d+,"i":(\d+)\}\n/.exec(text)
  if (header === null) throw new Error(`not as we store it: ${text}`)
  return { index: Number(header[1]), body: JSON.parse(text.slice(header[0].length)) }
}

/** The event with sorted fields and without what the mirror adds. */
function contentOf({ metadata, ...fields }: MirroredEvent): string {
  const { [versionName]: _version, [epochName]: _epoch, ...others } = metadata.annotations ?? {}
  const annotations = Object.keys(others).length === 0 ? undefined : others
  return JSON.stringify(sorted({ ...fields, metadata: { ...metadata, annotations } }))
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([name, member]) => [name, sorted(member)]))
}
