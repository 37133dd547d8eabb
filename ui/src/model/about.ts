/** The object of the object view: its form in the URL, and the events that mention it. */
import { type EventRow, type ObjectName, objectPath, readObjectPath } from './event-row.ts'
import { escaped } from './selector.ts'

/**
 * Parses `Pod/shop/web-0`, `Node/node-1`, a uid, or `Pod/shop/web-0@<uid>` for one of several
 * objects that had the same name. Unknown parts are empty.
 */
export function readAbout(text: string): ObjectName {
  const at = text.indexOf('@')
  const path = readObjectPath(at === -1 ? text : text.slice(0, at))
  if (path === undefined) return { kind: '', namespace: '', name: '', uid: text }
  return { ...path, uid: at === -1 ? '' : text.slice(at + 1) }
}

export function writeAbout(about: ObjectName): string {
  if (about.kind === '' && about.name === '') return about.uid
  return about.uid === '' ? objectPath(about) : `${objectPath(about)}@${about.uid}`
}

/** Where to look for events. Events about a namespaced object are in its namespace. */
export interface AboutQuestion {
  readonly namespace: string
  /** Field selector terms. */
  readonly terms: readonly string[]
}

export function eventsAbout(about: ObjectName): AboutQuestion {
  return { namespace: about.namespace, terms: mentionTerms(about) }
}

/**
 * Events in other namespaces that have this object as their related object, such as those of a pod
 * that was preempted for it. Undefined for objects whose events are looked for everywhere.
 */
export function eventsElsewhere(about: ObjectName): AboutQuestion | undefined {
  const { namespace, name, uid } = about
  if (namespace === '') return undefined
  const related =
    uid === ''
      ? [`related.namespace=${escaped(namespace)}`, `related.name=${escaped(name)}`]
      : [`related.uid=${escaped(uid)}`]
  const terms = [...mentionTerms(about), ...related, `metadata.namespace!=${escaped(namespace)}`]
  return { namespace: '', terms }
}

function mentionTerms({ kind, name, uid }: ObjectName): readonly string[] {
  const isKnownByUid = uid !== '' && (UID.test(uid) || name === '')
  if (isKnownByUid) return [`mentions=${escaped(uid)}`]
  if (isPlain(kind) && isPlain(name)) return [`mentions=${escaped(`${kind}/${name}`)}`]
  return [`involvedObject.kind=${escaped(kind)}`, `involvedObject.name=${escaped(name)}`]
}

/**
 * The server takes other texts for names without a kind. The uid of a node is its name in the events
 * of its kubelet.
 */
const UID = /^[\da-f]{8}[\da-f-]*$/i

function isPlain(text: string): boolean {
  return text !== '' && !text.includes('/')
}

/** How an event mentions the object. */
export interface Mention {
  readonly role: 'regarding' | 'related'
  /** The object as named by the event. */
  readonly object: ObjectName
  /** The event's other object. */
  readonly other: ObjectName | undefined
}

/** Undefined if the event mentions only an object of the same name in another namespace. */
export function mentionOf(row: EventRow, about: ObjectName): Mention | undefined {
  const { regarding, related } = row
  const mentions: readonly Mention[] = [
    { role: 'regarding', object: regarding, other: related },
    ...(related === undefined
      ? []
      : [{ role: 'related', object: related, other: regarding } as const]),
  ]
  const fitting = mentions.filter(({ object }) => isSame(object, about))
  // The kind may have been typed as `po` or `pods`, which the server understands.
  return fitting.find(({ object }) => isSameKind(object, about)) ?? fitting[0]
}

function isSame(object: ObjectName, about: ObjectName): boolean {
  if (about.uid !== '') return object.uid === about.uid
  const isThere =
    about.namespace === '' || object.namespace === '' || object.namespace === about.namespace
  return object.name === about.name && isThere
}

function isSameKind(object: ObjectName, about: ObjectName): boolean {
  return about.kind === '' || object.kind.toLowerCase() === about.kind.toLowerCase()
}
