/** One request of a sequence, with placeholders for values that the server chooses. */
import { coreGroup, type EventGroup, eventsGroup } from '../../../src/api/event-groups.ts'
import type { StructType } from '../../../src/api/schema.ts'
import { wrapEnvelope } from '../../../src/codec/struct/kube-protobuf.ts'
import { deleteOptionsType } from '../../../src/codec/struct/meta-types.ts'
import { encodeStruct } from '../../../src/codec/struct/protobuf-struct.ts'
import { isObject, type JsonObject } from '../../../src/lib/json.ts'
import { protobufTree } from '../../support/protobuf-tree.ts'
import { type Tree, treeText } from '../fuzz/tree.ts'
import type { Answer, Ask } from './client.ts'

export const GROUPS = ['core', 'events'] as const
export type GroupName = (typeof GROUPS)[number]

export const VERBS = [
  'create',
  'update',
  'json-patch',
  'merge-patch',
  'strategic-patch',
  'apply',
  'delete',
  'delete-collection',
  'get',
  'list',
  'watch',
] as const
export type Verb = (typeof VERBS)[number]

/**
 * Texts may contain `@{ns}`, `@{rv NAME}`, `@{old NAME}`, `@{uid NAME}`, `@{list}` and
 * `@{continue}`: the namespace of the sequence, and values from earlier responses.
 */
export interface Step {
  readonly verb: Verb
  readonly group: GroupName
  /** Below the collection: a name, or nothing. */
  readonly at: string
  /** Under `/watch`, which is the older way to watch. */
  readonly isOldWatch?: boolean
  readonly query: readonly (readonly [string, string])[]
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Body | undefined
  /** Whether managedFields are compared, too: only where every write has been an apply. */
  readonly comparesOwners?: boolean
}

export type Body =
  | { readonly form: 'json'; readonly tree: Tree }
  | { readonly form: 'text'; readonly text: string }
  | { readonly form: 'event-message'; readonly event: JsonObject }
  | { readonly form: 'options-message'; readonly options: JsonObject }

const METHODS: Readonly<Record<Verb, string>> = {
  create: 'POST',
  update: 'PUT',
  'json-patch': 'PATCH',
  'merge-patch': 'PATCH',
  'strategic-patch': 'PATCH',
  apply: 'PATCH',
  delete: 'DELETE',
  'delete-collection': 'DELETE',
  get: 'GET',
  list: 'GET',
  watch: 'GET',
}

const groups: Readonly<Record<GroupName, EventGroup>> = {
  core: coreGroup,
  events: eventsGroup('events.k8s.io'),
}

export function apiVersionOf(group: GroupName): string {
  return groups[group].apiVersion
}

export function typeOf(group: GroupName): StructType {
  return groups[group].type
}

export function isChange({ verb }: Step): boolean {
  return METHODS[verb] !== 'GET'
}

/** Members of metadata that each server chooses by itself, and that a patch can copy. */
const OWN_MEMBERS = ['resourceVersion', 'creationTimestamp', 'deletionTimestamp'] as const

/** Values from the responses of one server so far in a sequence. */
export class Memory {
  readonly namespace: string
  readonly #versions = new Map<string, string>()
  readonly #olderVersions = new Map<string, string>()
  readonly #uids = new Map<string, string>()
  readonly #ownValues = new Set<string>()
  #listVersion = '0'
  #continueToken = ''

  constructor(namespace: string) {
    this.namespace = namespace
  }

  /** Every version, and every time by the server's clock, that an event had in a response. */
  get ownValues(): ReadonlySet<string> {
    return this.#ownValues
  }

  /**
   * A list in the response to a delete is not a list to continue from. Returns whether the event in
   * the response has another version than before; undefined without an event, or without one
   * before.
   */
  learn(answer: Answer, { verb }: Step): boolean | undefined {
    const tree = verb === 'watch' ? undefined : treeOf(answer)
    const metadata = tree && metadataIn(tree, verb)
    if (metadata === undefined) return undefined
    const version = String(metadata['resourceVersion'] ?? '')
    if (verb !== 'list') return this.#learnEvent(metadata, version)
    if (version !== '') {
      this.#listVersion = version
      this.#continueToken = String(metadata['continue'] ?? this.#continueToken)
    }
    return undefined
  }

  #learnEvent(metadata: JsonObject, version: string): boolean | undefined {
    const name = String(metadata['name'] ?? '')
    if (name === '') return undefined
    for (const member of OWN_MEMBERS) {
      if (typeof metadata[member] === 'string') this.#ownValues.add(metadata[member])
    }
    const before = this.#versions.get(name)
    const isOther = before !== version
    if (before !== undefined && isOther) this.#olderVersions.set(name, before)
    if (version !== '') this.#versions.set(name, version)
    this.#uids.set(name, String(metadata['uid']))
    return before === undefined || version === '' ? undefined : isOther
  }

  filled(text: string): string {
    if (!text.includes('@{')) return text
    return text
      .replaceAll('@{ns}', this.namespace)
      .replaceAll('@{list}', this.#listVersion)
      .replaceAll('@{continue}', this.#continueToken)
      .replaceAll(/@\{rv (\w*)\}/g, (_, name) => this.#versions.get(name) ?? this.#listVersion)
      .replaceAll(
        /@\{old (\w*)\}/g,
        (_, name) => this.#olderVersions.get(name) ?? this.#listVersion,
      )
      .replaceAll(
        /@\{uid (\w*)\}/g,
        (_, name) => this.#uids.get(name) ?? '00000000-0000-4000-8000-00000000dead',
      )
  }
}

/** The object in a response, in any format; of YAML only the plain members of its metadata. */
function treeOf({ status, headers, body }: Answer): JsonObject | undefined {
  if (status >= 300) return undefined
  const type = String(headers['content-type'])
  try {
    const tree = type.startsWith('application/json')
      ? JSON.parse(body.toString())
      : type.startsWith('application/yaml')
        ? yamlMetadata(body.toString())
        : protobufTree(body, false)
    return isObject(tree) ? tree : undefined
  } catch {
    return undefined
  }
}

/** Parsing all of it would take most of the time of the run. */
function yamlMetadata(text: string): JsonObject {
  // Values may contain line separators, which `.` does not match.
  const [, block = ''] = /^metadata:\n((?: [^\n]*\n)*)/m.exec(text) ?? []
  const members = [...block.matchAll(/^ {2}(\w+): "?([^"\n]*)"?$/gm)]
  return { metadata: Object.fromEntries(members.map(([, name, value]) => [name, value])) }
}

/** The metadata of the list, or of the one event in the response. */
function metadataIn(tree: JsonObject, verb: Verb): JsonObject | undefined {
  if (tree['kind'] === 'Status') return undefined
  const rows = tree['kind'] === 'Table' && verb !== 'list' ? tree['rows'] : undefined
  const row = Array.isArray(rows) ? rows[0] : undefined
  const object = isObject(row) ? row['object'] : undefined
  const { metadata } = isObject(object) ? object : tree
  return isObject(metadata) ? metadata : undefined
}

/** The request for one server. */
export function askOf(step: Step, memory: Memory): Ask {
  const base = step.group === 'core' ? '/api/v1' : '/apis/events.k8s.io/v1'
  const collection = `${base}${step.isOldWatch ? '/watch' : ''}/namespaces/${memory.namespace}/events`
  const query = step.query
    .map(([name, value]) => `${name}=${encodeURIComponent(memory.filled(value))}`)
    .join('&')
  return {
    method: METHODS[step.verb],
    path: `${collection}${step.at === '' ? '' : `/${step.at}`}${query === '' ? '' : `?${query}`}`,
    headers: step.headers,
    body: step.body === undefined ? undefined : bytesOf(step.body, step.group, memory),
  }
}

function bytesOf(body: Body, group: GroupName, memory: Memory): Buffer {
  switch (body.form) {
    case 'json':
      return Buffer.from(memory.filled(treeText(body.tree)))
    case 'text':
      return Buffer.from(memory.filled(body.text))
    case 'event-message': {
      const { type, apiVersion } = groups[group]
      const event = JSON.parse(memory.filled(JSON.stringify(body.event)))
      return wrapEnvelope({ apiVersion, kind: 'Event' }, encodeStruct(type, event))
    }
    case 'options-message': {
      const options = JSON.parse(memory.filled(JSON.stringify(body.options)))
      const kind = { apiVersion: 'v1', kind: 'DeleteOptions' }
      return wrapEnvelope(kind, encodeStruct(deleteOptionsType, options))
    }
  }
}

const SHOWN_LENGTH_MAX = 900

/** Formats a step in one line, for a report. */
export function shownStep(step: Step): string {
  const query = step.query.map(([name, value]) => `${name}=${value}`).join('&')
  const path = `${step.isOldWatch ? 'watch/' : ''}${step.group}/${step.at}${query && `?${query}`}`
  const headers = Object.entries(step.headers).map(([name, value]) => `${name}: ${value}`)
  return [`${METHODS[step.verb]} ${path}`, ...headers, shownBody(step)]
    .filter((part) => part !== '')
    .join(' | ')
}

/** The body before its placeholders are filled; a protobuf message is shown as JSON. */
export function sentText({ body }: Step): string {
  if (body === undefined) return ''
  if (body.form === 'json') return treeText(body.tree)
  return 'text' in body ? body.text : JSON.stringify('event' in body ? body.event : body.options)
}

function shownBody(step: Step): string {
  const sent = sentText(step)
  const text = step.body?.form === 'text' ? JSON.stringify(sent) : sent
  const short = text.replaceAll(/(.)\1{39,}/g, (run, letter) => `${letter}*${run.length}`)
  return short.length <= SHOWN_LENGTH_MAX ? short : `${short.slice(0, SHOWN_LENGTH_MAX)}…`
}
